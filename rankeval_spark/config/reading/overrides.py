"""Overrides from the command line: ``--set policies.ties=item_desc``, ``--set cutoffs[1]=20``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankeval_spark.config import redaction
from rankeval_spark.config.reading import yaml_reader
from rankeval_spark.errors import REDACTED, ConfigError, Fault, FaultsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config.reading.yaml_reader import Place

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_KEY = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[\d+\])*")
_SETTINGS = "spark.settings."
_QUOTED = """the value is YAML: quote text with special characters twice, such as --set 'a.sep=","'"""


def apply(data: dict[str, Any], overrides: Sequence[str]) -> tuple[dict[Place, str], list[Fault]]:
    """Write overrides (``key=value``, the value as YAML) into the data of a file, in place and in order.

    Returns the place of every override with its text, and a fault for every override that cannot be applied.
    """
    written: dict[Place, str] = {}
    faults: list[Fault] = []
    for override in overrides:
        try:
            place, value = _parse(override)
            _write(data, place, value, _shown(override))
            written[place] = _shown(override)
        except FaultsError as error:
            faults.extend(error.faults)
    return written, faults


def _parse(override: str) -> tuple[Place, Any]:
    key, equals, text = override.partition("=")
    if not equals or not _KEY.fullmatch(key):
        raise ConfigError(Fault(_shown(override), repr(key), "key=value, such as policies.ties=item_desc"))
    try:
        document = yaml_reader.parse(text, _shown(override))
    except ConfigError as error:
        raise ConfigError(*_shown_faults(error.faults, override)) from None
    if document.faults:
        raise ConfigError(*_shown_faults(document.faults, override))
    place = _place(key)
    if len(place) > yaml_reader.MAX_DEPTH:
        raise ConfigError(Fault("--set", f"a key of {len(place)} parts", f"at most {yaml_reader.MAX_DEPTH}"))
    return place, document.data


def _shown_faults(faults: Sequence[Fault], override: str) -> list[Fault]:
    """Say where a faulty value is, without the value if it is a secret."""
    shown = _shown(override)
    placed = [replace(one, where=shown, fix=one.fix or _QUOTED) for one in faults]
    return [replace(one, found=REDACTED) for one in placed] if shown.endswith(REDACTED) else placed


def _shown(override: str) -> str:
    """Write an override for a message, without a secret."""
    key, _, text = override.partition("=")
    is_hidden = redaction.is_secret(key, text) or (":" in text and redaction.is_credential(text))
    return f"--set {key}={REDACTED}" if is_hidden else f"--set {override}"


def _place(key: str) -> Place:
    if key.startswith(_SETTINGS):  # keys of Spark contain dots
        return ("spark", "settings", key.removeprefix(_SETTINGS))
    parts = [name or index for name, index in _STEP.findall(key)]
    return tuple(int(part) if part.isdigit() else part for part in parts)


def _write(data: Any, place: Place, value: Any, where: str) -> None:  # noqa: ANN401 - plain data of any shape
    *above, last = place
    for depth, part in enumerate(above):
        follows: Any = [] if isinstance(place[depth + 1], int) else {}
        data = _step(data, part, follows, where)
    _step(data, last, None, where)
    if isinstance(data, list) and last == len(data):
        data.append(value)
    else:
        data[last] = value


def _step(data: Any, part: str | int, default: Any, where: str) -> Any:  # noqa: ANN401 - plain data of any shape
    """Go one step down; create a mapping or list where there is none yet."""
    if isinstance(part, int) and isinstance(data, list) and part <= len(data):
        if part == len(data) and default is not None:
            data.append(default)
        return data[part] if part < len(data) else None
    if isinstance(part, str) and isinstance(data, dict):
        if data.get(part) is None and default is not None:
            data[part] = default
        return data.get(part)
    found = f"{part!r} in {'a list of ' + str(len(data)) if isinstance(data, list) else 'a value without such keys'}"
    raise ConfigError(Fault(where, found, "a key of the config, or an index of a list (one past its end adds)"))
