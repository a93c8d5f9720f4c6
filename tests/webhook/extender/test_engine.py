from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.support import objects
from tests.support.api_stand_in import ApiStandIn, Fault
from vnpu.admission.settings import DevicePlugin, Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.fit.policy import DEFAULT_POLICY
from vnpu.kube import PODS
from webhook.extender import engine as engines
from webhook.extender.binding import BindError, Order
from webhook.extender.engine import Engine
from webhook.extender.metrics import Metrics

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("most", "text"), [("MOST_BINDS", "1 pods are being bound, "), ("MOST_ON_A_NODE", "1 pods are being bound to n0, ")]
)
def test_binds_that_wait_leave_threads_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str, text: str
) -> None:
    monkeypatch.setattr(engines, most, 1)
    with ApiStandIn() as api, ThreadPoolExecutor(1) as pool:
        pod, other = (api.put(PODS, objects.pod(name=name, node="", phase="Pending")) for name in ("p", "other"))
        settings = Settings(device_plugin=DevicePlugin.VNPU)
        engine = Engine(api.cluster(tmp_path), settings, DEFAULT_CHIPS, DEFAULT_POLICY, Metrics())
        order = Order("team", "p", pod["metadata"]["uid"], "n0")
        asked, release = threading.Event(), threading.Event()
        api.fail(Fault("GET", "/pods/p", act=lambda: (asked.set(), release.wait(60))))
        first = pool.submit(engine.bind, order)
        assert asked.wait(60)
        with pytest.raises(BindError, match=text):
            engine.bind(order)
        with pytest.raises(BindError, match=text if most == "MOST_BINDS" else "node n1 is not known"):
            engine.bind(Order("team", "other", other["metadata"]["uid"], "n1"))
        release.set()
        with pytest.raises(BindError, match="node n0 is not known"):
            first.result(60)
        with pytest.raises(BindError, match="node n0 is not known"):
            engine.bind(order)
