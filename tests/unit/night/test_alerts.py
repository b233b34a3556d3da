"""Alerts: who is told of which night, and that no receiver changes what becomes of it."""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

import pytest

from rankeval_spark.apps.nightly import alerts
from rankeval_spark.apps.nightly.backfill import DateOutcome
from rankeval_spark.apps.nightly.night import NightResult
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from rankeval_spark.results import ResultsStore
from tests.support import nights
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS

SECRET: Final = "/services/T000/B000/a-secret-path"
PATIENCE: Final = 0.5  # of the tests with receivers that never end
NOT_MET: Final = [{"measure": "RR@2", "at_least": 0.9}]  # als 1 / 4, pop 7 / 8 on the first date
WARNING: Final = {"missing_users": {"warn": 0}}
HOOK: Final = "${env:HOOK}"


@dataclass
class Webhook:
    """A server on this machine, and the requests that reached it."""

    port: int
    answer: int = 200
    requests: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def bodies(self) -> list[Any]:
        """The JSON that was posted."""
        return [body for _, body in self.requests]


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    """Give a webhook that answers, whose address is in the environment."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            hook.requests.append((self.path, json.loads(self.rfile.read(length))))
            self.send_response(hook.answer)
            self.send_header("Location", f"http://127.0.0.1:{hook.port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - the name that the library calls

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = Webhook(server.server_port)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{hook.port}{SECRET}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield hook
    server.shutdown()
    server.server_close()


@contextmanager
def raw_server(handle: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """Yield the port of a server that does with a connection what it likes, until the block ends."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                connection, _ = listening.accept()
                with connection:
                    handle(connection, is_over)
            except OSError:  # the other side, or the test, has ended
                pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            is_over.set()
            thread.join(5)


def never_answers(connection: socket.socket, is_over: threading.Event) -> None:
    connection.recv(65536)
    is_over.wait(10)


def closes(connection: socket.socket, _: threading.Event) -> None:
    connection.recv(65536)


def speaks_something_else(connection: socket.socket, _: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"220 mail.example.org ESMTP\r\n" * 100)


def sends_without_end(head: bytes, chunk: bytes, pause: float) -> Callable[[socket.socket, threading.Event], None]:
    def send(connection: socket.socket, is_over: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(head)
        while not is_over.wait(pause):
            connection.sendall(chunk)

    return send


OK: Final = b"HTTP/1.1 200 OK\r\n"
HOSTILE: Final = {
    "never answers": (never_answers, r"no answer within"),
    "closes": (closes, r"the webhook gave no answer of HTTP"),
    "no HTTP": (speaks_something_else, r"the webhook gave no answer of HTTP"),
    "endless headers": (sends_without_end(OK, b"X-More: yes\r\n" * 100, 0.001), r"the webhook gave no answer of HTTP"),
    "drops of a header": (sends_without_end(OK, b"x", PATIENCE / 5), r"no answer within"),
    "endless body": (sends_without_end(OK + b"\r\n", b"x" * 65536, 0.001), ""),
    "endless interim answers": (sends_without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01), r"no answer within"),
}
"""Servers that mean no good, and what is said of them; nothing of one that said 200 before."""


VERDICT: Final[Mapping[str, Any]] = {
    "evaluation": "nightly",
    "evaluation_date": "2026-01-01",
    "run_id": "r1",
    "status": "PUBLISHED",
    "exit_code": 6,
    "reason": None,
    "warnings": ["ties"],
    "gates": [
        {"verdict": "failed", "explanation": "als is too low"},
        {"verdict": "passed", "explanation": "pop is fine"},
    ],
    "events": ["gate_failed"],
    "results": "/data/results",
}
TOLD: Final[list[Any]] = []


def gives_up(_: object) -> float:
    return 1 / 0


def leaves(_: object) -> None:
    sys.exit(3)


def hangs(_: object) -> None:
    time.sleep(3)


FUNCTIONS: Final = {
    "good": f"{__name__}:TOLD.append",
    **{name: f"{__name__}:{name}" for name in ("gives_up", "leaves", "hangs", "is_not_there")},
}


def assert_not_told(workspace: nights.Workspace, done: Finished, address: str) -> None:
    """Check that an address is in no message, and in no row of ``runs``."""
    said = [done.out, done.err, str(workspace.events())]
    assert not [text for text in said if SECRET in text or f"://{address}" in text]
    assert HOOK in workspace.events()[-1]["config"]


def made(folder: Path, **config: Any) -> nights.Workspace:  # noqa: ANN401 - the values of a YAML file
    return nights.workspace(folder / "workspace", **{"notify": [{"url": HOOK}], **config})


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_webhook_costs_seconds_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    handle, said = HOSTILE[name]
    monkeypatch.setattr(alerts, "SECONDS", PATIENCE)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    workspace = made(tmp_path, gates=NOT_MET)
    with raw_server(handle) as port:
        monkeypatch.setenv("HOOK", f"http://127.0.0.1:{port}{SECRET}")
        done = rankeval("run", workspace.config, "--date", FIRST, "--json", "--quiet")
    assert (done.code, json.loads(done.out)["status"]) == (6, "PUBLISHED")
    assert len(done.err.splitlines()) == bool(said), done.err
    assert not said or re.match(rf"warning: notify\[0\]: {said}.*; nobody was told there$", done.err.strip()), done.err
    assert_not_told(workspace, done, str(port))


