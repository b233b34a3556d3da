"""The base of all config models, and the types of value that YAML is read into without guessing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from rankeval_spark.errors import Fault

FOLDER_KEY = "folder"
"""Key of the validation context that holds the folder relative paths start from."""

# Strict: "30" is not a number and `true` is not 1. Text needs no strictness, pydantic never makes text of a number.
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]


class Model(BaseModel):
    """A part of the configuration: frozen, without unknown keys, and valid once it exists.

    A key that is written without a value means the same as a key that is left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever was written
        if isinstance(values, Mapping):
            return {key: value for key, value in values.items() if value is not None}
        return values


def fault_error(*faults: Fault) -> PydanticCustomError:
    """Pack faults into the error a validator raises; ``where`` is relative to the validated value.

    Where it begins with ``/``, it is another key of the file. Pydantic collects the errors of all validators, so that
    every fault of a file is reported at once.
    """
    return PydanticCustomError("faults", "not valid", {"faults": faults})


def with_faults(error: ValidationError, faults: Sequence[Fault]) -> ValidationError:
    """Add faults to what pydantic found in the same value."""
    found = [
        InitErrorDetails(
            type=PydanticCustomError(one["type"], one["msg"], one.get("ctx")), loc=one["loc"], input=one["input"]
        )
        for one in error.errors(include_url=False)
    ]
    more = [InitErrorDetails(type=fault_error(*faults), loc=(), input=None)] if faults else []
    return ValidationError.from_exception_data(error.title, [*found, *more])


def repeated_faults(values: Sequence[object], what: str) -> list[Fault]:
    """Make one fault for every value that occurs in the list a second time."""
    return [
        Fault(f"[{index}]", f"{what} {value!r} a second time", "each once", "remove one of them")
        for index, value in enumerate(values)
        if value in values[:index]
    ]


def refuse_repeated(values: Sequence[object], what: str) -> None:
    """Raise the faults of :func:`repeated_faults`, if there are any."""
    faults = repeated_faults(values, what)
    if faults:
        raise fault_error(*faults)


def some_models_once(models: tuple[str, ...] | None, *, every: str) -> tuple[str, ...] | None:
    """Refuse a list of models that names none, or one of them twice; ``every`` says how to ask for all."""
    if models == ():
        raise fault_error(Fault("", "an empty list", "at least one model", every))
    refuse_repeated(models or (), "model")
    return models
