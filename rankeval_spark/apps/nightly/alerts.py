"""Alerts about nights: webhooks and functions of other packages that are told of a verdict.

A verdict is the document of ``rankeval run --json``. No receiver can change the outcome of a run: each is called in a
thread of its own, and left alone after some seconds.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from importlib.metadata import entry_points
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.config.spark_settings import variable_name
from rankeval_spark.errors import ResultsBusyError, hide, shortened, visible
from rankeval_spark.report.winner import UNMET
from rankeval_spark.result_rows import check_rows

if TYPE_CHECKING:
    from rankeval_spark.apps.nightly.backfill import DateOutcome
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.evaluation_config import Event

GROUP: Final = "rankeval_spark.notify"
"""Entry points of other packages: functions of a verdict, whose names are the key ``call`` of a config."""

SECONDS: Final = 5.0
"""Longest wait for all receivers together."""

MIN_SECRET: Final = 16  # characters of a path or query that no message may have; shorter ones occur in other places
MAX_LINES: Final = 20  # of a message for people
MAX_CHARACTERS: Final = 500  # of a line of a message
_OWN_LOCK: Final = ", lock run-"

Verdict: TypeAlias = Mapping[str, Any]
"""What ``rankeval run --json`` prints: evaluation, date, status, exit code, reason, warnings, gates, events, ..."""


class UnreachableError(Exception):
    """A receiver that could not be told; the message has no address."""


@dataclass(frozen=True)
class Receiver:
    """A receiver of verdicts with any of some events."""

    where: str  # key of the config
    events: Sequence[str]
    tell: Callable[[Verdict], object]


def find_events(outcome: DateOutcome) -> list[Event]:
    """Return the events of a date that receivers are told of; none where another run, which tells them, holds it."""
    result, error = outcome.result, outcome.error
    if result is None:
        is_held = isinstance(error, ResultsBusyError) and any(_OWN_LOCK in fault.where for fault in error.faults)
        return ["night_failed"] if error is not None and not is_held else []
    warning = {row["check"] for row in result.checks if row["verdict"] == "warn"}
    told: dict[Event, bool] = {
        "gate_failed": result.is_blocked,
        "checks_warn": bool(warning),
        "drift": check_rows.DRIFT in warning,
    }
    return [event for event, is_told in told.items() if is_told]


def find_receivers(
    config: EvaluationConfig, environment: Mapping[str, str] = os.environ
) -> tuple[list[Receiver], list[str]]:
    """Return the receivers of a config, and a sentence about each that cannot be told anything."""
    found, faults = list[Receiver](), list[str]()
    for number, notification in enumerate(config.notify):
        where = f"notify[{number}]"
        try:
            tell = (
                _load_function(str(notification.call))
                if notification.url is None
                else _open_webhook(notification.url, notification.form, environment)
            )
        except UnreachableError as error:
            faults.append(f"{where}: {error}; nobody is told")
        else:
            found.append(Receiver(where, notification.events, tell))
    return found, faults


def _load_function(name: str) -> Callable[[Verdict], object]:
    """Return the function of an entry point."""
    for point in entry_points(group=GROUP, name=name):
        try:
            function: Callable[[Verdict], object] = point.load()
        except Exception as error:  # it is the code of others
            message = f"the entry point {name!r} cannot be loaded ({type(error).__name__})"
            raise UnreachableError(message) from None
        return function
    message = f"no installed package has an entry point {name!r} in the group {GROUP}"
    raise UnreachableError(message)


def _open_webhook(reference: str, form: str, environment: Mapping[str, str]) -> Callable[[Verdict], object]:
    """Return a function that posts a verdict to the address in a variable of the environment, which is kept secret."""
    name = variable_name(reference)
    address = environment.get(name, "").strip()
    hide(address)
    try:
        parts = urlsplit(address)
        hide(*(part for part in (parts.path, parts.query) if len(part) >= MIN_SECRET))
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web:
        raise UnreachableError(
            f"{name} is not set" if not address else f"{name} is no address that begins with https://"
        )
    return partial(_post, address, FORMS[form])


def _no_answer_in_time() -> str:
    return f"no answer within {SECONDS:g} s"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a verdict goes nowhere but to the address that was given."""

    @override
    def redirect_request(self, *_: object) -> None:
        return None