@pytest.mark.parametrize("answer", [301, 302, 307, 308, 304, 400, 404, 410, 429, 500, 503])
def test_an_answer_other_than_2xx_is_a_warning_and_a_redirect_is_not_followed(
    tmp_path: Path, webhook: Webhook, answer: int
) -> None:
    webhook.answer = answer
    (receiver,), _ = alerts.find_receivers(load_config(made(tmp_path).config))
    (warning,) = alerts.tell([receiver], VERDICT)
    assert warning == f"notify[0]: the webhook answered {answer}; nobody was told there"
    assert [path for path, _ in webhook.requests] == [SECRET]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "HOOK is not set"),
        ("hooks.example.org" + SECRET, "HOOK is no address that begins with https://"),
        ("file:///etc/hostname" + SECRET, "HOOK is no address that begins with https://"),
        ("https://[::1" + SECRET, "HOOK is no address that begins with https://"),
    ],
)
def test_a_variable_without_an_address_is_said_before_the_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    monkeypatch.setenv("HOOK", address)
    workspace = made(tmp_path, gates=NOT_MET)
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 6
    assert done.err.splitlines()[0] == f"warning: notify[0]: {said}; nobody is told"
    assert_not_told(workspace, done, address or "none")


@pytest.mark.parametrize("address", ["http://127.0.0.1:1{}", "http://no such host{}", "http://127.0.0.1:x{}"])
def test_an_address_at_which_nobody_is_never_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("HOOK", address.format(SECRET))
    workspace = made(tmp_path, gates=NOT_MET)
    done = rankeval("run", workspace.config, "--date", FIRST, "--quiet", "--debug")
    assert done.code == 6
    assert done.err.startswith("warning: notify[0]: the webhook ")
    assert_not_told(workspace, done, address.format(SECRET))


def test_a_gate_that_fails_is_told_as_run_prints_it(tmp_path: Path, webhook: Webhook) -> None:
    workspace = made(tmp_path, gates=NOT_MET)
    done = rankeval("run", workspace.config, "--date", FIRST, "--json")
    assert [(path, body["events"]) for path, body in webhook.requests] == [(SECRET, ["gate_failed"])]
    assert webhook.bodies == [json.loads(done.out)]
    assert [event["status"] for event in workspace.events()][-1] == "PUBLISHED"
    assert_not_told(workspace, done, SECRET)


def test_a_night_that_fails_is_told_after_it_is_recorded(tmp_path: Path, webhook: Webhook) -> None:
    workspace = made(tmp_path)
    done = rankeval("run", workspace.config, "--date", FIRST, "--set", "inputs.held_out.path=none")
    (body,) = webhook.bodies
    assert done.code == 4
    assert (body["status"], body["exit_code"], body["events"]) == ("FAILED", 4, ["night_failed"])
    assert "inputs.held_out: found no such path" in body["reason"]
    assert workspace.events()[-1]["status"] == "FAILED"


def test_a_check_that_fails_is_a_night_that_fails(tmp_path: Path, webhook: Webhook) -> None:
    workspace = made(tmp_path, checks={"missing_users": {"error": 0.1}})
    assert rankeval("run", workspace.config, "--date", FIRST).code == 3
    assert [body["events"] for body in webhook.bodies] == [["night_failed"]]


def test_a_night_that_another_run_holds_is_not_told(tmp_path: Path, webhook: Webhook) -> None:
    """Who holds it tells; a second run of a date is no fault."""
    workspace = made(tmp_path)
    rankeval("run", workspace.config, "--date", SECOND)
    store = ResultsStore.open(workspace.root)
    with store.run_lock("nightly", FIRST, "20260101T000000-00000000"):
        assert rankeval("run", workspace.config, "--date", FIRST).code == 5
    assert webhook.requests == []


def test_only_what_is_asked_for_is_told(tmp_path: Path, webhook: Webhook) -> None:
    wanted = {
        "gates": ["gate_failed"],
        "failures": ["night_failed"],
        "warnings": ["checks_warn"],
        "drift": ["drift"],
    }
    workspace = made(
        tmp_path, gates=NOT_MET, checks=WARNING, notify=[{"url": HOOK, "events": own} for own in wanted.values()]
    )
    rankeval("run", workspace.config, "--date", FIRST)
    assert [body["events"] for body in webhook.bodies] == [["gate_failed", "checks_warn"]] * 2
    rankeval("run", workspace.config, "--date", FIRST, "--set", "gates=[]", "--set", "checks={}")
    assert len(webhook.requests) == 2  # nothing happened


