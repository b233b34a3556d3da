"""A proxy in front of a store: it counts requests, delays answers, loses them, refuses some, and can be away."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive"}


class Proxy:
    """A server on a port of its own; its faults are attributes that tests set while it runs."""

    def __init__(self, to_port: int) -> None:
        self.to_port = to_port
        self.delay = 0.0  # seconds before each answer
        self.lost_answers = 0  # of PUTs that the store carries out
        self.refused_share = 0.0  # of requests that are answered with 503 SlowDown
        self.away_until = 0.0  # until this moment of the monotonic clock, connections are closed without an answer
        self.seen: Counter[str] = Counter()  # requests by method
        self.log: list[tuple[str, str]] = []  # method and path
        self._random, self._lock = random.Random(0), threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
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

    def clear(self) -> None:
        """Forget the requests so far."""
        with self._lock:
            self.seen.clear()
            self.log.clear()

    def fate_of(self, method: str, path: str) -> str:
        """Count a request, and decide what becomes of it."""
        with self._lock:
            self.seen[method] += 1
            self.log.append((method, path))
            if time.monotonic() < self.away_until:
                return "away"
            if self._random.random() < self.refused_share:
                return "refused"
            if method == "PUT" and self.lost_answers > 0:
                self.lost_answers -= 1
                return "lost"
            return "answered"


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fate = proxy.fate_of(self.command, self.path)
            time.sleep(proxy.delay)
            if fate == "away":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if fate == "refused":
                self._answer(503, {"Content-Type": "application/xml"}, SLOW_DOWN)
                return
            upstream = http.client.HTTPConnection("127.0.0.1", proxy.to_port, timeout=60)
            sent = ((name, value) for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP)
            headers: dict[str, Any] = dict(sent)
            upstream.request(self.command, self.path, body=body or None, headers=headers)
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            if fate == "lost":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._answer(answer.status, dict(answer.getheaders()), content)

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in {*HOP_BY_HOP, "content-length"}:
                    self.send_header(name, value)
            length = headers.get("Content-Length", len(content)) if self.command == "HEAD" else len(content)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - the names of the library

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
