"""Own measures: a plain function of one ranked list, or a kernel over all lists, with what is declared of it.

A function receives the facts of :data:`FACTS` that it names. Its calls cost some microseconds a list; a kernel with the
decorator :class:`~rankeval_spark.measures.definition.Definition` costs as much as the measures of this package.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import math
import numbers
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import update_wrapper
from itertools import pairwise, repeat
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args, get_type_hints, overload

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.errors import (
    ConfigError,
    Fault,
    FaultsError,
    InvalidCallError,
    MeasureError,
    kind_of,
    nearest,
    shortened,
)
from rankeval_spark.measures import registry
from rankeval_spark.measures.arrays import BoolVector, FloatMatrix, FloatVector, IntVector, Ratio
from rankeval_spark.measures.definition import Better, Cutoff, CutoffNeed, Definition, normalise_name
from rankeval_spark.measures.group_statistics import find_statistic
from rankeval_spark.measures.options import Option, Whole, option_text, read_options
from rankeval_spark.measures.required_facts import ITEM_IDS, ITEM_SCORES

if TYPE_CHECKING:
    from rankeval_spark.measures.lists import CutLists, Lists
    from rankeval_spark.measures.names import Measure

F = TypeVar("F", bound=Callable[..., Any])

FACTS: Final[Mapping[str, str]] = {
    "gains": "gain of the item at each rank, a list of numbers; 0 without a judgement, or with a negative one",
    "relevant": "whether the item at each rank has a gain of 1 or more, a list of True and False",
    "ranks": "ranks of the relevant items of the list, from 1, ascending",
    "n_relevant": "number of relevant judgements of the user, in the list or not",
    "judged": "gains of all judgements of the user, in the list or not, the greatest first",
    "k": "the cutoff; None for the whole list",
    "length": "number of ranks of the whole list, before it is cut; 0 for a user without a list",
    "items": "item id at each rank; None at a rank without an item",
    "scores": "score of the log at each rank; NaN if the log has none",
}
"""Facts of one list, cut at the cutoff, that a function may name among its arguments."""

OWN: Final = "own"  # family of measures that are not of this package
NEVER: Final = "never"  # what a measure that has a value for every list says of when it is undefined
_LONGEST: Final = 200  # letters of an exception in a message
_REL: Final = "rel"  # option that sets the level of a relevant item, where a function has it
_NAME: Final = re.compile(r"[A-Za-z]\w{0,79}")
_ANY: Final = "nDCG@10"  # in place of what is refused, so that the other faults of a call are found too
_PLACE: Final = "measure"
_NUMBERS: Final = (numbers.Real, np.bool_, np.number, NoneType)
_UNLIMITED: Final = (-math.inf, math.inf)


class OwnMeasure:
    """A function as a measure: ``my_measure @ 10`` is at cutoff 10; a call is one of the function.

    >>> @measure
    ... def hits(ranks):
    ...     "Number of relevant items."
    ...     return len(ranks)
    >>> hits @ 10, str(hits), hits([1, 4])
    (hits@10, 'hits', 2)
    """

    def __init__(self, function: Callable[..., Any], definition: Definition, k: int | None = None) -> None:
        self._function, self.definition, self.k = function, definition, k
        with suppress(AttributeError):  # such as of a partial
            update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function."""
        return self._function(*args, **kwargs)

    def __matmul__(self, k: int) -> OwnMeasure:
        """Return the measure at a cutoff; checked like every cutoff where it is evaluated."""
        return OwnMeasure(self._function, self.definition, k)

    def __str__(self) -> str:
        """Write the measure as it is requested."""
        return self.definition.name if self.k is None else f"{self.definition.name}@{self.k}"

    __repr__ = __str__


