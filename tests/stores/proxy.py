"""A proxy in front of a store, one for each driver of a test: it counts requests, and answers some of them badly."""

from __future__ import annotations

import http.client
import random
import re
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

Fate: TypeAlias = Callable[[str, str], str]  # method and path -> one of the words below

ANSWERED: Final = "answered"
LOST: Final = "lost"  # carried out, and the connection is closed without an answer
AWAY: Final = "away"  # not carried out, and the connection is closed
SLOW_DOWN: Final = "SlowDown"
DENIED: Final = "AccessDenied"
EXPIRED: Final = "ExpiredToken"
STATUS: Final = {SLOW_DOWN: 503, DENIED: 403, EXPIRED: 400}  # of the errors of S3 that the proxy answers itself

_ENTRY: Final = re.compile(rb"<Contents>.*?<Key>(.*?)</Key>.*?</Contents>", re.DOTALL)
_HOP_BY_HOP: Final = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class Proxy:
    """A server on a port of its own, whose faults are attributes that a test sets while it runs."""

    def __init__(self, to_port: int) -> None:
        self.to_port = to_port
        self.delay = 0.0  # seconds before each answer
        self.fate: Fate = always(ANSWERED)
        self.skew = timedelta(0)  # by which the clock of the store is ahead
        self.late = 0.0  # seconds until a listing shows what was written through this proxy
        self.log: list[tuple[str, str]] = []  # method and path of each request
        self.written: dict[str, float] = {}  # when each key was written
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Return the address that clients use as their endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


def always(fate: str) -> Fate:
    """Return the same fate for each request."""
    return lambda _method, _path: fate


def once(fate: str, method: str, pattern: str) -> Fate:
    """Return a fate for the first request of a method whose path has a pattern."""
    left = [fate]

    def choose(found: str, path: str) -> str:
        return left.pop() if left and found == method and re.search(pattern, path) else ANSWERED

    return choose


def dead_after(n_requests: int) -> Fate:
    """Answer some requests, and refuse all later ones: as if the driver had died between two of them."""
    left, lock = [n_requests], threading.Lock()

    def choose(_method: str, _path: str) -> str:
        with lock:
            left[0] -= 1
            return ANSWERED if left[0] >= 0 else DENIED

    return choose


def share(fate: str, of_requests: float) -> Fate:
    """Return a fate for a share of all requests, the same in each run of a test."""
    drawn = random.Random(0)
    return lambda _method, _path: fate if drawn.random() < of_requests else ANSWERED


def until(moment: float, fate: str) -> Fate:
    """Return a fate until a moment of the monotonic clock."""
    return lambda _method, _path: fate if time.monotonic() < moment else ANSWERED


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    proxy: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.proxy.log.append((self.command, self.path))
        fate = self.proxy.fate(self.command, self.path)
        time.sleep(self.proxy.delay)
        if fate in STATUS:
            error = f"<?xml version='1.0'?><Error><Code>{fate}</Code><Message>{fate}</Message></Error>"
            self._answer(STATUS[fate], {"Content-Type": "application/xml"}, error.encode())
            return
        if fate != AWAY:
            status, headers, content = self._carry_out(body)
        if fate != ANSWERED:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._answer(status, headers, content)

    def _carry_out(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.to_port, timeout=60)
        headers: Any = dict(self.headers.items())
        upstream.request(self.command, self.path, body=body or None, headers=headers)
        answer = upstream.getresponse()
        content, found = answer.read(), dict(answer.getheaders())
        upstream.close()
        if self.command == "PUT":
            self.proxy.written[unquote(self.path)] = time.monotonic()
        if "list-type=2" in self.path and self.proxy.late:
            content = _ENTRY.sub(self._without_new, content)
        if "Last-Modified" in found:
            moment = parsedate_to_datetime(found["Last-Modified"]).astimezone(UTC) + self.proxy.skew
            found["Last-Modified"] = format_datetime(moment, usegmt=True)
        return answer.status, found, content

    def _without_new(self, entry: re.Match[bytes]) -> bytes:
        bucket = self.path.partition("?")[0].rstrip("/")
        since = self.proxy.written.get(f"{bucket}/{entry[1].decode()}", float("-inf"))
        return b"" if time.monotonic() - since < self.proxy.late else entry[0]

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        length = headers.get("Content-Length", len(content)) if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - the names of the library

    def log_message(self, *_: object) -> None:
        """Log nothing."""
