"""Read a config: of a file (YAML, overrides from the command line), or as a run recorded it. Faults come all at once.

Overrides are ``--set policies.ties=item_desc`` or ``--set cutoffs[1]=20``.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from rankeval_spark.allowed_folders import STORE_SETTINGS, require_allowed
from rankeval_spark.config import spark_settings, yaml_reader
from rankeval_spark.config.base import FOLDER_KEY, RECORDED_KEY, Model
from rankeval_spark.config.evaluation_config import EvaluationConfig
from rankeval_spark.config.spark_settings import has_secret, is_credential
from rankeval_spark.config.yaml_reader import Place, place_text
from rankeval_spark.errors import REDACTED, ConfigError, Fault, FaultsError, kind_of, nearest, shortened, warn_user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

    from rankeval_spark.config.yaml_reader import Document

AnyModel = TypeVar("AnyModel", bound=Model)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_YEAR_FIRST = re.compile(r"(\d{4})[-/.]?(\d{1,2})[-/.]?(\d{1,2})", re.ASCII)

# Bounds of an evaluation date; other dates are computed from it and must exist too.
FIRST_DATE: Final = dt.date(1900, 1, 1)
LAST_DATE: Final = dt.date(2199, 12, 31)


def load_config(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> EvaluationConfig:
    """Read and validate the config of an evaluation.

    Relative paths in the file start from its folder. Overrides are ``key=value``, such as ``cutoffs[0]=5``. ConfigError
    with every fault of the file and of the overrides.
    """
    where = os.fspath(path)
    document = yaml_reader.parse(_read_text(Path(path)), where)
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise ConfigError(Fault(where, f"a {type(data).__name__}", "keys with values, such as evaluation: nightly"))
    written, faults = dict[Place, str](), [*document.faults]
    for override in overrides:
        shown = _show_override(override)
        try:
            place, value = _parse_override(override, shown)
            _set_value(data, place, value, shown)
            written[place] = shown
        except FaultsError as error:
            faults += error.faults
    locate = _locate_in_file(where, document, written)
    try:
        config = validate_model(EvaluationConfig, data, locate=locate, folder=str(Path(path).resolve().parent))
    except ConfigError as error:
        raise ConfigError(*faults, *error.faults) from None
    if faults:
        raise ConfigError(*faults)
    STORE_SETTINGS.clear()
    STORE_SETTINGS.update(config.stores.model_dump(exclude_none=True))
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


def recorded_values(text: str) -> dict[str, Any]:
    """Return the values of a config as a run recorded it, under the names that their keys have now."""
    config: dict[Any, Any] = json.loads(text)
    for (section, key), name in _RENAMED.items():
        if key in config.get(section, {}):
            config[section].setdefault(name, config[section].pop(key))
    return config


def read_recorded(values: Mapping[str, Any], *, folder: str = "") -> EvaluationConfig:
    """Build a config from recorded values; keys that this version does not have are ignored, and a warning names them.

    No plugin is imported: data of results must not choose what code runs.

    ConfigError with every other fault. Relative paths start from ``folder``, by default the working directory.
    """
    kept, ignored = deepcopy(dict(values)), list[str]()
    while True:
        try:
            config = EvaluationConfig.model_validate(kept, context={FOLDER_KEY: folder, RECORDED_KEY: True})
        except ValidationError as error:
            places = list(_unknown_places(error))
            if not places:
                raise ConfigError(*validation_faults(error, EvaluationConfig, place_text)) from None
            for *above, key in places:
                section: Any = kept
                for part in above:
                    section = section[part]
                del section[key]
            ignored += map(place_text, places)
            continue
        if ignored:
            names = ", ".join(sorted(ignored))
            warn_user(f"a recorded config has keys that this version does not know and ignores: {names}")
        return config


def parse_date(text: str, where: str = "--date") -> dt.date:
    """Read an evaluation date, strictly ``YYYY-MM-DD``, of a day that exists from 1900 to 2199; else ConfigError."""
    if not _ISO_DATE.fullmatch(text):
        parts = _YEAR_FIRST.fullmatch(text)  # the order of the parts of other text is a guess
        fix = f"did you mean {parts[1]}-{parts[2]:0>2}-{parts[3]:0>2}?" if parts else "such as 2026-01-31"
        raise ConfigError(Fault(where, repr(text), "a date as YYYY-MM-DD", fix))
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        raise ConfigError(Fault(where, repr(text), "a day of the calendar, as YYYY-MM-DD")) from None
    if not FIRST_DATE <= day <= LAST_DATE:
        raise ConfigError(Fault(where, repr(text), f"a date from {FIRST_DATE} to {LAST_DATE}"))
    return day


def check_roots(config: EvaluationConfig, date: dt.date, environment: Mapping[str, str] = os.environ) -> None:
    """Raise ConfigError with every path outside the allowed folders; a catalog has its own permissions."""
    locations = {
        f"inputs.{name}.{key}": location
        for name, input_ in config.inputs.given.items()
        for key, location in input_.locations(date).items()
    }
    if config.results.root is not None:
        locations["results.root"] = config.results.location
    require_allowed(*locations.items(), environment=environment)


def _read_text(path: Path) -> str:
    """Read the text of a config; ConfigError if it is no file of UTF-8."""
    where = str(path)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # pipes, sockets and devices may block for ever
            kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
            found = kinds.get(stat.S_IFMT(mode), "a device")
            raise ConfigError(Fault(where, found, "a config file", "write its content to a file first"))
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


def _nearest_file(path: Path) -> str:
    """Return the hint for a missing config: the most similar name in its folder, or those that it has."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    names = sorted(file.name for file in folder.iterdir() if file.suffix in (".yaml", ".yml"))
    hint = nearest(path.name, names)
    if hint or not names:
        return hint
    return f"the folder has {', '.join(names[:5])}"