@overload
def measure(function: F, /) -> OwnMeasure: ...
@overload
def measure(
    *,
    name: str = "",
    undefined: str = "",
    better: Better = "higher",
    bounds: tuple[float, float] = _UNLIMITED,
    ratio: bool = False,
    without_relevant: float | None = None,
    cutoff: CutoffNeed = "optional",
    version: str = "",
) -> Callable[[F], OwnMeasure]: ...
def measure(  # noqa: PLR0913 - what a measure can declare
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    undefined: str = "",
    better: Better = "higher",
    bounds: tuple[float, float] = _UNLIMITED,
    ratio: bool = False,
    without_relevant: float | None = None,
    cutoff: CutoffNeed = "optional",
    version: str = "",
) -> OwnMeasure | Callable[[F], OwnMeasure]:
    """Make a measure of a function of one ranked list.

    Parameters
    ----------
    function : callable
        A function of some of ``gains``, ``relevant``, ``ranks``, ``n_relevant``, ``judged``, ``k``, ``length``,
        ``items`` and ``scores``, by name: see ``docs/own-measures.md``. Keyword-only parameters with a default are
        options, as in ``my_measure(p=0.5)@10``.
    name : str
        Name of the measure; the function's where left out.
    undefined : str
        When the measure is undefined, in words. Then the function may return NaN. None is undefined in any case.
    better : {"higher", "lower", "neither"}
        Which value is the better one.
    bounds : tuple of float
        Least and greatest value. A value outside is an error.
    ratio : bool
        Whether the function returns a pair, numerator and denominator, whose sums over users ``agg='micro'`` divides.
    without_relevant : float, optional
        Value of a user without a defined value where a population counts that user; NaN for none. It is needed where
        ``better`` is not ``"higher"``, and 0 elsewhere.
    cutoff : {"optional", "required", "forbidden"}
        Whether the measure takes a cutoff.
    version : str
        Version that the runs of a night record. Another one is another definition, as another source is.

    Returns
    -------
    OwnMeasure
        It is called like the function, and ``my_measure @ 10`` is the measure at cutoff 10.

    Examples
    --------
    >>> from rankeval_spark import measure
    >>> @measure(undefined="no hit", better="lower", without_relevant=100)
    ... def first_rank(ranks):
    ...     "Rank of the first relevant item."
    ...     return ranks[0] if ranks else None
    >>> first_rank @ 10, first_rank([3, 5])
    (first_rank@10, 3)
    """

    def decorate(function: Callable[..., Any]) -> OwnMeasure:
        if isinstance(known := getattr(function, "definition", None), Definition):
            return OwnMeasure(function, known)
        faults = [
            Fault(f"measure({argument}=)", repr(given), f"one of {', '.join(choices)}", nearest(str(given), choices))
            for argument, given, choices in (
                ("better", better, get_args(Better)),
                ("cutoff", cutoff, get_args(CutoffNeed)),
            )
            if given not in choices
        ]
        if better != "higher" and without_relevant is None:
            fix = "the worst value there can be, or math.nan for none"
            faults.append(Fault("measure(without_relevant=)", f"none with better={better!r}", "a number", fix))
        if faults:
            raise InvalidCallError(*faults)
        found = Definition(
            name=name or _name_of(function),
            formula="",
            source="",
            undefined=undefined or ("the denominator is 0, or it returns None" if ratio else "it returns None"),
            bounds=bounds,
            cutoff=Cutoff(cutoff),
            better=better,
            without_relevant=without_relevant,
            is_bounded_by_gains=False,
            version=version,
        )
        kernel = ListKernel(function, found.name, allows_nan=undefined not in ("", NEVER), is_ratio=ratio)
        found.formula = f"{found.name}({', '.join(inspect.signature(function).parameters)})"
        found.source = f"the function {function.__module__}.{getattr(function, '__qualname__', found.name)}"
        found.needs = kernel.needs
        found.describe(kernel, "list", is_ratio=ratio, doc=function.__doc__ or "", family=OWN)
        return OwnMeasure(function, found)

    return decorate if function is None else decorate(function)


