"""An API server with webhook configurations as the chart makes them: without a caBundle."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.api_stand_in import ApiStandIn
from vnpu.kube import MUTATING, VALIDATING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def configured() -> Iterator[ApiStandIn]:
    """A stand-in with a mutating and a validating configuration called ``vnpu``, with one webhook each."""
    with ApiStandIn() as server:
        for resource in (MUTATING, VALIDATING):
            server.put(resource, {"metadata": {"name": "vnpu"}, "webhooks": [{"name": "w", "clientConfig": {}}]})
        yield server
