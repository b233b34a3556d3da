"""Errors that users see: exit codes, and the four parts of a message (where, found, expected, fix)."""

from __future__ import annotations

import datetime as dt
import re
import signal
import sys
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import IntEnum
from functools import wraps
from inspect import Parameter, isfunction, signature
from typing import Any, ClassVar, Final, TypeVar

T = TypeVar("T")

# Error condition in a message of Spark, such as ``[PATH_NOT_FOUND]``.
CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*")

# Categories of characters that control a terminal or the direction.
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
_OF_WRITING: Final = "\u200c\u200d"  # control characters that Persian and Hindi words and many emoji need
REDACTED: Final = "(hidden)"
SHORTEST_SECRET: Final = 6  # length of a secret that is hidden anywhere in a message
_SHORTEST_WORD: Final = 4  # length of one that is hidden where it is a whole word; shorter ones occur everywhere
_SWITCHES: Final = ("true", "false")
# Up to the last ``@`` of an address; a password may contain ``@`` too, and a comma begins another address.
_BEFORE_AT: Final = re.compile(r"://([^\s,]{0,4000})@")
# This package, and the modules whose decorators it uses: a user's code is the first that is of none of them.
_INNER: Final = (__name__.partition(".")[0], "contextlib", "functools")
_hidden: set[str] = set()  # values from the environment that this process put into settings
_PACKAGE: Final = re.compile(r"\b(?:[a-z0-9_]+\.){2,}(?=[A-Z])")
_LONGEST_LINE: Final = 200
MAX_SIMILAR: Final = 5  # names in a message instead of very many
_OF_CALL: Final = re.compile(r"^\w+\((\w+)=\)$")  # an argument, such as metrics(date=)
_OF_COMMAND: Final = re.compile(r"--[a-z]|[A-Z]+$")  # an option, or an argument
_BULLET: Final = "  - "  # before each fault of a message
_BECAUSE: Final = ", because "  # between the fix of a fault and the reason for it


class ExitCode(IntEnum):
    """Exit codes of the commands; docs/faults.md has the table, and a test compares both."""

    DONE = 0
    UNEXPECTED = 1
    INVALID = 2  # usage or config
    CHECK_FAILED = 3
    NO_INPUT = 4
    BUSY = 5
    GATE_FAILED = 6  # published, but a rule is not met
    DIFFERENT = 7  # a rerun differs from what was published
    ENVIRONMENT = 8
    BY_SIGNAL = 128  # plus the number of the signal that ended the process

    @classmethod
    def of_signal(cls, number: int) -> int:
        """Return the exit code of a process that a signal ends."""
        return cls.BY_SIGNAL + number


@dataclass(frozen=True)
class Fault:
    """A fault: where it is, what was found, what was expected, and the nearest fix."""

    where: str
    found: str
    expected: str
    fix: str = ""

    def __str__(self) -> str:
        """Write the four parts as one line."""
        ending = f"; {self.fix}" if self.fix else ""
        return f"{self.where}: found {self.found}; expected {self.expected}{ending}"


