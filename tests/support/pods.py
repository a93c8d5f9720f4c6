"""Small pods for tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonpatch

from webhook.patch import operations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vnpu.admission.rules import Set

CHIP = "huawei.com/Ascend910B3"
MEMORY = f"{CHIP}-memory"
CORE = f"{CHIP}-core"


def asking(chip: str = CHIP, /, **amounts: Any) -> dict[str, Any]:
    """Limits of a chip: ``count``, ``memory`` and ``core``."""
    words = {"count": chip, "memory": f"{chip}-memory", "core": f"{chip}-core"}
    return {words[word]: amount for word, amount in amounts.items()}


def container(name: str = "app", limits: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A container; ``limits`` stand in its resources, other fields as they are."""
    resources = {"resources": {"limits": limits}} if limits is not None else {}
    return {"name": name, "image": "registry.example/app:1", **resources, **fields}


def pod(
    *apps: dict[str, Any], init: Iterable[dict[str, Any]] = (), annotations: Any = None, **spec: Any
) -> dict[str, Any]:
    """A pod of these containers; further fields stand in its spec."""
    metadata: dict[str, Any] = {"name": "p", "namespace": "n"}
    if annotations is not None:
        metadata["annotations"] = annotations
    inits = {"initContainers": list(init)} if init else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**inits, "containers": list(apps), **spec},
    }


def patched(document: dict[str, Any], sets: Iterable[Set]) -> dict[str, Any]:
    """The document with the assignments made, by way of the webhook's patch and an applier that is not ours."""
    result: dict[str, Any] = jsonpatch.apply_patch(document, json.dumps(operations(document, sets)))
    return result