def _name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function; InvalidCallError where it has none, or a measure cannot be called so."""
    name = getattr(function, "__name__", "")
    kind = "a class" if inspect.isclass(function) else kind_of(function)
    if inspect.isclass(function) or not callable(function):
        raise InvalidCallError(Fault(_PLACE, kind, "a function of one list, or text such as 'nDCG@10'"))
    if not _NAME.fullmatch(name):
        what = "a lambda, which has no name" if name == "<lambda>" else repr(name) if name else f"a {kind} without name"
        fix = "define it with def, or name it: measure(name='my_measure')(function)"
        raise InvalidCallError(Fault(_PLACE, what, "a function whose name is that of the measure", fix))
    return name


class ListKernel:
    """Kernel that calls a function for each list and cutoff with the facts that it names."""

    def __init__(self, function: Callable[..., Any], name: str, *, allows_nan: bool, is_ratio: bool) -> None:
        """Read the signature of the function; InvalidCallError for a parameter that is neither a fact nor an option."""
        self.function, self.allows_nan, self.is_ratio = function, allows_nan, is_ratio
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            fix = "write a function of the facts that it reads, such as def my_measure(gains, k)"
            fault = Fault(f"{_PLACE}, {name}", "a function whose arguments are not known", "names of facts", fix)
            raise InvalidCallError(fault) from None
        facts = [one for one in parameters if one in FACTS]
        options = {one.name: one.default for one in parameters.values() if one.kind is one.KEYWORD_ONLY}
        stars: Mapping[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        unknown = [
            f"{stars.get(one.kind, '')}{one.name}"
            for one in parameters.values()
            if one.name not in FACTS and one.name not in options
        ]
        if unknown:
            fix = nearest(unknown[0], FACTS) or f"make an option of it: *, {unknown[0]}=..."
            expected = f"some of {', '.join(FACTS)}; options stand behind *"
            raise InvalidCallError(
                Fault(
                    f"{_PLACE}, {name}",
                    f"the {'argument' if len(unknown) == 1 else 'arguments'} {', '.join(unknown)}",
                    expected,
                    fix,
                )
            )
        self.positional = [one for one in facts if parameters[one].kind is not inspect.Parameter.KEYWORD_ONLY]
        self.by_name = [one for one in facts if one not in self.positional]
        self.options = _read_options(function, {one: options[one] for one in options if one not in FACTS}, name)
        self.wholes = [option.name for option in self.options if isinstance(option.bounds, Whole)]
        self.needs = (
            *((ITEM_IDS,) if "items" in facts else ()),
            *((HIT_SCORES, ITEM_SCORES) if "scores" in facts else ()),
        )
        self.__module__, self.source = function.__module__ or "__main__", _source_of(function)
        self.file = getattr(getattr(function, "__code__", None), "co_filename", "")
        self.first_line = getattr(getattr(function, "__code__", None), "co_firstlineno", 1)

    def __call__(self, cut: CutLists, **options: Any) -> FloatMatrix | Ratio:  # noqa: ANN401 - values of options
        """Return the values at every cutoff, or the parts of ratios; :class:`_ListError` for what is no number."""
        given = {name: int(value) if name in self.wholes else value for name, value in options.items()}
        columns = [self._values_at(cut, column, given) for column in range(cut.k.size)]
        if not self.is_ratio:
            return np.column_stack(columns)
        numerator, denominator = (np.column_stack([parts[:, part] for parts in columns]) for part in (0, 1))
        is_defined = ~np.isnan(numerator) & (denominator != 0)
        return Ratio(np.nan_to_num(numerator), np.nan_to_num(denominator), where=is_defined)

    def _values_at(self, cut: CutLists, column: int, options: Mapping[str, Any]) -> np.ndarray:
        """Call the function for each list at one cutoff: (n_lists,), or (n_lists, 2) parts of ratios."""
        reader = _Reader(cut.lists, float(cut.k[0, column]), float(options.get(_REL, 1)))
        function, found = self.function, list[Any]()
        append = found.append
        facts = reader.rows(self.positional)
        try:
            if self.by_name:
                for values, others in zip(facts, reader.rows(self.by_name), strict=True):
                    append(function(*values, **dict(zip(self.by_name, others, strict=True)), **options))
            else:
                for values in facts:
                    append(function(*values, **options))
        except Exception as error:
            raise _ListError(len(found), column, self._describe(error)) from error
        if not self.is_ratio:
            return self._to_numbers(found, column, "a number")
        pairs = [(None, None) if each is None else each for each in found]
        for row, pair in enumerate(pairs):
            if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:  # noqa: PLR2004 - the parts of a ratio
                raise _ListError(row, column, _show(pair), "a pair (numerator, denominator)")
        expected = "a pair of numbers"
        parts = [self._to_numbers([pair[part] for pair in pairs], column, expected) for part in (0, 1)]
        if (negative := np.flatnonzero(parts[1] < 0)).size:
            found_there = f"the denominator {option_text(float(parts[1][negative[0]]))}"
            raise _ListError(int(negative[0]), column, found_there, "0 or more")
        return np.column_stack(parts)

    def _to_numbers(self, found: Sequence[Any], column: int, expected: str) -> FloatVector:
        """Convert what the function returned, None to NaN; refuse what is no number, and NaN unless declared."""
        wrong = [kind for kind in set(map(type, found)) if not issubclass(kind, _NUMBERS)]
        if wrong:
            row = next(row for row, value in enumerate(found) if type(value) in wrong)
            fix = "return float(...), or None where it is undefined"
            raise _ListError(row, column, _show(found[row]), expected, fix)
        values = np.array(found, dtype=np.float64)
        if not self.allows_nan and np.isnan(values).any():
            row = next((row for row, value in enumerate(found) if value is not None and math.isnan(value)), -1)
            if row >= 0:
                fix = "return None, or declare it: @measure(undefined='when it is undefined')"
                raise _ListError(row, column, "NaN", f"{expected}, or None where it is undefined", fix)
        return values

    def _describe(self, error: Exception) -> str:
        """Describe an exception, with the line of the function where it came from."""
        trace, line = error.__traceback__, 0
        while trace is not None:
            line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == self.file else line
            trace = trace.tb_next
        lines = self.source.splitlines()
        place = line - self.first_line
        source = lines[place].strip() if 0 <= place < len(lines) else linecache.getline(self.file, line).strip()
        where = f" in line {line}" if line else ""
        return describe_error(error) + where + (f" ({shortened(source)})" if source else "")


class _Reader:
    """Facts of each list of a batch, cut at one cutoff."""

    def __init__(self, lists: Lists, k: float, rel: float) -> None:
        self.lists, self.k, self.rel = lists, k, rel
        self.length = np.minimum(lists.n_recommended, k).astype(np.int64)  # (n_lists,)
        self.start = np.cumsum(self.length) - self.length

    def rows(self, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Return the values of some facts, a row for each list."""
        if not names:
            return repeat((), self.lists.n_lists)
        return zip(*(getattr(self, f"_{name}")() for name in names), strict=True)

    def _gains(self) -> Iterator[list[Any]]:
        return self._write(0.0, self.lists.hit_gain > 0, self.lists.hit_gain)

    def _relevant(self) -> Iterator[list[Any]]:
        is_relevant = self.lists.hit_gain >= self.rel
        return self._write(False, is_relevant, is_relevant)

    def _write(self, absent: float | bool, is_written: BoolVector, values: np.ndarray) -> Iterator[list[Any]]:
        """Write values of some hits at their ranks; the absent value elsewhere, which is most of a list."""
        hit = is_written & (self.lists.hit_rank <= self.k)
        n_hits = np.bincount(self.lists.hit_list[hit], minlength=self.lists.n_lists)
        places, found = _split(self.lists.hit_rank[hit] - 1, n_hits), _split(values[hit], n_hits)
        for n_ranks, at, hits in zip(self.length.tolist(), places, found, strict=True):
            ranks = [absent] * n_ranks
            for place, value in zip(at, hits, strict=True):
                ranks[place] = value
            yield ranks

    def _ranks(self) -> Iterator[list[Any]]:
        hit = (self.lists.hit_gain >= self.rel) & (self.lists.hit_rank <= self.k)
        n_hits = np.bincount(self.lists.hit_list[hit], minlength=self.lists.n_lists)
        return _split(self.lists.hit_rank[hit], n_hits)

    def _n_relevant(self) -> list[int]:
        found: list[int] = self.lists.relevance(self.rel).n_relevant[:, 0].astype(np.int64).tolist()
        return found

    def _judged(self) -> Iterator[list[Any]]:
        is_judged = self.lists.judged_gain >= 0
        n_judged = np.bincount(self.lists.judged_list[is_judged], minlength=self.lists.n_lists)
        return _split(self.lists.judged_gain[is_judged], n_judged)

    def _k(self) -> Iterable[int | None]:
        return repeat(None if math.isinf(self.k) else int(self.k), self.lists.n_lists)

    def _length(self) -> list[int]:
        found: list[int] = self.lists.n_recommended.tolist()
        return found

    def _items(self) -> Iterator[list[Any]]:
        facts = self.lists.known_items
        return _split(self._dense(None, facts.item_list, facts.item_rank, facts.known_ids), self.length)

    def _scores(self) -> Iterator[list[Any]]:
        facts = self.lists.known_items
        scores = self._dense(math.nan, facts.item_list, facts.item_rank, facts.known_scores)
        return _split(scores, self.length)

    def _dense(self, absent: object, owner: IntVector, rank: IntVector, values: np.ndarray) -> np.ndarray:
        """Write one value at each rank of every list, one list after the other."""
        dense = np.full(int(self.length.sum()), absent, dtype=values.dtype)
        reached = rank <= self.length[owner]
        dense[self.start[owner[reached]] + rank[reached] - 1] = values[reached]
        return dense


