"""Servers of object stores on this machine, and drivers that reach them, each through a proxy of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import os
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from obstore.store import from_url

from rankeval_spark import object_stores
from rankeval_spark.results import object_storage
from rankeval_spark.results.object_storage import ObjectStorage
from tests.stores.proxy import Proxy
from tests.support.cli import PROJECT

SERVERS: Final = os.environ.get("RANKEVAL_STORE_SERVERS", str(PROJECT / ".venv-store-servers/bin/python"))
AZURITE: Final = shutil.which(
    "azurite-blob", path=f"{PROJECT / 'build/node_modules/.bin'}:{os.environ.get('PATH', '')}"
)
collect_ignore = ["s3_server.py"]  # needs moto, which is in another environment
BUCKET: Final = "bucket"
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = base64.b64encode(b"a key that only a test knows").decode()
_current: Final = threading.local()  # the driver of each thread


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.stores)


@dataclass(frozen=True)
class Server:
    """A store on a port, and what its clients have in their environment, but its endpoint."""

    port: int
    scheme: str
    variables: Mapping[str, str]
    endpoint: str  # name of the variable
    path: str = ""  # of the endpoint

    def environment(self, proxy: Proxy | None = None) -> dict[str, str]:
        """Return the variables of a driver, which goes through a proxy if there is one."""
        url = f"http://127.0.0.1:{self.port}" if proxy is None else proxy.url
        return {**self.variables, self.endpoint: url + self.path}


@dataclass
class Drivers:
    """Drivers of one results root, which share nothing but the store."""

    server: Server
    root: str
    stack: ExitStack = field(default_factory=ExitStack)

    def proxy(self) -> Proxy:
        """Return a proxy that goes when the test ends."""
        made = Proxy(self.server.port)
        self.stack.callback(made.close)
        return made

    def storage(self, proxy: Proxy | None = None) -> ObjectStorage:
        """Return the root as another process opens it."""
        options: Any = {name.lower(): value for name, value in self.server.environment(proxy).items()}
        store = from_url(
            self.root, config=options, client_options={"allow_http": True}, retry_config=object_stores.RETRIES
        )
        return ObjectStorage(self.root, store)

    @contextmanager
    def driving(self, proxy: Proxy | None = None) -> Iterator[ObjectStorage]:
        """Let this thread open the root as a driver of its own."""
        before = getattr(_current, "storage", None)
        _current.storage = self.storage(proxy)
        try:
            yield _current.storage
        finally:
            _current.storage = before


@pytest.fixture
def drivers(s3: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drivers]:
    """Give drivers of a root in which there is nothing."""
    yield from _drivers(s3, monkeypatch)


@pytest.fixture(params=["s3", "azure"])
def drivers_of_each(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drivers]:
    """Give the same on each kind of store that is here."""
    yield from _drivers(request.getfixturevalue(request.param), monkeypatch)


def _drivers(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drivers]:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(object_storage, "open_objects", lambda _address: _current.storage)
    made = Drivers(server, f"{server.scheme}://{BUCKET}/{uuid.uuid4().hex}")
    with made.stack:
        yield made


@pytest.fixture
def in_environment(s3: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[Proxy | None], None]:
    """Give what sets the environment to a store, as a user does, for commands in this process."""

    def choose(proxy: Proxy | None) -> None:
        monkeypatch.setattr(object_storage, "open_objects", cache(ObjectStorage))
        object_stores.cached_store.cache_clear()
        for name, value in s3.environment(proxy).items():
            monkeypatch.setenv(name, value)

    return choose


@pytest.fixture(scope="session")
def s3() -> Iterator[Server]:
    """Run an S3 server with one bucket."""
    if not Path(SERVERS).exists():
        pytest.skip(f"no {SERVERS}: `make test-stores` makes it")
    port = _free_port()
    with _running([SERVERS, str(Path(__file__).with_name("s3_server.py")), str(port)], port):
        assert _put(port, f"/{BUCKET}", {}) == 200
        keys = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "a secret", "AWS_REGION": "us-east-1"}
        yield Server(port, "s3", keys, "AWS_ENDPOINT_URL")


@pytest.fixture(scope="session")
def azure() -> Iterator[Server]:
    """Run an Azure server with one container."""
    if AZURITE is None:
        pytest.skip("no azurite-blob here: `make test-stores` installs it where there is node")
    port = _free_port()
    command = [AZURITE, "--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(port)]
    with _running(command, port, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}):
        dated = f"x-ms-date:{formatdate(usegmt=True)}\nx-ms-version:2021-08-06"
        resource = f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
        text = "PUT" + "\n" * 12 + f"{dated}\n{resource}"
        signed = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
        headers = dict(line.split(":", 1) for line in dated.split("\n"))
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{signed}"
        assert _put(port, f"/{ACCOUNT}/{BUCKET}?restype=container", headers) == 201
        keys = {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}
        yield Server(port, "az", keys, "AZURE_STORAGE_ENDPOINT", path=f"/{ACCOUNT}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _running(command: Sequence[str], port: int, variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a server until the end of the tests."""
    environment = {**os.environ, **(variables or {})}
    environment.pop("PYTHONPATH", None)
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            patience = time.monotonic() + 60
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                assert server.poll() is None, f"{command[0]} ended with {server.returncode}"
                assert time.monotonic() < patience, f"{command[0]} does not answer"
                time.sleep(0.1)
            yield
        finally:
            server.kill()  # azurite waits a minute and a half for connections that are open


def _put(port: int, path: str, headers: Mapping[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("PUT", path, headers={**headers, "Content-Length": "0"})
    status = connection.getresponse().status
    connection.close()
    return status
