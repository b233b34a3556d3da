"""Secrets from the environment: off every command line, and hidden in what Spark itself writes."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark.config import spark_settings
from rankeval_spark.config.spark_settings import Filled
from rankeval_spark.errors import SHORTEST_SECRET, ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    Settings = Mapping[str, str]

_REGEX: Final = "spark.redaction.regex"
_STRING_REGEX: Final = "spark.redaction.string.regex"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"})
_JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")


@contextmanager
def command_line_settings(options: Settings) -> Iterator[dict[str, str]]:
    """Yield the settings that the JVM of the driver is started with; all users of the machine can read them.

    The context gets the secrets over its socket. What the JVM itself is started with cannot wait: Java options from the
    environment are handed over in a file that only this user can read, and that is gone when the driver has started.
    """
    shown = {}
    for key, value in options.items():
        is_hidden = isinstance(value, Filled) or key in (_REGEX, _STRING_REGEX)
        is_of_start = key.startswith(("spark.driver.", "spark.jars", "spark.master"))
        if not is_hidden and (is_of_start or not spark_settings.is_secret(key, value)):
            shown[key] = value
    with tempfile.TemporaryDirectory(prefix="rankeval-start-") as folder:
        for key in _JAVA_OPTIONS:
            if not isinstance(options.get(key), Filled):
                continue
            try:
                java_options = shlex.split(options[key])
            except ValueError as error:
                found = f"a value from the environment that is no list of options ({error})"
                fault = Fault(f"spark.settings.{key}", found, "options of Java", "close its quotes")
                raise ConfigError(fault) from None
            # A file of arguments: one a line, in the quotes that Java reads.
            path = Path(folder, key)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.writelines(f'"{option.translate(_ESCAPES)}"\n' for option in java_options)
            shown[key] = f'"@{path}"'
        yield shown


def add_redaction(options: Settings) -> dict[str, str]:
    """Add to settings those by which Spark hides, in its events, pages and plans, what the environment gave.

    By the names of the settings and by their values: the properties of Java and Hadoop repeat these under other names.
    """
    filled = {key: value for key, value in options.items() if isinstance(value, Filled)}
    if not filled:
        return dict(options)
    assigned = [pair for value in filled.values() for pair in spark_settings.assignments(value)]
    texts = [*filled.values(), *(value for _, value in assigned)]
    lines = {line.strip() for text in texts for line in (text, *text.splitlines())}  # lines of a long value too
    values = sorted((line for line in lines if len(line) >= SHORTEST_SECRET), key=len, reverse=True)
    # As Hadoop, or the environment of an executor, has them.
    short = [key.removeprefix("spark.hadoop.").removeprefix("spark.executorEnv.") for key in filled]
    names = [*filled, *short, *(name.removeprefix("-D") for name, _ in assigned)]
    of_names = [f"^{_quote_for_java(name)}$" for name in dict.fromkeys(names)]
    of_values = [f"(?i:{_quote_for_java(value)})" for value in values]
    given = [options[_REGEX]] if _REGEX in options else []
    hidden = {_REGEX: _join_patterns([*given, r"redaction\.(?:string\.)?regex", *of_names, *of_values])}
    if of_values:
        of_texts = [options[_STRING_REGEX]] if options.get(_STRING_REGEX) else []
        hidden[_STRING_REGEX] = _join_patterns([*of_texts, *of_values])
    return {**options, **hidden}


def refuse_late(session: SparkSession, user_settings: Settings) -> None:
    """Refuse settings from the environment for a session that runs: it hides too little of them in its events."""
    late = [key for key, value in user_settings.items() if isinstance(value, Filled) and session.conf.isModifiable(key)]
    found, expected = "a value from the environment, for a session that runs", "settings before the session starts"
    fix = "stop the session first, or write the value out if it is no secret"
    if late:
        raise ConfigError(*(Fault(f"spark.settings.{key}", found, expected, fix) for key in late))


def _join_patterns(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _quote_for_java(text: str) -> str:
    r"""Write a text as a pattern of Java that matches it alone.

    >>> _quote_for_java("a.b")
    'a\\.b'
    """
    return re.sub(r"([^\w\s])", r"\\\1", text)