def _split(flat: np.ndarray, lengths: IntVector) -> Iterator[list[Any]]:
    """Yield the values of each list as Python's."""
    values, ends = flat.tolist(), np.append(0, np.cumsum(lengths)).tolist()
    return (values[start:end] for start, end in pairwise(ends))


class _ListError(Exception):
    """A function failed for a list, or returned something that it must not."""

    def __init__(self, row: int, column: int, found: str, expected: str = "a number", fix: str = "") -> None:
        super().__init__(found)
        self.row, self.column, self.found, self.expected, self.fix = row, column, found, expected, fix


def describe_error(error: Exception) -> str:
    """Return the kind and the text of an exception, on one line."""
    return shortened(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST)


def compute(asked: Measure, cut: CutLists) -> FloatMatrix | Ratio:
    """Compute an own measure; MeasureError, with user, model and list, where it fails or breaks what it declares."""
    entry, shape = asked.entry, (cut.lists.n_lists, cut.k.size)
    try:
        found = entry.kernel(cut, **asked.kernel_options)
        parts = (found.numerator, found.denominator, found.values) if isinstance(found, Ratio) else (found,)
        for part in parts:
            _check_shape(part, shape)
        _check_values(entry, np.broadcast_to(parts[-1], shape))
    except FaultsError:
        raise
    except _ListError as error:
        where, fix = _place(asked, cut, error.row, error.column), error.fix
        if not fix and error.row >= 0 and not cut.lists.n_recommended[error.row]:
            fix = "this user has no list: return a number for an empty one, or None"
        raise MeasureError(Fault(where, error.found, error.expected, fix)) from error.__cause__
    except Exception as error:
        where, expected = _place(asked, cut, -1, -1), f"an array of {shape[0]} lists x {shape[1]} cutoffs"
        raise MeasureError(Fault(where, describe_error(error), expected)) from error
    return found


