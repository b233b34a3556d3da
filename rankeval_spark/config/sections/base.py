"""Base of all config models, and strict types for values from YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, Strict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from rankeval_spark.errors import Fault

FOLDER_KEY = "folder"
"""Key of the validation context: the folder from which relative paths start."""

# Strict: "30" is not a number and `true` is not 1. pydantic never converts a number to text.
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Values = TypeVar("Values", bound=tuple[object, ...])


class Model(BaseModel):
    """Part of the configuration: frozen, without unknown keys, valid once it exists.

    A key without a value means the same as a key that is left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever was written
        if isinstance(values, Mapping):
            return {key: value for key, value in values.items() if value is not None}
        return values


class ModelWithPaths(Model):
    """Part of the configuration whose relative paths start from the folder of the config file."""

    _folder: str = PrivateAttr(default="")

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - signature of pydantic
        """Remember the folder of the config file."""
        if context:
            self._folder = context[FOLDER_KEY]


def fault_error(*faults: Fault) -> PydanticCustomError:
    """Pack faults into the error that a validator raises.

    ``where`` of a fault is relative to the validated value, or another key of the file if it begins with ``/``.
    Pydantic collects the errors of all validators, so all faults of a file are reported at once.
    """
    return PydanticCustomError("faults", "not valid", {"faults": faults})


def refuse_faults(faults: Sequence[Fault]) -> None:
    """Raise the faults, if there are any."""
    if faults:
        raise fault_error(*faults)


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
    """Build one fault for every value that occurs in the list a second time."""
    return [
        Fault(f"[{index}]", f"{what} {value!r} a second time", "each once", "remove one of them")
        for index, value in enumerate(values)
        if value in values[:index]
    ]


def each_once(what: str) -> AfterValidator:
    """Refuse a value that occurs in a list a second time; ``what`` names one of them."""

    def check(values: Values) -> Values:
        refuse_faults(repeated_faults(values, what))
        return values

    return AfterValidator(check)


def some_models_once(models: tuple[str, ...] | None, *, every: str) -> tuple[str, ...] | None:
    """Refuse an empty list of models, or a model that occurs twice; ``every`` says how to request all models."""
    if models == ():
        raise fault_error(Fault("", "an empty list", "at least one model", every))
    refuse_faults(repeated_faults(models or (), "model"))
    return models