def test_drift_is_told_as_drift_and_as_a_check_that_warns() -> None:
    rows = ({"check": "drift", "verdict": "warn"}, {"check": "ties", "verdict": "ok"})
    result = NightResult("nightly", FIRST, "run", {}, {}, checks=rows)
    assert alerts.find_events(DateOutcome(FIRST, result)) == ["checks_warn", "drift"]
    other = NightResult("nightly", FIRST, "run", {}, {}, checks=({"check": "drift", "verdict": "ok"},))
    assert alerts.find_events(DateOutcome(FIRST, other)) == []


def test_a_backfill_tells_of_each_date_and_of_none_that_is_kept(tmp_path: Path, webhook: Webhook) -> None:
    workspace = made(tmp_path, gates=NOT_MET)
    asked = ("backfill", workspace.config, "--from", FIRST, "--to", WITHOUT_ROWS)
    assert rankeval(*asked).code == 6
    told = [(body["evaluation_date"], body["events"]) for body in webhook.bodies]
    assert told == [(str(FIRST), ["gate_failed"]), (str(SECOND), ["gate_failed"])]  # the third is empty
    rankeval(*asked, "--missing")
    assert len(webhook.requests) == 2


def test_messages_for_people_cannot_mention_anybody_or_hold_a_link(tmp_path: Path, webhook: Webhook) -> None:
    verdict = {**VERDICT, "evaluation": "<!channel> & [here](https://x.example)\x1b[2J"}
    forms = [{"url": HOOK, "form": form} for form in ("slack", "teams")]
    receivers, _ = alerts.find_receivers(load_config(made(tmp_path, notify=forms).config))
    assert alerts.tell(receivers, verdict) == []
    slack, teams = sorted(webhook.bodies, key=lambda body: "type" in body)
    assert slack["text"].splitlines()[0] == (
        "&lt;!channel&gt; &amp; [here](https://x.example)\\x1b[2J 2026-01-01: published, code 6; a rule is not met, "
        "1 warnings"
    )
    assert slack["text"].splitlines()[1:] == ["als is too low", "warning: ties", "run r1, results in /data/results"]
    (attachment,) = teams["attachments"]
    assert (teams["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    runs = [block["inlines"] for block in attachment["content"]["body"]]
    assert {block["type"] for block in attachment["content"]["body"]} == {"RichTextBlock"}  # no Markdown in it
    assert [run[0]["text"] for run in runs][1:] == slack["text"].splitlines()[1:]


def test_a_message_for_people_has_an_end() -> None:
    verdict = {**VERDICT, "warnings": ["x" * 10_000] * 100}
    lines = alerts.message_lines(verdict)
    assert len(lines) == alerts.MAX_LINES + 2
    assert max(map(len, lines)) == alerts.MAX_CHARACTERS
    assert lines[-2] == f"and {1 + 1 + 100 - alerts.MAX_LINES} lines more"


def test_a_function_of_another_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "SECONDS", PATIENCE)
    monkeypatch.setattr(alerts, "entry_points", lambda group, name: [EntryPoint(name, FUNCTIONS.get(name, ""), group)])
    notify = [{"call": name} for name in ("good", "gives_up", "leaves", "hangs", "is_not_there")]
    workspace = made(tmp_path, gates=NOT_MET, notify=notify)
    TOLD.clear()
    done = rankeval("run", workspace.config, "--date", FIRST, "--quiet", "--json")
    assert (done.code, TOLD) == (6, [json.loads(done.out)])
    assert done.err.splitlines() == [
        "warning: notify[4]: the entry point 'is_not_there' cannot be loaded (AttributeError); nobody is told",
        "warning: notify[1]: the function ended with ZeroDivisionError; nobody was told there",
        "warning: notify[2]: the function ended with SystemExit; nobody was told there",
        "warning: notify[3]: no answer within 0.5 s; nobody was told there",
    ]


def test_a_name_that_no_package_has_is_a_warning(tmp_path: Path) -> None:
    workspace = made(tmp_path, notify=[{"call": "pagerduty"}])
    done = rankeval("run", workspace.config, "--date", FIRST, "--quiet")
    said = "no installed package has an entry point 'pagerduty' in the group rankeval_spark.notify"
    assert (done.code, done.err) == (0, f"warning: notify[0]: {said}; nobody is told\n")


@pytest.mark.parametrize(
    "notify",
    [
        f"https://hooks.example.org{SECRET}",
        [f"https://hooks.example.org{SECRET}"],
        [{"url": f"https://hooks.example.org{SECRET}"}],
        [{"url": f"hooks.example.org{SECRET}"}],
        [{"url": [f"https://hooks.example.org{SECRET}"]}],
        [{"call": f"hooks.example.org{SECRET}"}],
        [{"url": HOOK, "events": f"hooks.example.org{SECRET}"}],
        [{"url": HOOK, "form": f"hooks.example.org{SECRET}"}],
    ],
)
def test_an_address_in_the_config_is_refused_and_not_repeated(tmp_path: Path, notify: object) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(made(tmp_path, notify=notify).config)
    assert "notify" in str(refused.value)
    assert SECRET not in str(refused.value)
