"""Faults of refused evaluations: read from an error's text, and written in the words of a call.

Spark passes on no more of a worker's error than its text. A config and a call have the same rules, whose faults are
written in the words of a config file; in a call, arguments have ``=``, and values and types are as Python writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rankeval_spark.config.inference import Comparisons, Intervals
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.engine.failures import INPUT_REFUSED, POLICY_REFUSED
from rankeval_spark.errors import (
    ChecksFailedError,
    ConfigError,
    Fault,
    FaultsError,
    InputError,
    InvalidCallError,
    JudgementError,
    MeasureError,
    RefusedCallError,
    nearest,
)
from rankeval_spark.inputs.input_columns import input_schemas

if TYPE_CHECKING:
    from rankeval_spark.config.base import Model
    from rankeval_spark.config.request import Request

# The text of a `JudgementError`, or of a `MeasureError`, with one fault, among the lines of a worker's traceback.
_JUDGEMENT: Final = re.compile(
    rf"(?:{JudgementError.title}|{MeasureError.title})" + r":\s+- (?P<where>\w[^\n]*?): found (?P<found>[^\n]+?); "
    r"expected (?P<expected>[^\n;]+)(?:; (?P<fix>[^\n]+))?"
)
# The text of an `InputError`, by which a worker refuses a value of a column.
_UNREADABLE: Final = re.compile(rf"{InputError.title}:(?P<faults>(?:\n\s+- [^\n]+)+)")
_FAULT: Final = re.compile(
    r"- (?P<where>\S[^\n]*?): found (?P<found>[^\n]+?); expected (?P<expected>[^\n;]+)(?:; (?P<fix>[^\n]+))?"
)

_ROWS_OF_A_USER: Final = "max_rows_per_user"
_OF_INPUTS: Final = frozenset({*input_schemas(), _ROWS_OF_A_USER})

# Fixes where a policy of ``error`` met its case.
_FIXES: Final[Mapping[str, str]] = {
    "ties": "choose another policy: item_asc, item_desc or rank",
    "rank_gaps": "number the items of each list, or choose the policy renumber",
    "duplicates": "remove them, or choose the policy best",
    "held_out_duplicates": "remove them, or choose the policy max, sum or last",
    "missing": "give every judged user a list, or choose the policy zero or exclude",
    "zero_relevant": "remove these users, or choose another policy for them",
    "invalid_scores": "remove them, or choose the policy drop",
}


def find_refusal(text: str, *, is_call: bool = False) -> Fault | None:
    """Find what a policy, an input or a measure refused, in the words of a config or of a call; None without it."""
    if found := POLICY_REFUSED.search(text):
        place = "evaluate(policies=)" if is_call else "policies"
        fix = _FIXES.get(found["policy"], "")
        fault = Fault(f"{place}.{found['policy']}", found["what"], "no such case", fix)
        return call_fault(fault) if is_call else fault
    if found := INPUT_REFUSED.search(text):
        name = found["input"]
        in_config = f"inputs.{name}" if name in _OF_INPUTS else name
        in_call = f"evaluate(inputs=).{name}" if name == _ROWS_OF_A_USER else f"evaluate({name}=)"
        return Fault(in_call if is_call else in_config, found["found"], found["expected"], found["fix"])
    if found := _JUDGEMENT.search(text):
        fault = Fault(**found.groupdict(default=""))
        return call_fault(fault) if is_call else fault
    return None


def find_unreadable(text: str) -> InputError | None:
    """Read the faults of unreadable columns from the text of a worker's error; None if it has none."""
    found = _UNREADABLE.search(text)
    faults = _FAULT.finditer(found["faults"]) if found else ()
    return InputError(*(Fault(**each.groupdict(default="")) for each in faults)) if found else None


@contextmanager
def raise_as_call() -> Iterator[None]:
    """Raise what is refused within the block in the words of a call: what the inputs hold as a RefusedCallError.

    A job of Spark that fails because it was interrupted is a KeyboardInterrupt.
    """
    try:
        yield
    except (RefusedCallError, InvalidCallError):
        raise
    except ConfigError as error:
        raise InvalidCallError(*map(call_fault, error.faults)) from error.__cause__
    except JudgementError as error:
        raise type(error)(*map(call_fault, error.faults)) from error.__cause__
    except ChecksFailedError as error:
        raise RefusedCallError(*error.faults) from error
    except ValueError as error:  # of the engine, whose errors are known by their text here as on Spark
        fault = find_refusal(str(error), is_call=True)
        if fault is None:
            raise
        raise RefusedCallError(fault) from error
    except Exception as error:
        if _was_interrupted(error):  # pyspark cancels its jobs, and then fails for the answer of one
            raise KeyboardInterrupt from error
        raise


