"""Translate errors of pydantic into faults: place, what was found, what was expected, nearest fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel, ValidationError

from rankeval_spark.config.reading.yaml_reader import Place, place_text
from rankeval_spark.config.redaction import has_secret, is_credential
from rankeval_spark.errors import REDACTED, Fault, nearest, shortened

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Locate = Callable[[Place], str]
"""Writes where a value is, for messages."""

_EXPECTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "mapping_type": "keys with values",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "finite_number": "a finite number",
}
_OTHER_WORDS: Final = {"min": "at_least", "minimum": "at_least", "max": "at_most", "maximum": "at_most"}
"""Keys by the words that other tools have for them."""

_SEPARATOR_WORDS: Final = ("sep", "separator", "delimiter", "delim")
"""Words for the separator of csv, which is an option of its reader."""

_UNKNOWN_KEY: Final = "unknown key"
_QUOTE_FIX: Final = "put it in quotes"


def validation_faults(error: ValidationError, model: type[BaseModel], locate: Locate) -> list[Fault]:
    """Translate every error of a validation; the keys of ``model`` serve to suggest the nearest one.

    Unknown keys come first: a misspelt key is often why another one is missing, or why a rule lacks its baseline.
    """
    faults = [fault for details in error.errors(include_url=False) for fault in _faults(details, model, locate)]
    return sorted(faults, key=lambda fault: not fault.found.startswith(_UNKNOWN_KEY))


def _faults(details: ErrorDetails, model: type[BaseModel], locate: Locate) -> list[Fault]:
    place: Place = tuple(part for part in details["loc"] if part != "[key]")
    context = details.get("ctx", {})
    match details["type"]:
        case "faults":
            return [_below(fault, place, locate) for fault in context["faults"]]
        case "extra_forbidden":
            known = _keys(model, place[:-1])
            ours = _OTHER_WORDS.get(str(place[-1]))
            fix = f"did you mean {ours!r}?" if ours in known else nearest(str(place[-1]), known)
            if "options" in known and place[-1] in _SEPARATOR_WORDS:
                fix = "write options: {sep: ...}"
            return [Fault(locate(place), f"{_UNKNOWN_KEY} {place[-1]!r}", f"one of {', '.join(known)}", fix)]
        case "missing":
            return [Fault(locate(place[:-1]), f"no {place_text(place)!r}", "this key, it is required")]
        case "literal_error":
            known = re.findall(r"'([^']*)'", context["expected"])
            fix = nearest(str(details["input"]), known)
            return [Fault(locate(place), _found(details["input"], place), f"one of {', '.join(known)}", fix)]
        case "too_short":
            # pydantic counts only valid elements; here only a list that is empty in the file is called empty
            return [] if details["input"] else [Fault(locate(place), "an empty list", "at least one element")]
        case _:
            return [_plain_fault(details, place, locate)]


def _plain_fault(details: ErrorDetails, place: Place, locate: Locate) -> Fault:
    kind, value = details["type"], details["input"]
    expected = _EXPECTED.get(kind, re.sub(r"^\w+ should (be |have )?", "", details["msg"]))
    fix = ""
    if kind == "string_type" and isinstance(value, int | float):
        fix = _QUOTE_FIX
    elif kind == "tuple_type" and isinstance(value, str | int):
        fix = f"write [{value}]"
    elif kind == "less_than" and isinstance(value, int | float) and 1 < value < 100:  # noqa: PLR2004 - percent
        fix = f"did you mean {value / 100:g}?"
    return Fault(locate(place), _found(value, place), expected, fix)


def _below(fault: Fault, place: Place, locate: Locate) -> Fault:
    """Complete the place of a fault that a validator raised, see ``base.fault_error``."""
    if fault.where.startswith("/"):
        return Fault(locate((fault.where[1:],)), fault.found, fault.expected, fault.fix)
    parts = re.findall(r"\[(\d+)\]|\.(.+)", fault.where)
    below = tuple(int(index) if index else name for index, name in parts)
    return Fault(locate((*place, *below)), fault.found, fault.expected, fault.fix)


def _found(value: object, place: Place) -> str:
    if any(is_credential(str(part)) for part in place):
        return REDACTED
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "keys with values" if isinstance(value, dict) else "a list"
    if has_secret(str(value)):
        return REDACTED
    return shortened(repr(value))


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    for part in place:
        if part in model.model_fields:
            model = _model_in(model.model_fields[str(part)].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
