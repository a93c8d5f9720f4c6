from __future__ import annotations

from tests.support.clusters import real_kubeconfig  # noqa: F401 - a fixture for the tests in this folder