def _was_interrupted(error: BaseException | None) -> bool:
    """Return True where an interruption led to an error."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _was_interrupted(error.__context__))


def refuse_unknown_baseline(request: Request, models: Sequence[str], *, where: str = "evaluate(baseline=)") -> None:
    """Refuse a baseline that the log's ``models`` do not have; not where models are expected, or none are."""
    baseline = None if request.comparisons is None else request.comparisons.baseline
    faults = model_faults({where: baseline}, models) if request.models is None and baseline else []
    if faults:
        raise ConfigError(*faults)


def model_faults(
    wanted: Mapping[str, str],  # model by argument, such as ``agreement(baseline=)``
    models: Sequence[str],
) -> list[Fault]:
    """Find arguments that name a model the log does not have; an empty log has any."""
    expected = f"a model of the log: {', '.join(models)}"
    return [
        Fault(place, repr(name), expected, nearest(str(name), models))
        for place, name in wanted.items()
        if models and name not in models
    ]


Rewrite = tuple[str, str | Callable[[re.Match[str]], str]]  # a pattern, and what replaces it

_INPUTS: Final = "recommendations|held_out|segments|train|items|user_values|user_weights"
_WORD: Final = r"\b(?!(?:or|and)\b)[a-z_0-9-]+"
_WORDS: Final = rf"{_WORD}(?:, {_WORD})*(?: (?:or|and) {_WORD})?"

# Arguments of ``evaluate`` that are sections of a config; where two have a setting, the first is meant.
SECTION_MODELS: Final[dict[str, type[Model]]] = {
    "policies": Policies,
    "slicing": Slicing,
    "intervals": Intervals,
    "comparisons": Comparisons,
}
# Argument of ``evaluate`` that has a setting, by the setting; empty for one that is an argument itself.
SECTIONS: Final[Mapping[str, str]] = {
    **{name: section for section, model in reversed(SECTION_MODELS.items()) for name in model.model_fields},
    **dict.fromkeys(("measures", "baseline", "models", "slices", "preset", "evaluation_date"), ""),
}
# Values that YAML and Python write in other words.
_VALUES: Final = {"true": "True", "false": "False", "nothing": "None", "none": "None"}
# Types of tables in this process, by the names of Spark.
_PYTHON_TYPES: Final = {
    **{"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32"},
    **{"double": "float64", "string": "str", "boolean": "bool", "binary": "bytes", "void": "None"},
    "duration": "timedelta64",
    **{"timestamp_ntz": "datetime64", "timestamp": "datetime64 with a time zone", "array": "list", "struct": "dict"},
}
_EXAMPLES: Final = {
    "measures": 'such as measures=["nDCG@10", "P@5"]',
    "attribution_window": "such as '7d'",
    "gains": "such as {'column': 'event', 'values': {'purchase': 3}} or {'column': 'rating', 'edges': [4]}",
    "bands": "such as {'age': {'edges': [18, 25, 40]}, 'income': {'quantiles': 4}}",
}
# Expected where an example is the best fix.
_SHAPES: Final = ("a list", "a dict", "a value", "text", "this key", "a time such as 7d or 36h")


@contextmanager
def raise_with_words(words: Mapping[str, str]) -> Iterator[None]:
    """Raise the faults of a call within another call at the places of the outer one: parts of them are replaced."""
    try:
        yield
    except FaultsError as error:
        faults = list(error.faults)
        for inner, outer in words.items():
            faults = [replace(fault, where=fault.where.replace(inner, outer)) for fault in faults]
        raise type(error)(*faults) from error.__cause__


@contextmanager
def raise_in_call_words(
    *, is_on_spark: bool, function: str = "evaluate", sections: Mapping[str, str] = SECTIONS
) -> Iterator[None]:
    """Raise what is refused within the block in the words of a call of a function, see :func:`call_fault`."""
    try:
        yield
    except FaultsError as error:
        kind = InvalidCallError if type(error) is ConfigError else type(error)
        faults = [
            call_fault(fault, is_on_spark=is_on_spark, function=function, sections=sections) for fault in error.faults
        ]
        raise kind(*dict.fromkeys(faults)) from error.__cause__


