from __future__ import annotations

from tests.support.clusters import real_kubeconfig  # noqa: F401 - fixtures for the tests in this folder
from tests.support.doctor_api import stand_in  # noqa: F401 - the same
