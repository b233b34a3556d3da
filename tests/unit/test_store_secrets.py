"""Credentials of object stores and addresses of webhooks stay out of messages, whatever a server answers."""

from __future__ import annotations

import threading
import traceback
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa
import pytest

from rankeval_spark import Results, errors, evaluate, object_stores
from tests.support import nights
from tests.support.cli import rankeval, without_session
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIGNATURE: Final = "planted/sig+nature=="
SECRETS: Final = {
    "AWS_ACCESS_KEY_ID": "AKIAPLANTED123456789",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+key",
    "AWS_SESSION_TOKEN": "planted-token",
    "AZURE_STORAGE_SAS_TOKEN": f"sv=2021-08-06&sp=rl&sig={quote(SIGNATURE, safe='')}",
}
HOOK: Final = "https://127.0.0.1:1/services/planted-webhook"
FRAME: Final = pa.table({"user_id": ["u"], "item_id": ["a"], "rank": [1]})


def planted_in(text: str) -> list[str]:
    known = [*SECRETS.values(), SIGNATURE, quote(SIGNATURE, safe=""), "planted"]
    return [secret for secret in known if secret.lower() in text.lower()]


@pytest.fixture(params=[400, 403, 500])
def _store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a store whose errors repeat the request, with its address and what it is signed by."""

    class Echo(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = f"<Error><Code>Odd</Code><Url>{self.path}</Url><Key>{self.headers['Authorization']}</Key></Error>"
            self.send_response(request.param)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body.encode())

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Say nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        once: dict[str, Any] = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}
        monkeypatch.setattr(object_stores, "RETRIES", {**object_stores.RETRIES, **once})
        monkeypatch.setattr(errors, "_hidden", set())
        places = {"AWS_ENDPOINT_URL": address, "AZURE_STORAGE_ENDPOINT": f"{address}/acct", "AWS_REGION": "us-east-1"}
        for name, value in {**SECRETS, **places, "AZURE_STORAGE_ACCOUNT_NAME": "acct", "HOOK": HOOK}.items():
            monkeypatch.setenv(name, value)
        object_stores.cached_store.cache_clear()
        yield
        server.shutdown()
    object_stores.cached_store.cache_clear()


@pytest.mark.usefixtures("_store")
@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_no_message_of_a_call_has_what_a_store_repeats(scheme: str) -> None:
    address = f"{scheme}://bucket/truth"
    for call in (lambda: evaluate(FRAME, address, measures=["RR"]), lambda: Results(address).nights()):
        with pytest.raises((errors.RankevalError, OSError)) as caught:
            call()
        told = "".join(traceback.format_exception(caught.value))
        assert planted_in(told) == []
        assert "bucket/truth" in told


@pytest.mark.usefixtures("_store")
@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_no_command_says_what_a_store_repeats(scheme: str, tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace", notify=[{"url": "${env:HOOK}"}])
    address = f"{scheme}://bucket/results"
    options = ("--date", FIRST, "--debug")
    with without_session():
        told = [
            rankeval("run", made.config, *options, f"--set=results.root={address}"),
            rankeval("run", made.config, *options, f"--set=inputs.held_out.path={address}"),
            rankeval("validate", made.config, "--date", FIRST, f"--set=inputs.held_out.path={address}"),
            rankeval("show", address),
        ]
    assert all(each.code for each in told)
    assert [each.out + each.err for each in told if planted_in(each.out + each.err)] == []
    written = [file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file()]
    assert [text for text in written if planted_in(text)] == []