def _check_shape(values: object, shape: tuple[int, int]) -> None:
    """Refuse what a kernel returns where it is no array of numbers for the lists and cutoffs."""
    expected = f"float64 values of shape {shape}, lists x cutoffs"
    if not isinstance(values, np.ndarray):
        raise _ListError(-1, -1, _show(values), expected)
    if values.dtype.kind not in "fiub":
        raise _ListError(-1, -1, f"an array of {values.dtype}", expected)
    if values.ndim != len(shape) or any(n not in (1, length) for n, length in zip(values.shape, shape, strict=True)):
        raise _ListError(-1, -1, f"an array of shape {values.shape}", expected)


def _check_values(entry: Definition, values: FloatMatrix) -> None:
    """Refuse values outside the declared bounds, infinite ones, and NaN of a measure that is never undefined."""
    low, high = entry.bounds
    wrong = (values < low) | (values > high) | np.isinf(values)
    if entry.undefined == NEVER:
        wrong |= np.isnan(values)
    if not wrong.any():
        return
    row, column = np.argwhere(wrong)[0].tolist()
    value = float(values[row, column])
    expected = f"a value in {entry.range}, as declared" if math.isfinite(value) else "a finite number"
    raise _ListError(row, column, "NaN" if math.isnan(value) else option_text(value), expected)


