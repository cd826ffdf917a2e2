"""What the tests of a cluster share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster.spark_cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