def _locate_in_file(where: str, document: Document, written: Mapping[Place, str]) -> Locate:
    """Return the function that writes where a value is: the place in the file with its line, or the override."""

    def locate(place: Place) -> str:
        for end in range(len(place), 0, -1):
            if place[:end] in written:
                return f"{written[place[:end]]}, {yaml_reader.place_text(place)}"
        if place and place not in document.lines:
            for override_place, override in written.items():
                if override_place[: len(place)] == place:
                    return override
        return yaml_reader.location_text(where, place, document.line(place) if place else None)

    return locate


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_KEY = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[\d+\])*")
_SETTINGS = "spark.settings."
_QUOTED = """the value is YAML: quote text with special characters twice, such as --set 'a.sep=","'"""


def _parse_override(override: str, shown: str) -> tuple[Place, Any]:
    """Split ``key=value``, the value as YAML, into the place and plain data; ``shown`` is the override in messages."""
    key, equals, text = override.partition("=")
    if not equals or not _KEY.fullmatch(key):
        raise ConfigError(Fault(shown, repr(key), "key=value, such as policies.ties=item_desc"))
    try:
        document = yaml_reader.parse(text, shown)
        faults = document.faults
    except ConfigError as error:
        faults = error.faults
    if faults:
        placed = [replace(fault, where=shown, fix=fault.fix or _QUOTED) for fault in faults]
        if shown.endswith(REDACTED):
            placed = [replace(fault, found=REDACTED) for fault in placed]
        raise ConfigError(*placed)
    place: Place = ("spark", "settings", key.removeprefix(_SETTINGS))  # keys of Spark contain dots
    if not key.startswith(_SETTINGS):
        parts = [name or index for name, index in _STEP.findall(key)]
        place = tuple(int(part) if part.isdigit() else part for part in parts)
    if len(place) > yaml_reader.MAX_DEPTH:
        raise ConfigError(Fault("--set", f"a key of {len(place)} parts", f"at most {yaml_reader.MAX_DEPTH}"))
    return place, document.data


