"""Kubernetes objects as JSON, as small as a test needs them."""

from __future__ import annotations

import json
from typing import Any

from vnpu import names

CHIP = "Ascend910B3"


def container(name: str, *, chip: str = CHIP, **asks: Any) -> dict[str, Any]:
    """A container that asks for ``count``, ``memory`` and ``core`` of the chip; for nothing without them."""
    resources = {
        f"huawei.com/{chip}{'' if kind == 'count' else '-' + kind}": str(value)
        for kind, value in asks.items()
        if kind != "restartPolicy"
    }
    found: dict[str, Any] = {"name": name, "resources": {"limits": resources, "requests": dict(resources)}}
    if "restartPolicy" in asks:
        found["restartPolicy"] = asks["restartPolicy"]
    return found


def pod(
    *containers: dict[str, Any],
    name: str = "app",
    node: str = "n1",
    phase: str = "Running",
    mode: str | None = "hami-core",
    init: tuple[dict[str, Any], ...] = (),
    text: str | None = None,
    info: str | None = None,
    chip: str = CHIP,
    annotations: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A pod with its device text and JSON; by default one container that asks for one card softly."""
    written = {names.MODE: mode, names.allocated(chip): text, names.runtime_info(chip): info}
    found = {key: value for key, value in written.items() if value is not None} | (annotations or {})
    spec: dict[str, Any] = {"containers": list(containers) or [container("app", count=1, memory=8192, core=20)]}
    if init:
        spec["initContainers"] = list(init)
    if node:
        spec["nodeName"] = node
    return {
        "kind": "Pod",
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}", "annotations": found},
        "spec": spec,
        "status": {"phase": phase},
    }


def card(uuid: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    """One card of a register annotation."""
    found = {"id": uuid, "index": index, "count": 10, "devmem": 65536, "devcore": 100, "type": CHIP, "health": True}
    return found | fields


def node(
    *cards: dict[str, Any],
    name: str = "n1",
    chip: str = CHIP,
    offered: Any = "40",
    annotations: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A soft node that registers these cards, of which kubelet offers so many shares."""
    found = {names.SOFT_NODE: "true"}
    if cards:
        found[names.node_register(chip)] = json.dumps(cards)
    return {
        "kind": "Node",
        "metadata": {"name": name, "annotations": found | (annotations or {})},
        "status": {"allocatable": {"cpu": "8"} if offered is None else {f"huawei.com/{chip}": offered}},
    }
