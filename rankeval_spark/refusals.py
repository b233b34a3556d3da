"""Faults of refused evaluations, read from an error's text: Spark passes on no more of a worker's error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rankeval_spark.call_words import call_fault
from rankeval_spark.engine.failures import INPUT_REFUSED, POLICY_REFUSED
from rankeval_spark.errors import (
    ChecksFailedError,
    ConfigError,
    Fault,
    InputError,
    InvalidCallError,
    JudgementError,
    RefusedCallError,
    nearest,
)
from rankeval_spark.inputs.input_columns import input_schemas

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request

# The text of a `JudgementError` with one fault, among the lines of a worker's traceback.
_JUDGEMENT: Final = re.compile(
    JudgementError.title + r":\s+- (?P<where>\w[^\n]*?): found (?P<found>[^\n]+?); "
    r"expected (?P<expected>[^\n]+?); (?P<fix>[^\n]+)"
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


def refusal_in(text: str, *, is_call: bool = False) -> Fault | None:
    """Find what a policy, an input or a measure refused; None where nothing of it is in the text.

    With ``is_call``, the settings are arguments of ``evaluate``, and not keys of a config.
    """
    if found := POLICY_REFUSED.search(text):
        place = "evaluate(policies=)" if is_call else "policies"
        fix = _FIXES.get(found["policy"], "")
        fault = Fault(f"{place}.{found['policy']}", found["what"], "no such case", fix)
        return _of_call(fault) if is_call else fault
    if found := INPUT_REFUSED.search(text):
        name = found["input"]
        in_config = f"inputs.{name}" if name in _OF_INPUTS else name
        in_call = f"evaluate(inputs=).{name}" if name == _ROWS_OF_A_USER else f"evaluate({name}=)"
        return Fault(in_call if is_call else in_config, found["found"], found["expected"], found["fix"])
    if found := _JUDGEMENT.search(text):
        fault = Fault(**found.groupdict())
        return _of_call(fault) if is_call else fault
    return None


def _of_call(fault: Fault) -> Fault:
    """Write a fault that was found where results are computed in the words of a call."""
    return call_fault(fault, is_on_spark=True)


def unreadable_in(text: str) -> InputError | None:
    """Find the columns that a worker could not read; None where the text has none."""
    found = _UNREADABLE.search(text)
    faults = _FAULT.finditer(found["faults"]) if found else ()
    return InputError(*(Fault(**each.groupdict(default="")) for each in faults)) if found else None


@contextmanager
def refusals_of_call() -> Iterator[None]:
    """Raise what is refused within the block in the words of a call: what the inputs hold as a RefusedCallError."""
    try:
        yield
    except (RefusedCallError, InvalidCallError):
        raise
    except ConfigError as error:
        raise InvalidCallError(*map(_of_call, error.faults)) from error.__cause__
    except JudgementError as error:
        raise JudgementError(*map(_of_call, error.faults)) from error
    except ChecksFailedError as error:
        raise RefusedCallError(*error.faults) from error
    except ValueError as error:  # of the engine, whose errors are known by their text here as on Spark
        fault = refusal_in(str(error), is_call=True)
        if fault is None:
            raise
        raise RefusedCallError(fault) from error


def refuse_unknown_baseline(request: Request, models: Sequence[str], *, where: str = "evaluate(baseline=)") -> None:
    """Refuse a baseline that the log does not name; one that is among the expected models may have no list.

    ``models`` are names; an empty log has none, and refuses none. ``where`` is the argument or key of the baseline.
    """
    baseline = None if request.comparisons is None else request.comparisons.baseline
    faults = model_faults({where: baseline}, models) if request.models is None and baseline else []
    if faults:
        raise ConfigError(*faults)


def model_faults(wanted: Mapping[str, str], models: Sequence[str]) -> list[Fault]:
    """Find models, by the argument that names each, that an evaluation does not have; an empty log has any."""
    expected = f"a model of the log: {', '.join(models)}"
    return [
        Fault(place, repr(name), expected, nearest(str(name), models))
        for place, name in wanted.items()
        if models and name not in models
    ]
