from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_stand_in import ApiStandIn
from tests.support.clusters import any_cluster, real_kubeconfig  # noqa: F401 - fixtures for all tests in this folder
from vnpu.kube import cluster as cluster_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vnpu.kube import Cluster


@pytest.fixture
def api() -> Iterator[ApiStandIn]:
    with ApiStandIn() as server:
        yield server


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every pause that was asked for, and none made."""
    made: list[float] = []
    monkeypatch.setattr(cluster_module, "sleep", made.append)
    return made


@pytest.fixture
def cluster(api: ApiStandIn, tmp_path: Path) -> Iterator[Cluster]:
    made = api.cluster(tmp_path)
    yield made
    made.close()
