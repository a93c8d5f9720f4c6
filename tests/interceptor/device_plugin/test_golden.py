"""Golden nodes: what kubelet is told and asks, over its sockets, and what it and the cluster then read.

A case is a YAML file in golden/: the node (``mode``, ``devices``, ``settings``, its ``lock``), its pods, what kubelet
asks for (``allocate``, a resource and a number of cards), and what must come of it. A case without ``allocate`` shows
the node alone. A new case needs no code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from interceptor.device_plugin.settings import parse
from interceptor.devices import Device, machine_of
from tests.support.containers import eventually
from tests.support.node_object import annotate, annotations, capacity
from vnpu import kube, names

if TYPE_CHECKING:
    from tests.support.api_stand_in import ApiStandIn
    from tests.support.kubelet import Endpoint, Kubelet, PluginThread

CASES = sorted((Path(__file__).parent / "golden").glob("*.yaml"))
UID = "<uid>"
"""Stands for the uid that the API server gave."""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path: Path, thread: PluginThread, kubelet: Kubelet, api: ApiStandIn) -> None:
    case = yaml.safe_load(path.read_text())
    prepare(case, thread, api)
    with thread.running():
        words = sorted({device["chip"] for device in case["devices"]})
        endpoints = [kubelet.registration() for _ in words]
        by_resource = {request.resource_name: kubelet.channel(request) for request in endpoints}
        if "allocate" in case:
            assert [asked(one, by_resource) for one in case["allocate"]] == with_uid(case["answers"], api)
            assert pods_after(api) == with_uid(case["pods_after"], api)
            assert annotations(api).get(names.NODE_LOCK, "") == case.get("lock_after", "")
        else:
            told = {resource: one.stream().next().health for resource, one in by_resource.items()}
            assert {resource: summary(health) for resource, health in told.items()} == case["kubelet"]
            assert eventually(lambda: case["capacity"].items() <= capacity(api).items()), capacity(api)
            assert readable(annotations(api)) == case["annotations"]


def prepare(case: dict[str, Any], thread: PluginThread, api: ApiStandIn) -> None:
    devices = [
        Device(one["uuid"], one["chip"], one.get("card", index), 0, one.get("physical", index), one.get("fault", ""))
        for index, one in enumerate(case["devices"])
    ]
    thread.machine = machine_of("test", "25.5.0", devices)
    thread.soft = case["mode"] == "soft"
    thread.settings = parse(case.get("settings"), "n1")
    annotate(api, **({names.NODE_LOCK: case["lock"]} if "lock" in case else {}))
    for pod in case.get("pods", ()):
        api.put(kube.PODS, pod)


def asked(one: dict[str, Any], endpoints: dict[str, Endpoint]) -> Any:
    """What one call of Allocate comes to: the answer, or the reason why there is none."""
    endpoint = endpoints[one["resource"]]
    ids = [f"slot-{number}" for number in range(one["cards"])]
    if one.get("refused"):
        return endpoint.refused(ids)
    (response,) = endpoint.allocate(ids)
    mounts = [f"{m.host_path} at {m.container_path}{', read-only' * m.read_only}" for m in response.mounts]
    return {"env": dict(response.envs)} | ({"mounts": mounts} if mounts else {})


def with_uid(expected: Any, api: ApiStandIn) -> Any:
    text = json.dumps(expected)
    for pod in api.objects(kube.PODS):
        text = text.replace(f"{UID[:-1]} {pod['metadata']['name']}>", pod["metadata"]["uid"])
    return json.loads(text)


def pods_after(api: ApiStandIn) -> dict[str, dict[str, str]]:
    """The allocation's annotations that the plugin writes."""
    return {
        pod["metadata"]["name"]: {
            name: value
            for name, value in pod["metadata"]["annotations"].items()
            if name.endswith("-to-allocate") or name == names.BIND_PHASE
        }
        for pod in api.objects(kube.PODS)
    }


def summary(health: dict[str, str]) -> dict[str, str]:
    """Slots of each card, and their health."""
    found: dict[str, list[str]] = {}
    for slot, word in health.items():
        found.setdefault(slot.rpartition("-")[0], []).append(word)
    return {card: f"{len(words)} {' '.join(sorted(set(words)))}" for card, words in found.items()}


def readable(told: dict[str, Any]) -> dict[str, Any]:
    """The annotations, handshakes without their time."""
    return {
        name: value.partition("_")[0] if name.startswith("hami.io/node-handshake-") else value
        for name, value in told.items()
    }


def test_there_are_golden_cases() -> None:
    assert len(CASES) >= 8