def call_fault(
    fault: Fault,
    *,
    is_on_spark: bool = True,  # whether the tables are DataFrames of Spark, whose types keep their names
    function: str = "evaluate",
    sections: Mapping[str, str] = SECTIONS,  # of the settings of the function
) -> Fault:
    """Write a fault in the words of a call.

    >>> given = Fault("ties", "IPS with population 'truth'", "population 'judged'", "set population to judged")
    >>> call_fault(given, is_on_spark=False)
    Fault(where='evaluate(policies=).ties', found="IPS with population='truth'", expected="population='judged'", \
fix="pass policies={'population': 'judged'}")
    """
    # The place in a config or an input becomes that of the argument.
    where, found, expected = fault.where, _VALUES.get(fault.found, fault.found), fault.expected
    name, rest = re.match(r"(\w*)(.*)", where, re.DOTALL).groups()  # type: ignore[union-attr]  # it always matches
    section = sections.get(name)
    if re.fullmatch(_INPUTS, name):
        section = "inputs" if rest.startswith(".") else ""
    if section is not None:
        where = f"{function}({section}=).{name}{rest}" if section else f"{function}({name}=){rest}"
    argument = (re.findall(r"\.(\w+)$", where) or re.findall(r"\((\w+)=\)", where) or [""])[0]
    if missing := re.fullmatch(r"no '(?:[\w.]+\.)?(\w+)'", found):
        found, expected = f"no key {missing[1]!r}", "this key"
        if where == function:
            argument = missing[1]
            where, found, expected = f"{function}({argument}=)", "None", "a value"
    texts = [found, expected, fault.fix]
    for pattern, words in (*_setting_rules(argument, sections), *_RULES, *([] if is_on_spark else [_TYPES])):
        texts = [re.sub(pattern, words, text) for text in texts]
    found, expected, fix = texts
    if fix == "put it in quotes":
        fix = f'write "{found}"'
    if expected in _SHAPES and (not fix or expected == "text"):
        fix = _EXAMPLES.get(argument, fix)
    if not fix and (number := re.fullmatch(r"np\.\w+\(([\d.]+)\)", found)):
        fix = f"write {number[1].removesuffix('.0')}, a number of Python"
    return Fault(where, found, _VALUES.get(expected, expected), fix)


def _setting_rules(argument: str, sections: Mapping[str, str]) -> Iterator[Rewrite]:
    """Yield the rules for settings and their values; texts mean the setting ``argument`` where they name none."""

    def write_pass(name: str, words: str) -> str:
        """Write ``rank, or item_asc`` as ``pass policies={'ties': 'rank'}, or 'item_asc'``."""
        quoted = re.sub(_WORD, lambda found: _VALUES.get(found[0], repr(found[0])), words)
        quoted = re.sub(r"'(\d+)'", r"\1", quoted)
        section = sections.get(name)
        if not section:
            return f"pass {name}={quoted}"
        first, *others = re.split(r", | or | and ", quoted, maxsplit=1)
        return f"pass {section}={{{name!r}: {first}}}" + "".join(f", or {rest}" for rest in others)

    names = "|".join(sorted(sections, key=len, reverse=True))
    yield rf"\b({names}) ('{_WORD}')", r"\1=\2"
    yield rf"\bbut ({names}): ({_WORD})$", r"but \1='\2'"
    yield rf"\bleave the ({names}) out", r"leave \1= out"
    yield rf"\b(?:set|use) ({names})(?: (?:to )?({_WORDS})|$)", lambda found: write_pass(found[1], found[2] or "...")
    choice = rf"\bchoose (?:the policy|another policy:|other (ties), such as) ({_WORDS})"
    yield choice, lambda found: write_pass(found[1] or argument, found[2])
    number = r"-?[\d.]+"
    yield rf"^write \[({number})\]$", rf"write {argument}=[\1]"
    yield r"^write \[(.*)\]$", lambda found: f"write {argument}=[{json.dumps(found[1], ensure_ascii=False)}]"
    if sections is SECTIONS:  # other functions have no argument `inputs`
        renamed = rf", or pass inputs={{'{argument}': {{'columns': {{'\2': '\1'}}}}}}"
        yield r"\bdid you mean '([^']+)'\? rename it to (\w+)$", r"\g<0>" + renamed


def _write_python_type(name: str) -> str:
    """Write a type of Spark as Python does.

    >>> _write_python_type("array<bigint>"), _write_python_type("array<struct<movieId:bigint,rating:double>>")
    ('list[int64]', 'list[dict[movieId: int64, rating: float64]]')
    """
    words = re.sub(r"[a-z_]+\b(?!:)", lambda found: _PYTHON_TYPES.get(found[0], found[0]), name)
    return re.sub(r"([:,])", r"\1 ", words).replace("<", "[").replace(">", "]")


_RULES: Final[tuple[Rewrite, ...]] = (
    (r"; a config names it under [\w.]+", ""),
    (r"^true(?= with )", "True"),
    (r"^use spark\.settings with \$\{env:NAME\}$", "set it in the environment"),
    (r"\bmean format: (\w+)", r"mean 'format': '\1'"),
    (r"\btrue or false\b", "True or False"),
    (r"\bkeys with values\b", "a dict"),
    (rf"\badd the input ({_INPUTS})", r"pass \1="),
    (rf"\bthe input ({_INPUTS}), or ({_INPUTS})", r"\1= or \2="),
    (rf"\bthe input ({_INPUTS})", r"\1="),
    (r"\bwrite values: .* or edges: \[4\]", "write 'values': {'purchase': 3, 'view': 1} or 'edges': [4]"),
    (r"\bwrite edges: (\[.*\])", r"write {'edges': \1}"),
    (r"\badd t$", 'add "t"'),
)
# Names of the types of columns.
_TYPES: Final[Rewrite] = (
    r"(?:(?<=type )|(?<=read as ))[a-z_]+\d*(?:<\S*>)?|(?<= has )(?:bigint|string)$",
    lambda found: _write_python_type(found[0]),
)
