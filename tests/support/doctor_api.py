"""The doctor's clusters (tests/support/doctor.py) behind an API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import doctor
from tests.support.api_stand_in import ApiStandIn
from tests.support.api_store import KNOWN
from vnpu.kube import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
RESOURCES = {resource.kind: resource for resource in (*KNOWN, POD_GROUPS)}


@pytest.fixture
def stand_in() -> Iterator[Callable[[str], ApiStandIn]]:
    """An API server that has the objects of one of the clusters."""
    with ApiStandIn(also=(POD_GROUPS,)) as api:

        def fill(name: str) -> ApiStandIn:
            for one in doctor.cluster(name):
                api.put(RESOURCES[one["kind"]], one)
            return api

        yield fill