def require_same(what: str, found: Iterable[str], expected: Iterable[str]) -> None:
    """Raise TypeError, when a module is imported, if a table of this package lacks a name or has one too many.

    >>> require_same("TIES", ["rank"], ["rank", "newest"])
    Traceback (most recent call last):
    TypeError: TIES: newest in one of two places only
    """
    if others := {*found} ^ {*expected}:
        message = f"{what}: {', '.join(sorted(others))} in one of two places only"
        raise TypeError(message)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the question whether the most similar known name is meant; empty if no name is similar."""
    candidates = {known_name.casefold(): known_name for known_name in names}
    close = get_close_matches(name.casefold(), list(candidates), n=1, cutoff=0.6)
    return f"did you mean {candidates[close[0]]!r}?" if close else ""


def listed(name: str, names: Collection[str], at_most: int = 20) -> str:
    """Return known names for a message: all of them or, of more than ``at_most``, those most similar to ``name``.

    >>> listed("c", ["a", "b"]), listed("nDCG@11", ["AP@1", "nDCG@10", "nDCG@1"], 2)
    ('a, b', 'nDCG@1, nDCG@10 and 1 more')
    """
    if len(names) <= at_most:
        return ", ".join(names)
    close = get_close_matches(name, names, n=min(at_most, MAX_SIMILAR), cutoff=0.0)
    return f"{', '.join(close)} and {len(names) - len(close):,} more"


def nearest_days(day: dt.date, days_there: Collection[dt.date]) -> str:
    """Return the nearest days before and after ``day`` in words; empty without any.

    >>> days = [dt.date(2026, 1, n) for n in (1, 2, 5)]
    >>> nearest_days(dt.date(2026, 1, 3), days), nearest_days(dt.date(2026, 2, 1), days)
    ('the nearest are 2026-01-02 and 2026-01-05', 'the nearest is 2026-01-05')
    """
    days = [max((other for other in days_there if other < day), default=None)]
    days.append(min((other for other in days_there if other > day), default=None))
    found = [str(other) for other in days if other]
    return f"the nearest {'is' if len(found) == 1 else 'are'} {' and '.join(found)}" if found else ""


def visible(text: str, *, keep: str = "") -> str:
    r"""Escape characters that control a terminal or the direction of text; characters in ``keep`` stay.

    >>> visible("als\x1b[2J"), visible("a\nb"), visible("a\nb", keep="\n")
    ('als\\x1b[2J', 'a\\nb', 'a\nb')
    """
    if text.isascii() and text.isprintable():
        return text
    kept = keep + _OF_WRITING
    is_seen = (each in kept or unicodedata.category(each) not in _UNSEEN for each in text)
    return "".join(each if seen else ascii(each)[1:-1] for each, seen in zip(text, is_seen, strict=True))


def has_password(text: str) -> bool:
    """Return whether a text contains an address with a password."""
    return any(":" in found[1] for found in _BEFORE_AT.finditer(text))


def hide(*values: str) -> None:
    """Remember values that no message of this process may contain; libraries repeat them by line, quoted or trimmed."""
    for part in (line.strip() for value in values for line in (value, *value.splitlines())):
        if part.casefold() not in _SWITCHES:
            _hidden.update((part, repr(part)[1:-1]))


def without_secrets(text: str) -> str:
    """Hide passwords in addresses, and the values that were passed to :func:`hide`, in upper or lower case."""
    text = _BEFORE_AT.sub(lambda found: f"://{REDACTED}@" if ":" in found[1] else found[0], text)
    for value in sorted(_hidden, key=len, reverse=True):
        if len(value) >= _SHORTEST_WORD:
            edge = "" if len(value) >= SHORTEST_SECRET else r"\b"
            text = re.sub(f"{edge}{re.escape(value)}{edge}", REDACTED, text, flags=re.IGNORECASE)
    return text


def kind_of(value: object) -> str:
    """Return the name of a type with its library, such as ``pandas.DataFrame``."""
    library = type(value).__module__.partition(".")[0].removeprefix("_")
    return type(value).__name__ if library == "builtins" else f"{library}.{type(value).__name__}"


def shortened(text: str, longest: int = 60) -> str:
    """Cut a text that is too long for a message."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def first_line(text: str) -> str:
    """Return the first informative line, without names of Java, conditions of Spark, and secrets, which go first."""
    lines = (_PACKAGE.sub("", line).strip(": ") for line in without_secrets(text).splitlines())
    said = (line for line in lines if line and not line.startswith(("An error occurred while calling", "at ")))
    line = CONDITION.sub("", re.sub(r"\s+SQLSTATE: \w+.*", "", next(said, "no message"))).strip()
    return shortened(line, _LONGEST_LINE)


def first_fault(message: str) -> str:
    """Return the first fault of the message of an error, and how many others it names; else its first line.

    >>> error = InputError(Fault("inputs.items", "no file", "a file"), Fault("inputs.train", "no file", "a file"))
    >>> first_fault(str(error))
    'inputs.items: found no file; expected a file (and 1 more)'
    """
    faults = [line.removeprefix(_BULLET) for line in message.splitlines() if line.startswith(_BULLET)]
    others = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return first_line(faults[0] if faults else message) + others


def note(error: BaseException, text: str) -> None:
    """Add a note to an error, without the secrets that it may hold."""
    error.add_note(without_secrets(text))


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an error."""
    return list(getattr(error, "__notes__", ()))


def warn_user(text: str) -> None:
    """Warn where this package was called from, however deep within it the reason is found."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(without_secrets(text), stacklevel=depth + 1)


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of a command that ends with an error."""
    if isinstance(error, RankevalError | Stopped):
        return error.exit_code
    return ExitCode.of_signal(signal.SIGINT) if isinstance(error, KeyboardInterrupt) else ExitCode.UNEXPECTED


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end.

    It is a KeyboardInterrupt, so that handlers of ordinary errors do not catch it, and py4j closes the connection to
    the driver on which an answer is pending.
    """

    pending: ClassVar[Stopped | None] = None  # the signal that the command which this process runs has to end for

    def __init__(self, number: int) -> None:
        self.exit_code = ExitCode.of_signal(number)
        super().__init__(f"stopped by {signal.Signals(number).name}")


