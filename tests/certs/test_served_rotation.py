"""The whole way: replicas on an API server, a folder, the server that reads it, and callers that trust a caBundle.

``VNPU_ROTATIONS=20`` changes the CA as often; the default keeps the suite quick.
"""

from __future__ import annotations

import base64
import os
import random
import ssl
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from certs.folder import stored
from certs.keep import Log, Replica
from certs.publish import Place
from certs.rotation import Step
from tests.support.api_stand_in import ApiStandIn
from tests.support.reviews import body_of
from tests.support.server import running
from tests.support.traffic import post, traffic, wait_until
from vnpu.kube import MUTATING, VALIDATING

if TYPE_CHECKING:
    from pathlib import Path

ROTATIONS = int(os.environ.get("VNPU_ROTATIONS", "2"))
MESSAGE = post(body_of("mutate-create-pods-soft-910b3.json"))
PLACE = Place("vnpu", "webhook", "certs", ("vnpu",))
NAME = "webhook.vnpu.svc"
CALLERS = 3
PROPAGATION = timedelta(seconds=60)


class ApiServers:
    """Who calls by which caBundle. The news of a new one takes as long as a test wants.

    A caller asks for a context before each new connection, so once all have asked again, no connection is being opened
    by what they knew before.
    """

    def __init__(self, api: ApiStandIn) -> None:
        self._api = api
        self._known: list[bytes] = []
        self._asked: set[int] = set()
        self.publish()

    def published(self) -> bytes:
        found = {
            one["clientConfig"].get("caBundle", "")
            for resource in (MUTATING, VALIDATING)
            for configuration in self._api.objects(resource)
            for one in configuration["webhooks"]
        }
        (bundle,) = found
        return base64.b64decode(bundle)

    def publish(self) -> None:
        """Some have the news, others not yet."""
        self._known = [*self._known[-1:], self.published()]

    def trust(self) -> ssl.SSLContext:
        self._asked.add(threading.get_ident())
        return ssl.create_default_context(cadata=random.choice(self._known).decode())

    def wait_until_all_know(self) -> None:
        self._known = self._known[-1:]
        self._asked.clear()
        wait_until(lambda: len(self._asked) >= CALLERS, "all callers have asked again")


@pytest.mark.timeout(180 + 60 * ROTATIONS)
def test_a_rotation_costs_no_call(tmp_path: Path) -> None:
    folder, now = tmp_path / "tls", [0.0]
    with ApiStandIn() as api:
        for resource in (MUTATING, VALIDATING):
            api.put(resource, {"metadata": {"name": "vnpu"}, "webhooks": [{"name": "w", "clientConfig": {}}]})
        cluster = api.cluster(tmp_path)
        replicas = [
            Replica(cluster, PLACE, place, Log(), propagation=PROPAGATION, monotonic=lambda: now[0])
            for place in (folder, None)
        ]

        def until(step: Step) -> None:
            taken: list[Step | None] = []
            while taken[-2:] != [step, step]:
                taken += [replica.turn()[0] for replica in replicas]
                assert len(taken) < 40, taken

        until(Step.WAIT)
        now[0] += PROPAGATION.total_seconds()
        until(Step.SETTLED)
        servers = ApiServers(api)
        options = ("--cert", str(folder / "tls.crt"), "--key", str(folder / "tls.key"), "--workers", "2")
        with (
            running(*options, temporary=tmp_path, ca=folder / "ca.crt") as server,
            traffic(server.address, servers.trust, MESSAGE, kept=2, new=CALLERS, pause_s=0.002, name=NAME) as calls,
        ):
            for _ in range(ROTATIONS):
                random.choice(replicas).renew = True
                until(Step.WAIT)
                servers.publish()
                wait_until(lambda: calls.number > 0, "calls")
                servers.wait_until_all_know()
                now[0] += PROPAGATION.total_seconds()
                until(Step.SETTLED)
                servers.publish()
                pair, _ = stored(folder)
                assert pair is not None
                leaf = ssl.PEM_cert_to_DER_cert(pair.pair.certificate.decode())
                wait_until(lambda leaf=leaf: leaf in calls.certificates, "the new certificate")  # type: ignore[misc]
            wait_until(lambda: calls.number >= 500 * ROTATIONS, "calls", 60.0 + 30 * ROTATIONS)
        cluster.close()
    assert calls.failures == []
    assert set(calls.statuses) == {200}
    assert len(calls.certificates) == ROTATIONS + 1
    print(f"{calls.number} calls over {ROTATIONS} rotations, {len(calls.certificates)} certificates")  # noqa: T201