def _place(asked: Measure, cut: CutLists, row: int, column: int) -> str:
    """Write where a measure failed: its name with the cutoff, and the list."""
    k = asked.k if column < 0 else cut.k[0, column]
    name = asked.label if column < 0 or math.isinf(k) else f"{asked.label}@{int(k)}"
    names = cut.lists.names
    if names is None or not cut.lists.n_lists:
        return f"measures, {name}"
    of_list = names(max(row, 0))
    return f"measures, {name}, {of_list if row >= 0 else f'lists from that of {of_list}'}"


def _show(value: object) -> str:
    return f"{shortened(' '.join(repr(value).split()))} of type {kind_of(value)}"


def _read_options(function: Callable[..., Any], given: Mapping[str, Any], name: str) -> tuple[Option, ...]:
    """Return the options of a function; types that are not annotated are those of the defaults."""
    hints: Mapping[str, Any] = {}
    with suppress(Exception):  # of names that only a type checker knows
        hints = get_type_hints(function, include_extras=True)
    for option, default in given.items():
        if option not in hints and not isinstance(default, str | bool | int | float):
            expected = "a default that is text, a number or a truth value"
            raise InvalidCallError(Fault(f"{_PLACE}, {name}", f"the option {option!r} without it", expected))
    kinds = {
        one: Annotated[float, Whole()]
        if type(default) is int and one != _REL
        else float
        if one == _REL
        else type(default)
        for one, default in given.items()
    }
    types = {**dict.fromkeys(FACTS, float), **kinds, **{one: hint for one, hint in hints.items() if hint is not int}}
    found = {option.name: option for option in read_options(function, types)}
    plain = {one for one, kind in kinds.items() if kind is str and not found[one].choices and not found[one].takes_text}
    texts = {one: Option(one, given[one], takes_text="a text") for one in plain}
    return tuple({**found, **texts}[one] for one in given)


def name_measure(value: Any) -> Any:  # noqa: ANN401 - an argument of a call
    """Return the text by which a call requested a function as a measure; anything else unchanged.

    >>> name_measure(measure(name="mine")(lambda gains: gains.sum()) @ 3), name_measure(sorted), name_measure("nDCG@10")
    ('mine@3', 'sorted', 'nDCG@10')
    """
    if isinstance(value, OwnMeasure):
        return str(value)
    kernel = getattr(value, "definition", None)
    return kernel.name if isinstance(kernel, Definition) else getattr(value, "__name__", value)


def own_measures(
    values: Any,  # noqa: ANN401 - an argument of a call
    where: str = "evaluate(measures=)",
) -> tuple[Any, tuple[Definition, ...], list[Fault]]:
    """Split measures of a call into their texts, and the definitions of those that are functions; and the faults."""
    texts, own, faults = list[Any](), dict[str, Definition](), list[Fault]()
    if not isinstance(values, list | tuple):
        is_one = callable(values) and not isinstance(values, type)
        fix = f"write measures=[{getattr(values, '__name__', 'my_measure')}]"
        return ([_ANY], (), [Fault(where, f"a {kind_of(values)}", "a list", fix)]) if is_one else (values, (), [])
    by_function: dict[int, OwnMeasure] = {}
    for index, value in enumerate(values):
        if isinstance(value, str) or (not callable(value) and not hasattr(value, "columns")):
            texts.append(value)
            continue
        try:
            made = value if isinstance(value, OwnMeasure) else by_function.setdefault(id(value), measure(value))
            _require_free_name(made.definition.name, f"{where}[{index}]")
        except ConfigError as error:
            faults += [Fault(f"{where}[{index}]", one.found, one.expected, one.fix) for one in error.faults]
            texts.append(_ANY)
            continue
        texts.append(str(made))
        name = normalise_name(made.definition.name)
        if own.setdefault(name, made.definition) is not made.definition:
            found = f"a second function called {made.definition.name}"
            faults.append(Fault(f"{where}[{index}]", found, "one function of a name", "rename one of them"))
    return texts, tuple(own.values()), faults


