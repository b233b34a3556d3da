"""Read a config file: YAML, overrides from the command line, validation. All faults are reported at once."""

from __future__ import annotations

import datetime as dt
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError

from rankeval_spark.allowed_folders import require_allowed
from rankeval_spark.config.evaluation_config import EvaluationConfig
from rankeval_spark.config.reading import overrides as overriding, yaml_reader
from rankeval_spark.config.reading.validation_faults import Locate, validation_faults
from rankeval_spark.config.sections.base import FOLDER_KEY, Model
from rankeval_spark.errors import ConfigError, Fault, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankeval_spark.config.reading.yaml_reader import Document, Place

AnyModel = TypeVar("AnyModel", bound=Model)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_YEAR_FIRST = re.compile(r"(\d{4})[-/.]?(\d{1,2})[-/.]?(\d{1,2})", re.ASCII)

FIRST_DATE: Final = dt.date(1900, 1, 1)
LAST_DATE: Final = dt.date(2199, 12, 31)
"""Bounds of an evaluation date; other dates are computed from it and must exist too."""


def load_config(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> EvaluationConfig:
    """Read and validate the config of an evaluation.

    Relative paths in the file start from its folder. Overrides are ``key=value``, such as ``cutoffs[0]=5``.

    Raises
    ------
    ConfigError
        Every fault of the file and of the overrides.
    """
    where = os.fspath(path)
    document = yaml_reader.parse(_read(Path(path)), where)
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise ConfigError(Fault(where, f"a {type(data).__name__}", "keys with values, such as evaluation: nightly"))
    written, faults = overriding.apply(data, overrides)
    locate = _locator(where, document, written)
    try:
        config = validate_model(EvaluationConfig, data, locate=locate, folder=str(Path(path).resolve().parent))
    except ConfigError as error:
        raise ConfigError(*document.faults, *faults, *error.faults) from None
    if document.faults or faults:
        raise ConfigError(*document.faults, *faults)
    return config


def validate_model(
    model: type[AnyModel], values: Mapping[str, Any], *, locate: Locate = yaml_reader.place_text, folder: str = ""
) -> AnyModel:
    """Build a model from plain data, or raise a :class:`ConfigError` with all of its faults.

    ``locate`` writes where a value is, by default only its place, such as ``ties``. Relative paths start from
    ``folder``, by default the working directory.
    """
    try:
        return model.model_validate(values, context={FOLDER_KEY: folder})
    except ValidationError as error:
        raise ConfigError(*validation_faults(error, model, locate)) from None


def parse_date(text: str, where: str = "--date") -> dt.date:
    """Read an evaluation date, strictly ``YYYY-MM-DD``.

    Raises
    ------
    ConfigError
        If it is written in another way, no such day exists, or it is not from 1900 to 2199.
    """
    if not _ISO_DATE.fullmatch(text):
        raise ConfigError(Fault(where, repr(text), "a date as YYYY-MM-DD", _as_iso(text) or "such as 2026-01-31"))
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        raise ConfigError(Fault(where, repr(text), "a day of the calendar, as YYYY-MM-DD")) from None
    if not FIRST_DATE <= day <= LAST_DATE:
        raise ConfigError(Fault(where, repr(text), f"a date from {FIRST_DATE} to {LAST_DATE}"))
    return day


def check_roots(config: EvaluationConfig, date: dt.date, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a config that names a path outside the allowed folders; links and ``..`` are followed first.

    Tables of a catalog are not checked: the catalog has its own permissions.

    Raises
    ------
    ConfigError
        Every path outside.
    """
    named = {
        f"inputs.{name}.{key}": location
        for name, one in config.inputs
        if one
        for key, location in one.locations(date).items()
    }
    named["results.root"] = config.results.location
    require_allowed(*named.items(), environment=environment)


def _as_iso(text: str) -> str:
    """Write a date whose year comes first as it should be; empty for other text, whose order of parts is a guess."""
    parts = _YEAR_FIRST.fullmatch(text)
    return "" if parts is None else f"did you mean {parts[1]}-{parts[2]:0>2}-{parts[3]:0>2}?"


def _read(path: Path) -> str:
    where = str(path)
    try:
        _refuse_special(path)
        with path.open("rb") as file:
            content = file.read(4 * yaml_reader.MAX_CHARACTERS + 1)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(Fault(where, "no such file", "a config file", _nearest_file(path))) from None
    except IsADirectoryError:
        raise ConfigError(Fault(where, "a folder", "a config file", _nearest_file(path / "x.yaml"))) from None
    except OSError as error:
        raise ConfigError(Fault(where, f"a file that cannot be read ({error.strerror})", "a config file")) from None
    except UnicodeDecodeError:
        raise ConfigError(Fault(where, "bytes that are not UTF-8", "a text file in UTF-8")) from None


def _refuse_special(path: Path) -> None:
    """Refuse pipes, sockets and devices, which may block the reader for ever."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        found = kinds.get(stat.S_IFMT(mode), "a device")
        raise ConfigError(Fault(str(path), found, "a config file", "write its content to a file first"))


def _nearest_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    names = sorted(file.name for file in folder.iterdir() if file.suffix in (".yaml", ".yml"))
    hint = nearest(path.name, names)
    if hint or not names:
        return hint
    return f"the folder has {', '.join(names[:5])}"


def _locator(where: str, document: Document, written: Mapping[Place, str]) -> Locate:
    """Say where a value is: the place in the file with its line, or the override."""

    def locate(place: Place) -> str:
        for end in range(len(place), 0, -1):
            if place[:end] in written:
                return f"{written[place[:end]]}, {yaml_reader.place_text(place)}"
        if place and place not in document.lines:
            for override_place, override in written.items():
                if override_place[: len(place)] == place:
                    return override
        return yaml_reader.where_of(where, place, document.line(place) if place else None)

    return locate
