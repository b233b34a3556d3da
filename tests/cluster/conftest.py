"""The cluster on which the tests of this folder run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster import Cluster, standalone_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start two workers, each with room for two executors."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), n_workers=2, cores=2, memory="2g") as started:
        yield started
