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


def test_binds_that_wait_leave_threads_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "MOST_BINDS", 1)
    with ApiStandIn() as api, ThreadPoolExecutor(1) as pool:
        pod = api.put(PODS, objects.pod(name="p", node="", phase="Pending"))
        settings = Settings(device_plugin=DevicePlugin.VNPU)
        engine = Engine(api.cluster(tmp_path), settings, DEFAULT_CHIPS, DEFAULT_POLICY, Metrics())
        order = Order("team", "p", pod["metadata"]["uid"], "n0")
        asked, release = threading.Event(), threading.Event()
        api.fail(Fault("GET", "/pods/p", act=lambda: (asked.set(), release.wait(60))))
        first = pool.submit(engine.bind, order)
        assert asked.wait(60)
        with pytest.raises(BindError, match="1 pods are being bound"):
            engine.bind(order)
        release.set()
        with pytest.raises(BindError, match="node n0 is not known"):
            first.result(60)
        with pytest.raises(BindError, match="node n0 is not known"):
            engine.bind(order)