def _post(address: str, body_of: Callable[[Verdict], object], verdict: Verdict) -> None:
    """Post the JSON of a body once; UnreachableError unless the answer, whose body is not read, is 200 to 299."""
    body = json.dumps(body_of(verdict)).encode()
    try:
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=SECONDS):
            return
    except HTTPError as error:
        error.close()
        said = f"the webhook answered {error.code}"
    except URLError as error:
        said = f"the webhook cannot be reached ({type(error.reason).__name__})"
    except TimeoutError:
        said = _no_answer_in_time()
    except (HTTPException, OSError, ValueError) as error:  # not HTTP, a connection that ends, an address with a blank
        said = f"the webhook gave no answer of HTTP ({type(error).__name__})"
    raise UnreachableError(said)


def tell(receivers: Sequence[Receiver], verdict: Verdict) -> list[str]:
    """Send a verdict to the receivers of its events; return a sentence for each that did not get it."""
    said: dict[str, str] = {}

    def call(receiver: Receiver) -> None:
        try:
            receiver.tell(verdict)
            said[receiver.where] = ""
        except UnreachableError as error:
            said[receiver.where] = str(error)
        except BaseException as error:  # of the code of others, whose text may hold anything
            said[receiver.where] = f"the function ended with {type(error).__name__}"

    wanted = [receiver for receiver in receivers if {*receiver.events} & {*verdict["events"]}]
    threads = [Thread(target=call, args=(receiver,), name=receiver.where, daemon=True) for receiver in wanted]
    deadline = time.monotonic() + SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    outcomes = {receiver.where: said.get(receiver.where, _no_answer_in_time()) for receiver in wanted}
    return [f"{where}: {what}; nobody was told there" for where, what in outcomes.items() if what]


def message_lines(verdict: Verdict) -> list[str]:
    """Return a verdict as lines for people: what became of the night, then the reasons."""
    day, status = verdict[C.EVALUATION_DATE], verdict["status"].lower()
    code = f", code {verdict['exit_code']}" if verdict["exit_code"] else ""
    rules = [row["explanation"] for row in verdict["gates"] if row["verdict"] in UNMET]
    what = [f"{len(rules)} rules not met" if len(rules) > 1 else "a rule is not met"] if rules else []
    what += [f"{len(verdict['warnings'])} warnings"] if verdict["warnings"] else []
    first = f"{verdict[C.EVALUATION]} {day}: {status}{code}{'; ' if what else ''}{', '.join(what)}"
    warnings = [f"warning: {text}" for text in verdict["warnings"]]
    lines = [first, *(verdict["reason"] or "").splitlines(), *rules, *warnings]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"and {len(lines) - MAX_LINES} lines more"]
    run = f"run {verdict[C.RUN_ID]}, " if verdict[C.RUN_ID] else ""
    return [shortened(visible(line), MAX_CHARACTERS) for line in (*lines, f"{run}results in {verdict['results']}")]


def _to_slack(verdict: Verdict) -> object:
    """Return a message of Slack, in which no name can mention anybody or be a link."""
    text = "\n".join(message_lines(verdict))
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def _to_teams(verdict: Verdict) -> object:
    """Return a message of Teams: a card whose runs of text are plain, so that no name can be a link."""
    blocks = [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]} for line in message_lines(verdict)
    ]
    card = {"type": "AdaptiveCard", "version": "1.2", "body": blocks}
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "contentUrl": None, "content": card}]}


FORMS: Final[Mapping[str, Callable[[Verdict], object]]] = {"json": dict, "slack": _to_slack, "teams": _to_teams}