def _show_override(override: str) -> str:
    """Write an override for a message, without a secret."""
    key, _, text = override.partition("=")
    is_hidden = spark_settings.is_secret(key, text) or (":" in text and spark_settings.is_credential(text))
    return f"--set {key}={REDACTED}" if is_hidden else f"--set {override}"


def _set_value(data: Any, place: Place, value: Any, where: str) -> None:  # noqa: ANN401 - plain data of any shape
    """Write a value to a place of plain data; mappings and lists on the way are made where they are missing."""
    for depth, part in enumerate(place):
        is_last = depth + 1 == len(place)
        new: Any = value if is_last else [] if isinstance(place[depth + 1], int) else {}
        if isinstance(part, int) and isinstance(data, list) and part <= len(data):
            if part == len(data):
                data.append(new)
            elif is_last:
                data[part] = new
        elif isinstance(part, str) and isinstance(data, dict):
            if is_last or data.get(part) is None:
                data[part] = new
        else:
            has = f"a list of {len(data)}" if isinstance(data, list) else "a value without such keys"
            expected = "a key of the config, or an index of a list (one past its end adds)"
            raise ConfigError(Fault(where, f"{part!r} in {has}", expected))
        data = data[part]


Locate = Callable[[Place], str]  # writes where a value is, for messages


def locate_in_call(function: str) -> Locate:
    """Return the function that writes a place of a call: ``evaluate(slices=)[0]``, ``evaluate(policies=).ties``."""

    def locate(place: Place) -> str:
        below = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[1:])
        return f"{function}({place[0]}=){below}" if place else function

    return locate


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
    **dict.fromkeys(("date_type", "date_from_datetime_parsing", "date_parsing"), "a date such as 2026-01-31"),
}
# Keys by the words that other tools have for them.
_OTHER_WORDS: Final = {"min": "at_least", "minimum": "at_least", "max": "at_most", "maximum": "at_most"}
_SEPARATOR_WORDS: Final = ("sep", "separator", "delimiter", "delim")  # of csv: an option of its reader
# Section and key of configs of earlier versions, and the name that the key has now.
_RENAMED: Final[dict[Place, str]] = {
    ("checks", "null_gains"): "invalid_gains",
    ("checks", "null_values"): "invalid_values",
}
_UNKNOWN_KEY: Final = "unknown key"


def validation_faults(error: ValidationError, model: type[BaseModel], locate: Locate) -> list[Fault]:
    """Translate every error of a validation once, in the order of the model's keys; missing keys come first.

    Unknown keys come before them: a misspelt key is often why another one is missing, or why a rule lacks its baseline.
    """
    order = {name: number for number, name in enumerate(model.model_fields)}
    placed = [pair for details in error.errors(include_url=False) for pair in _translate_error(details, model)]
    placed.sort(key=lambda pair: order.get(str(pair[0][0]), -1) if pair[0] else -1)
    faults = dict.fromkeys(replace(fault, where=locate(place)) for place, fault in placed)
    return sorted(faults, key=lambda fault: not fault.found.startswith(_UNKNOWN_KEY))


