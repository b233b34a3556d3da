"""Lists typed by hand: what a measure says of them, for teaching and for asking."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.apps.notebook.evaluate import evaluate
from rankeval_spark.errors import Fault, InputError, InvalidCallError, kind_of, listed, nearest
from rankeval_spark.refusals import raise_with_words
from rankeval_spark.report.result_table import ResultTable

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.evaluation import Evaluation
    from rankeval_spark.report.explanation import Explanation

    Typed = str | Sequence[float | None]  # a list as it is typed

MISSED: Final = "|"  # before the gains of the judged items that a list does not hold
UNJUDGED: Final = "-"
MEAN: Final = "mean"  # name of the last row


class MeasuredLists(ResultTable):
    """Values of lists that were typed by hand: a row a list, and their mean; a column a measure."""

    def __init__(self, evaluation: Evaluation[ResultTable], lists: Sequence[str]) -> None:
        self.evaluation = evaluation  # of these lists, each of a user of its name
        self._lists = lists
        columns: dict[str, pa.Array] = {"list": pa.array([*lists, MEAN])}
        values = {(row[C.USER_ID], row[C.MEASURE], row[C.K]): row[C.VALUE] for row in evaluation.user_values}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of lists that are empty on purpose
            board = next(iter(evaluation.leaderboard()), dict[str, Any]())
        for measure in evaluation.request.measure_set.measures:
            of_lists = [values.get((name, measure.label, measure.k)) for name in lists]
            columns[str(measure)] = pa.array([*of_lists, board.get(str(measure))], pa.float64())
        super().__init__(pa.Table.from_pydict(columns), "lists")

    def explain(self, name: str, measure: str) -> Explanation:
        """Explain the value of a list by its name, as :meth:`rankeval_spark.Evaluation.explain` does."""
        if name not in self._lists:
            expected, fix = f"one of the lists: {listed(str(name), self._lists)}", nearest(str(name), self._lists)
            raise InvalidCallError(Fault("explain(name=)", repr(name), expected, fix))
        return self.evaluation.explain(name, measure)


def measure_lists(
    lists: Mapping[str, Typed],
    measures: Sequence[str | Callable[..., Any]],
    *,
    preset: str | None = None,
    policies: Policies | Mapping[str, Any] | None = None,
) -> MeasuredLists:
    """Measure lists that are typed by hand.

    Parameters
    ----------
    lists : mapping of str to str
        Lists by their names, as the worked examples write them: the gain of the item at each rank, ``-`` for an item
        without a judgement, and behind ``|`` the gains of judged items that the list does not hold: ``"- 1 0 | 1 1"``.
        A sequence of gains, with None for ``-``, is a list too.
    measures : sequence of str or callable
        Such as ``["nDCG@10", "AP", my_measure]``; they read ranks and gains.
    preset, policies : optional
        Those of :func:`evaluate`.

    Returns
    -------
    MeasuredLists
        A :class:`ResultTable` with a row a list, and their mean. ``explain("A", "AP")`` shows how a value comes about;
        ``evaluation`` has all other results.

    Raises
    ------
    InvalidCallError
        If a list cannot be read, or as :func:`evaluate`.

    Examples
    --------
    >>> from rankeval_spark import measure_lists
    >>> found = measure_lists({"A": "- 1 1", "B": "1 1 -"}, ["AP", "RR", "nDCG"])
    >>> found
    lists: 3 rows
    list      AP      RR    nDCG
    A     0.5833  0.5000  0.6934
    B     1.0000  1.0000  1.0000
    mean  0.7917  0.7500  0.8467
    >>> found.explain("A", "AP")
    AP = 0.5833 for user A
    (1 / R) sum_{i<=k} r_i h_i / i
    rank  item_id  gain    term  contribution
       1  a              0.0000        0.0000
       2  b           1  0.5000        0.2500
       3  c           1  0.6667        0.3333
    sum of terms 1.1667, divided by 2: 0.5833
    R = 2 of 2 judged items are relevant; 3 places, hits: 2
    """
    given: object = lists
    if not isinstance(given, Mapping):
        expected, fix = "a dict of lists by their names", 'write measure_lists({"A": "- 1 1"}, ["AP"])'
        raise InvalidCallError(Fault("measure_lists(lists=)", kind_of(given), expected, fix))
    if MEAN in lists:
        expected = f"another name: {MEAN!r} is the row of all lists"
        raise InvalidCallError(Fault("measure_lists(lists=)", repr(MEAN), expected, "rename the list"))
    read = {str(name): _read_list(str(name), typed) for name, typed in lists.items()}
    places = [(name, place, gain) for name, (gains, missed) in read.items() for place, gain in enumerate(gains)]
    judged = [(name, _item(place), gain) for name, place, gain in places if gain is not None]
    judged += [
        (name, _item(place), gain)
        for name, (gains, missed) in read.items()
        for place, gain in enumerate(missed, len(gains))
    ]
    text = pa.string()
    log = pa.Table.from_pydict(
        {
            C.USER_ID: pa.array([name for name, _, _ in places], text),
            C.ITEM_ID: pa.array([_item(place) for _, place, _ in places], text),
            C.RANK: pa.array([place + 1 for _, place, _ in places], pa.int32()),
        }
    )
    names, items, gains = ([row[at] for row in judged] for at in range(3))
    held_out = pa.Table.from_pydict(
        {C.USER_ID: pa.array(names, text), C.ITEM_ID: pa.array(items, text), C.GAIN: pa.array(gains, pa.float64())}
    )
    try:
        with raise_with_words({"evaluate(": "measure_lists("}):
            result = evaluate(log, held_out, measures=measures, preset=preset, policies=policies)
            return MeasuredLists(result, list(read))
    except (InputError, InvalidCallError) as error:
        only, fix = "typed lists have ranks and gains alone", "leave these measures out, or call evaluate"
        missing = [fault for fault in error.faults if isinstance(error, InputError) or fault.found == "None"]
        faults = [
            Fault("measure_lists(measures=)", fault.found, f"{fault.expected}: {only}", fix)
            if fault in missing
            else fault
            for fault in error.faults
        ]
        raise InvalidCallError(*faults) from error


def _item(place: int) -> str:
    """Return the name of the item at a place, from 0: a, b, ..., z, then i27 and so on."""
    return ascii_lowercase[place] if place < len(ascii_lowercase) else f"i{place + 1}"


def _read_list(name: str, typed: Typed) -> tuple[list[float | None], list[float]]:
    """Read the gains of a list, and of the judged items that it does not hold."""
    spaced = typed.replace(MISSED, f" {MISSED} ").split() if isinstance(typed, str) else typed
    tokens: list[object] = [*spaced]
    at = tokens.index(MISSED) if MISSED in tokens else len(tokens)

    def read(token: object, *, is_missed: bool) -> float | None:
        if not is_missed and (token is None or token == UNJUDGED):
            return None
        try:
            gain = float(str(token))
        except ValueError:
            gain = math.nan
        if math.isfinite(gain):
            return gain
        expected = "gains" if is_missed else f"gains, and {UNJUDGED!r} for an item without a judgement"
        fix = f"write it as '{UNJUDGED} 1 0 {MISSED} 1': ranks, then what is missed"
        raise InvalidCallError(Fault(f"measure_lists(lists=), {name!r}", repr(token), expected, fix))

    gains = [read(token, is_missed=False) for token in tokens[:at]]
    missed = [read(token, is_missed=True) for token in tokens[at + 1 :]]
    return gains, [gain for gain in missed if gain is not None]