def _require_free_name(name: str, where: str) -> None:
    """Refuse a name that this package reads as something else, or that is no name of a measure."""
    fix = f"rename the function, or name the measure: measure(name='my_{name}')(function)"
    if not _NAME.fullmatch(name):
        raise InvalidCallError(Fault(where, f"the name {name!r}", "letters, digits and _, with a letter first", fix))
    if match := registry.find_builtin(name):
        found = f"the name {name!r}, which is read as {match.entry.name}"
        raise InvalidCallError(Fault(where, found, "a name of its own", fix))
    if find_statistic(name):
        raise InvalidCallError(Fault(where, f"the name {name!r} of a statistic of groups", "a name of its own", fix))


def definitions_in(module: ModuleType) -> tuple[Definition, ...]:
    """List the measures that a module defines with ``@measure`` or ``@Definition``, or imports from another one."""
    found: dict[int, Definition] = {}
    for value in vars(module).values():
        known = getattr(value, "definition", None)
        if isinstance(known, Definition) and not known.is_builtin and callable(value):
            found[id(known)] = known
    for known in found.values():
        _require_free_name(known.name, module.__name__)
    return tuple(found.values())


def code_hash(function: Callable[..., Any]) -> str:
    """Return a hash of the source of a function and of the functions and constants of its module that it reads.

    Without a source it is that of the code object. Comments and layout do not count.

    >>> code_hash(lambda gains: 1) == code_hash(lambda gains: 1), code_hash(len) == code_hash(lambda gains: 2)
    (True, False)
    """
    digest, seen = hashlib.sha256(), set[int]()
    _add_code(function, digest.update, seen)
    return digest.hexdigest()[:16]


def _add_code(function: object, add: Callable[[bytes], None], seen: set[int]) -> None:
    """Add the source of a function to a hash, then its defaults, and what it reads of its module."""
    function = inspect.unwrap(function) if callable(function) else function
    function = getattr(function, "function", function)  # of a ListKernel
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    text = _code_text(function.__code__)
    with suppress(SyntaxError):  # of a function that begins within a line
        text = ast.unparse(ast.parse(source)) if (source := _source_of(function)) else text
    add(text.encode())
    read: dict[Any, Any] = dict(enumerate(function.__defaults__ or ())) | (function.__kwdefaults__ or {})
    with suppress(ValueError):  # of a variable that has no value yet
        closed = inspect.getclosurevars(function)
        read |= {**closed.nonlocals, **closed.globals}
    for name, value in read.items():
        inner = getattr(value, "_function", value)
        if isinstance(inner, FunctionType) and inner.__module__ == function.__module__:
            _add_code(inner, add, seen)
        elif all(
            isinstance(each, str | bool | int | float) for each in (value if isinstance(value, tuple) else [value])
        ):
            add(f"{name}={value!r}".encode())


def _code_text(code: CodeType) -> str:
    """Write a code object, the same in every process."""
    constants = [
        _code_text(each)
        if isinstance(each, CodeType)
        else sorted(map(repr, each))
        if isinstance(each, frozenset)
        else each
        for each in code.co_consts
    ]
    return f"{code.co_code.hex()} {constants!r} {code.co_names} {code.co_varnames}"


def _source_of(function: Callable[..., Any]) -> str:
    """Return the source of a function without its indentation; empty where it is not known, or within a line."""
    try:
        if getattr(function, "__name__", "") == "<lambda>":
            return ""
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""
