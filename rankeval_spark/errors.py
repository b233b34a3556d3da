"""Every error a user can meet, with its exit code and the four parts of a readable message."""

from __future__ import annotations

import re
import signal
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar, Final

CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*")
"""Spark's name for what went wrong, as its messages show it."""

_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that steer a terminal or the direction of text instead of being seen."""

_OF_WRITING: Final = "\u200c\u200d"
"""Those of them without which Persian and Hindi words, and many an emoji, could not be written."""

REDACTED: Final = "(hidden)"

SHORTEST_SECRET: Final = 6
"""Characters from which on a value is looked for everywhere in messages."""

_SHORTEST_WORD: Final = 4
"""Characters from which on it is looked for as a word by itself: a shorter one would be found everywhere."""

_SWITCHES: Final = ("true", "false")

_BEFORE_AT: Final = re.compile(r"://([^\s,]{0,4000})@")
"""What stands before the last ``@`` of an address, which a password may hold too; a comma begins another address."""

_hidden: set[str] = set()
"""Values of this process's environment that were put into settings."""

_PACKAGE: Final = re.compile(r"\b(?:[a-z0-9_]+\.){2,}(?=[A-Z])")
_LONGEST_LINE: Final = 200

_OF_A_SIGNAL: Final = 128
"""Added to the number of a signal it is the exit code of whoever ends by it."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: where it is, what was found, what was expected and the nearest fix."""

    where: str
    found: str
    expected: str
    fix: str = ""

    def __str__(self) -> str:
        """Write the four parts as one sentence."""
        ending = f"; {self.fix}" if self.fix else ""
        return f"{self.where}: found {self.found}; expected {self.expected}{ending}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that ``name`` most likely meant; empty when none is near."""
    candidates = {known_name.casefold(): known_name for known_name in known}
    close = get_close_matches(name.casefold(), list(candidates), n=1, cutoff=0.6)
    return f"did you mean {candidates[close[0]]!r}?" if close else ""


def visible(text: str, *, keep: str = "") -> str:
    r"""Write characters that a terminal would obey, or that turn text round, as what they are.

    Parameters
    ----------
    text : str
        Anything that comes from data: a name, a key.
    keep : str, optional
        Characters that stay, such as the line ends of a message of several lines.

    Examples
    --------
    >>> visible("als\x1b[2J"), visible("a\nb"), visible("a\nb", keep="\n")
    ('als\\x1b[2J', 'a\\nb', 'a\nb')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if each in keep or not _is_unseen(each) else ascii(each)[1:-1] for each in text)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN and character not in _OF_WRITING


def has_password(text: str) -> bool:
    """Return True if a text holds an address with a password."""
    return any(":" in found[1] for found in _BEFORE_AT.finditer(text))


def hide(*values: str) -> None:
    """Remember values that no message of this process may hold: messages of other libraries repeat settings.

    They repeat a value of several lines line by line, and quote or trim it.
    """
    for part in (line.strip() for value in values for line in (value, *value.splitlines())):
        if part.casefold() not in _SWITCHES:
            _hidden.update((part, repr(part)[1:-1]))


def without_secrets(text: str) -> str:
    """Hide what is before the ``@`` of an address, and the values that were passed to :func:`hide`.

    In any case of their letters, as Spark repeats some in capitals. Values of a few characters are hidden where they
    are a word by themselves, or stay; the longest are looked for first.
    """
    text = _BEFORE_AT.sub(lambda found: f"://{REDACTED}@" if ":" in found[1] else found[0], text)
    for value in sorted(_hidden, key=len, reverse=True):
        if len(value) >= _SHORTEST_WORD:
            edge = "" if len(value) >= SHORTEST_SECRET else r"\b"
            text = re.sub(f"{edge}{re.escape(value)}{edge}", REDACTED, text, flags=re.IGNORECASE)
    return text


def first_line(text: str) -> str:
    """Return the first line that says something, without the names of Java's packages and Spark's conditions.

    And without secrets: what is cut could no longer be recognised as one.
    """
    lines = (_PACKAGE.sub("", line).strip(": ") for line in without_secrets(text).splitlines())
    said = (line for line in lines if line and not line.startswith(("An error occurred while calling", "at ")))
    line = CONDITION.sub("", re.sub(r"\s+SQLSTATE: \w+.*", "", next(said, "no message"))).strip()
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..."


def note(error: BaseException, text: str) -> None:
    """Add a line to the report of an error, which is otherwise unchanged; as ``add_note``, which Python 3.10 lacks."""
    vars(error).setdefault("__notes__", []).append(without_secrets(text))


def notes_of(error: BaseException) -> list[str]:
    """Lines that were added to an error."""
    return list(vars(error).get("__notes__", ()))


def exit_code_of(error: BaseException) -> int:
    """Exit code of a command that ends with an error."""
    if isinstance(error, RankevalError | Stopped):
        return error.exit_code
    return _OF_A_SIGNAL + signal.SIGINT if isinstance(error, KeyboardInterrupt) else RankevalError.exit_code


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end.

    As a KeyboardInterrupt it passes every handler of mere errors, and py4j gives up the connection to the driver on
    which an answer is still to come.
    """

    def __init__(self, number: int) -> None:
        self.exit_code = _OF_A_SIGNAL + number
        super().__init__(f"stopped by {signal.Signals(number).name}")


def interruption(error: BaseException) -> KeyboardInterrupt | None:
    """Return the wish to stop that an error came in place of; None where there was none.

    pyspark asks the driver how a job ended while an exception passes, and what it learns then takes its place.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause


class RankevalError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code: ClassVar[int] = 1


class FaultsError(RankevalError):
    """An error made of one or more faults, all reported at once."""

    title: ClassVar[str] = "something is wrong"

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__(without_secrets(f"{self.title}:\n" + "\n".join(f"  - {fault}" for fault in faults)))


class ConfigError(FaultsError):
    """The configuration, a command-line argument or an API argument is not valid."""

    exit_code = 2
    title = "the configuration is not valid"


class ChecksFailedError(FaultsError):
    """A check of severity error failed; nothing was published."""

    exit_code = 3
    title = "a check failed, nothing was published"


class InputError(FaultsError):
    """An input is missing, unreadable or wholly empty."""

    exit_code = 4
    title = "an input is missing or unreadable"


class JudgementError(FaultsError):
    """A judgement that a measure has no value for; raised by a kernel, so that a Spark job passes on its text only."""

    exit_code = 3
    title = "a judgement cannot be measured"


class ResultsBusyError(FaultsError):
    """Another run holds the lock of this evaluation and date, or of the results root."""

    exit_code = 5
    title = "another run holds the results"


class ResultsError(FaultsError):
    """The results could not be published, or the published tables are not as this version left them."""

    exit_code = 1
    title = "the results could not be published"


class EnvironmentFaultError(FaultsError):
    """Java, the Delta jars or the Python of the workers is not usable."""

    exit_code = 1
    title = "the environment is not usable"


class DriverLostError(EnvironmentFaultError):
    """The JVM of the driver ended before its work was done; this process can do nothing more on Spark."""
