from __future__ import annotations

from tests.support.clusters import any_cluster, real_kubeconfig  # noqa: F401 - fixtures for all tests in this folder
