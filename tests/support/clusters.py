"""``any_cluster``: the same test against the stand-in and, marked ``cluster``, against a real API server.

The conftest.py of a folder imports the fixtures: ``from tests.support.clusters import any_cluster, real_kubeconfig``.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support import real_api
from tests.support.api_stand_in import ApiStandIn
from vnpu.kube import NAMESPACES, Cluster, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REAL = pytest.param("real", marks=pytest.mark.cluster)


@dataclass(frozen=True)
class AnyCluster:
    """An API server to test against.

    Attributes:
        cluster: a client of it.
        kubeconfig: for processes.
        namespace: empty, and of this test alone.
        prefix: for the names of objects without a namespace.
    """

    cluster: Cluster
    kubeconfig: str
    namespace: str
    prefix: str


@pytest.fixture(scope="session")
def real_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if reason := real_api.missing():
        pytest.skip(reason)
    with real_api.kubeconfig(tmp_path_factory.mktemp("real-api")) as path:
        yield str(path)


@pytest.fixture(params=["stand-in", *([] if real_api.missing() else [REAL])])
def any_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyCluster]:
    prefix = f"vnpu-test-{uuid.uuid4().hex[:8]}"
    if request.param == "real":
        kubeconfig = str(request.getfixturevalue("real_kubeconfig"))
        cluster = connect(kubeconfig=kubeconfig, agent="vnpu-test")
        with real_api.namespace(cluster) as namespace:
            yield AnyCluster(cluster, kubeconfig, namespace, prefix)
        cluster.close()
    else:
        with ApiStandIn() as api:
            api.put(NAMESPACES, {"metadata": {"name": prefix}})
            cluster = api.cluster(tmp_path, agent="vnpu-test")
            yield AnyCluster(cluster, str(api.kubeconfig(tmp_path)), prefix, prefix)
            cluster.close()
