"""What the environment gave to settings: off every command line, and hidden in what Spark itself writes."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark.config import redaction
from rankeval_spark.config.redaction import Filled
from rankeval_spark.errors import SHORTEST_SECRET, ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    Settings = Mapping[str, str]

_REGEX: Final = "spark.redaction.regex"
_STRING_REGEX: Final = "spark.redaction.string.regex"
_OF_START: Final = ("spark.driver.", "spark.jars", "spark.master")
_JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")


@contextmanager
def command_line(options: Settings) -> Iterator[dict[str, str]]:
    """Give the settings that the JVM of the driver is started with; all users of the machine can read them.

    The context gets the secrets over its socket. What the JVM itself is started with cannot wait: Java options from the
    environment are handed over in a file that only this user can read, and that is gone when the driver has started.
    """
    shown = {key: value for key, value in options.items() if _is_for_the_command_line(key, value)}
    with tempfile.TemporaryDirectory(prefix="rankeval-start-") as folder:
        for key in _JAVA_OPTIONS:
            if isinstance(options.get(key), Filled):
                shown[key] = f'"@{_argument_file(Path(folder, key), _java_options(key, options[key]))}"'
        yield shown


def _is_for_the_command_line(key: str, value: str) -> bool:
    if isinstance(value, Filled) or key in (_REGEX, _STRING_REGEX):
        return False
    return key.startswith(_OF_START) or not redaction.is_secret(key, value)


def _java_options(key: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        found = f"a value from the environment that is no list of options ({error})"
        raise ConfigError(Fault(f"spark.settings.{key}", found, "options of Java", "close its quotes")) from None


def _argument_file(path: Path, options: Iterable[str]) -> Path:
    """Write Java options as a file of arguments: one a line, in the quotes that Java reads."""
    signs = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"})
    escaped = (option.translate(signs) for option in options)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.writelines(f'"{option}"\n' for option in escaped)
    return path


def redacting(options: Settings) -> dict[str, str]:
    """Add to settings those by which Spark hides, in its events, pages and plans, what the environment gave.

    By the names of the settings and by their values: the properties of Java and Hadoop repeat these under other names.
    """
    filled = {key: value for key, value in options.items() if isinstance(value, Filled)}
    if not filled:
        return dict(options)
    assigned = [pair for value in filled.values() for pair in redaction.assignments(value)]
    values = _worth_hiding([*filled.values(), *(value for _, value in assigned)])
    names = [*filled, *map(_without_prefix, filled), *(name.removeprefix("-D") for name, _ in assigned)]
    of_names = [f"^{_quoted(name)}$" for name in dict.fromkeys(names)]
    of_values = [f"(?i:{_quoted(value)})" for value in values]
    given = [options[_REGEX]] if _REGEX in options else []
    hidden = {_REGEX: _any_of([*given, r"redaction\.(?:string\.)?regex", *of_names, *of_values])}
    if of_values:
        of_texts = [options[_STRING_REGEX]] if options.get(_STRING_REGEX) else []
        hidden[_STRING_REGEX] = _any_of([*of_texts, *of_values])
    return {**options, **hidden}


def refuse_late(session: SparkSession, user_settings: Settings) -> None:
    """Refuse settings from the environment for a session that runs: its events would have them, as it hides too little.

    Raises
    ------
    ConfigError
        Those that the session would take.
    """
    late = [key for key, value in user_settings.items() if isinstance(value, Filled) and session.conf.isModifiable(key)]
    found, expected = "a value from the environment, for a session that runs", "settings before the session starts"
    fix = "stop the session first, or write the value out if it is no secret"
    if late:
        raise ConfigError(*(Fault(f"spark.settings.{key}", found, expected, fix) for key in late))


def _worth_hiding(values: Iterable[str]) -> list[str]:
    """Choose the values that are looked for by themselves, the longest first; lines of a long one too."""
    lines = (line.strip() for value in values for line in (value, *value.splitlines()))
    return sorted({line for line in lines if len(line) >= SHORTEST_SECRET}, key=len, reverse=True)


def _without_prefix(key: str) -> str:
    """Name a setting as Hadoop, or the environment of an executor, has it."""
    return key.removeprefix("spark.hadoop.").removeprefix("spark.executorEnv.")


def _any_of(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _quoted(text: str) -> str:
    r"""Write a text as a pattern of Java that matches it alone.

    Examples
    --------
    >>> _quoted("a.b")
    'a\\.b'
    """
    return re.sub(r"([^\w\s])", r"\\\1", text)
