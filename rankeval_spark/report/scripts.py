"""The scripts of a page: the library that draws, and our own lines, with the sums by which a browser admits them."""

from __future__ import annotations

import base64
import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import resources
from typing import Any, Final

from rankeval_spark.errors import Fault
from rankeval_spark.report.figures.look import INSTALL, extra, library

PLACE: Final = "rankeval_spark.report.templates"
_EXPOSED: Final = "window.vegaEmbed = vegaEmbed;"


@cache
def drawing_library() -> str:
    """Bundle Vega-Embed with Vega-Lite and Vega, of the version that Altair writes for, as one script."""
    version = ".".join(str(library().SCHEMA_VERSION).lstrip("v").split(".")[:2])
    bundle: str = converter().javascript_bundle(_EXPOSED, vl_version=version)
    # Nothing in it may end its element: the text of an end tag occurs in strings only.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def converter() -> Any:  # noqa: ANN401 - a module
    """Import what has the scripts that draw; as :func:`extra`."""
    return extra("vl_convert", Fault("report", "no vl_convert", "the scripts that draw", INSTALL))


def started() -> Future[str]:
    """Begin to bundle in a thread: it takes a second, in which the page is built."""
    pool = ThreadPoolExecutor(max_workers=1)
    future = pool.submit(drawing_library)
    pool.shutdown(wait=False)
    return future


def own(name: str) -> str:
    """Read a file that is shipped with the page."""
    return resources.files(PLACE).joinpath(name).read_text(encoding="utf-8")


def admitted(script: str) -> str:
    """Give the sum by which a content security policy admits a script, and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