def _translate_error(details: ErrorDetails, model: type[BaseModel]) -> list[tuple[Place, Fault]]:
    """Translate an error into faults, each with its place."""
    place: Place = tuple(part for part in details["loc"] if part != "[key]")
    context, value = details.get("ctx", {}), details["input"]
    match details["type"]:
        case "faults":
            found = []
            for fault in context["faults"]:  # `where` is as `base.fault_error` says; a key of Spark contains dots
                parts = re.findall(r"/([^/.\[]+)|\[(\d+)\]|\.(.+)", fault.where)
                below = tuple(int(index) if index else above or name for above, index, name in parts)
                found.append((below if fault.where.startswith("/") else (*place, *below), fault))
            return found
        case "extra_forbidden":
            keys = _list_keys(model, place[:-1])
            ours = _RENAMED.get(place[-2:]) or _OTHER_WORDS.get(str(place[-1]))
            fix = f"did you mean {ours!r}?" if ours in keys else nearest(str(place[-1]), keys)
            if "options" in keys and place[-1] in _SEPARATOR_WORDS:
                fix = "write options: {sep: ...}"
            fix = _suggest_section(str(place[-1]), model, keys) or fix
            return [(place, Fault("", f"{_UNKNOWN_KEY} {place[-1]!r}", f"one of {', '.join(keys)}", fix))]
        case "missing":
            return [(place[:-1], Fault("", f"no {place_text(place)!r}", "this key, it is required"))]
        case "literal_error":
            keys = re.findall(r"'([^']*)'", context["expected"])
            fault = Fault("", _show_value(value, place), f"one of {', '.join(keys)}", nearest(str(value), keys))
        case "too_short":
            # pydantic counts only valid elements; here only what is too short in the file is called so
            least, n_given = context["min_length"], len(value)
            if n_given >= least:
                return []
            words = (
                ("an empty list", "at least one element") if least == 1 else (f"{n_given} named", f"at least {least}")
            )
            return [(place, Fault("", *words))]
        case kind:
            expected = _EXPECTED.get(kind, re.sub(r"^\w+ should (be |have )?", "", details["msg"]))
            fix = ""
            if kind == "string_type" and isinstance(value, int | float):
                fix = "put it in quotes"
            elif kind == "tuple_type" and isinstance(value, str | int):
                fix = f"write [{value if _show_value(value, place) != REDACTED else '...'}]"
            elif kind == "less_than" and isinstance(value, int | float) and 1 < value < 100:  # noqa: PLR2004 - percent
                fix = f"did you mean {value / 100:g}?"
            fault = Fault("", _show_value(value, place), expected, fix)
    return [(place, fault)]


def _suggest_section(key: str, model: type[BaseModel], keys: Sequence[str]) -> str:
    """Return the fix for a key that stands above its section; empty if no section has it, or a letter is missing."""
    if get_close_matches(key, keys, n=1, cutoff=0.9):  # `slice` is `slices`, not `gates.slice`
        return ""
    sections = {name: _find_model(model.model_fields[name].annotation) for name in keys if name in model.model_fields}
    with_key = [name for name, section in sections.items() if section is not None and key in section.model_fields]
    return f"did you mean '{with_key[0]}.{key}'?" if with_key else ""


def _unknown_places(error: ValidationError) -> Iterator[Place]:
    """Yield the places of the unknown keys among the errors of a validation, each once."""
    for details in error.errors(include_url=False):
        if details["type"] == "extra_forbidden":
            yield details["loc"]
        for fault in details.get("ctx", {}).get("faults", ()):
            if fault.found.startswith(_UNKNOWN_KEY):  # of columns, types and options, which are mappings
                yield *details["loc"], fault.where[1:]


def _show_value(value: object, place: Place) -> str:
    """Write a value for a message: without secrets, and short."""
    is_webhook = place[:1] == ("notify",) and "/" in str(value)  # wherever in the section it stands
    if is_webhook or any(is_credential(str(part)) for part in place):
        return REDACTED
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "keys with values" if isinstance(value, dict) else "a list"
    if has_secret(str(value)):
        return REDACTED
    shown = repr(value)
    return shortened(shown) if "\n" not in shown else f"a {kind_of(value)}"  # such as a frame, in a call


def _list_keys(model: type[BaseModel], place: Place) -> list[str]:
    """List the keys of the section at a place of a model."""
    for part in place:
        if part in model.model_fields:
            model = _find_model(model.model_fields[str(part)].annotation) or model
    return list(model.model_fields)


def _find_model(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    """Return the model in the type of a key, such as ``X`` of ``tuple[X, ...] | None``; None without one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _find_model(part))), None)
