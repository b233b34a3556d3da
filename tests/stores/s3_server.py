"""An S3 server of moto on a port of this machine, one request at a time; run by the Python of .venv-store-servers.

As shipped, moto's conditional writes are not atomic: of 600 keys for which eight threads raced, 19 had two creators.
"""

import io
import sys
import threading
from collections.abc import Callable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

inner, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()


class Quiet(WSGIRequestHandler):
    """A handler that logs no request, and keeps connections."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: object) -> None:
        """Log nothing."""


def app(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    """Answer a request after those before it; its body is read first, so that a slow client holds nobody up."""
    if not environ.get("wsgi.input_terminated"):
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    with one_at_a_time:
        return [b"".join(inner(environ, start_response))]


run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True, request_handler=Quiet)