def interruption(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interruption behind an error; None for another error.

    During an exception pyspark asks the driver how a job ended, and an error from there replaces the exception. Python
    itself drops what a signal raises while an object is deleted; then the jobs that were cancelled fail.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause or Stopped.pending


class RankevalError(Exception):
    """Base of all errors that this package raises deliberately."""

    exit_code: ClassVar[ExitCode] = ExitCode.UNEXPECTED


class FaultsError(RankevalError):
    """An error with one or more faults, all reported at once."""

    title = "something is wrong"

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        lines, reasons = [f"{self.title}:"], set[str]()
        for fault in faults:  # a reason is left out where the fix of an earlier fault has it
            fix, _, reason = fault.fix.partition(_BECAUSE)
            lines.append(f"{_BULLET}{replace(fault, fix=fix) if reason in reasons else fault}")
            reasons |= {reason} - {""}
        super().__init__(without_secrets("\n".join(lines)))


class ConfigError(FaultsError):
    """The configuration, an option of a command or an argument of a function is not valid."""

    exit_code = ExitCode.INVALID
    title = "the configuration is not valid"

    def __init__(self, *faults: Fault) -> None:
        if faults and all(map(_OF_COMMAND.match, (fault.where for fault in faults))):
            self.title = "the command is not valid"
        super().__init__(*faults)


class InvalidCallError(ConfigError):
    """An argument of a call is not valid."""

    title = "the call is not valid"


def in_words_of_calls(kind: type[T]) -> type[T]:
    """Raise a ConfigError of a public method as an InvalidCallError, which names the argument of the call."""

    def reworded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        known = signature(method).parameters
        takes_columns = any(known[each].kind is Parameter.VAR_KEYWORD for each in known)

        def place(fault: Fault) -> Fault:
            """Name the argument of this call, also where a call within it has one of the same name."""
            argument = _OF_CALL.sub(r"\1", fault.where)
            is_argument = argument in known or (takes_columns and argument.isidentifier())
            return replace(fault, where=f"{name}({argument}=)") if is_argument else fault

        @wraps(method)
        def call(self: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the method has them
            try:
                return method(self, *args, **options)
            except ConfigError as error:
                is_refusal = error.title in (ConfigError.title, InvalidCallError.title)
                if not is_refusal or not getattr(self, "_is_of_user", True):
                    raise
                raise InvalidCallError(*(place(fault) for fault in error.faults)) from error.__cause__

        return call

    for name, method in vars(kind).copy().items():
        if isfunction(method) and not name.startswith("_"):
            setattr(kind, name, reworded(name, method))
    return kind


class ChecksFailedError(FaultsError):
    """A check of severity error failed; nothing was published."""

    exit_code = ExitCode.CHECK_FAILED
    title = "a check failed, nothing was published"


class OpenWindowsError(ChecksFailedError):
    """The attribution window of a list is not over, so that events of it are still to come; nothing was published."""

    exit_code = ExitCode.NO_INPUT
    title = "the events are not complete yet, nothing was published"


class RefusedCallError(ChecksFailedError):
    """A call of ``evaluate`` met what a policy or an input does not allow, or ids of two types."""

    title = "the inputs cannot be evaluated"


class InputError(FaultsError):
    """An input is missing, unreadable or wholly empty."""

    exit_code = ExitCode.NO_INPUT
    title = "an input is missing or unreadable"


class JudgementError(FaultsError):
    """A judgement for which a measure has no value; a kernel raises it, and a Spark job passes on only its text."""

    exit_code = ExitCode.CHECK_FAILED
    title = "a judgement cannot be measured"


class MeasureError(JudgementError):
    """An own measure failed for a list, or returned something that it must not."""

    title = "an own measure failed"


class ResultsBusyError(FaultsError):
    """Another run holds the lock of this evaluation and date, or of the results root."""

    exit_code = ExitCode.BUSY
    title = "another run holds the results"


class ResultsError(FaultsError):
    """The results could not be published, or the published tables have another layout than this version writes."""

    title = "the results could not be published"


def errors_of(*checks: Callable[[], object]) -> list[FaultsError]:
    """Run checks, and return what they raise, so that several are reported at once."""
    found = []
    for check in checks:
        try:
            check()
        except FaultsError as error:
            found.append(error)
    return found


def raise_together(errors: Sequence[FaultsError]) -> None:
    """Raise the faults of several errors, each once, as the error with the lowest exit code; nothing without errors."""
    if errors:
        first = min(errors, key=lambda error: error.exit_code)
        raise type(first)(*dict.fromkeys(fault for error in errors for fault in error.faults)) from first


class EnvironmentFaultError(FaultsError):
    """Java, the Delta jars or the Python of the workers is not usable."""

    exit_code = ExitCode.ENVIRONMENT
    title = "the environment is not usable"


class DriverLostError(EnvironmentFaultError):
    """The JVM of the driver ended early; this process cannot use Spark any more."""
