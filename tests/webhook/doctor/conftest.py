"""Clusters to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import doctor
from tests.support.api_stand_in import ApiStandIn
from tests.support.api_store import KNOWN
from tests.support.clusters import real_kubeconfig  # noqa: F401 - a fixture for the tests in this folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESOURCES = {resource.kind: resource for resource in KNOWN}


@pytest.fixture
def stand_in() -> Iterator[Callable[[str], ApiStandIn]]:
    """An API server that has the objects of one of the clusters."""
    with ApiStandIn() as api:

        def fill(name: str) -> ApiStandIn:
            for one in doctor.cluster(name):
                api.put(RESOURCES[one["kind"]], one)
            return api

        yield fill
