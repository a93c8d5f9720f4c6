"""What the node object says of this node's NPUs, and which words of it must be written now."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from vnpu import names, quantity
from vnpu.annotations import handshake, register
from vnpu.annotations.handshake import Handshake, Side
from vnpu.cards import WHOLE_CORE
from vnpu.errors import AnnotationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from interceptor.device_plugin.inventory import Inventory

_CAPACITY: Final = "/status/capacity"
_STALE: Final = timedelta(seconds=names.HANDSHAKE_STALE_S)


def node_annotations(present: Mapping[str, Any], inventory: Inventory, now: datetime) -> dict[str, str]:
    """The annotations of the node that must be written, ``{}`` where all is said.

    Args:
        present: those that it has.
        inventory: what the node offers.
        now: with this machine's zone, in which both sides of the handshake keep their clocks.
    """
    if not inventory.cards:
        return {}
    wanted = {names.SOFT_NODE: "true" if inventory.soft else "false"}
    for chip in inventory.chips:
        cards = [offered.card for offered in inventory.of(chip)]
        wanted[names.node_register(chip.common_word)] = register.encode(cards, chip, soft=inventory.soft)
        talk = names.node_handshake(chip.common_word)
        if _must_speak(present.get(talk), now):
            wanted[talk] = handshake.encode(Handshake(Side.REPORTED, now))
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def _must_speak(value: Any, now: datetime) -> bool:
    """Whether the scheduler asks, or the last report is old; one from the future was written by another clock."""
    assert now.tzinfo is not None
    try:
        last = handshake.decode(value, now.tzinfo)
    except AnnotationError:
        return True
    return last.side is Side.REQUESTING or abs(now - last.time) > _STALE


def node_capacity(present: Mapping[str, Any], inventory: Inventory) -> list[dict[str, Any]]:
    """A JSON patch of the node's status that states memory and core, ``[]`` where both are stated.

    kubelet knows the count only, and wipes the others when it registers its node again. A node that has no capacity yet
    waits for kubelet.

    Args:
        present: ``status.capacity``.
        inventory: what the node offers.
    """
    if not present:
        return []
    return [
        {"op": "add", "path": f"{_CAPACITY}/{_escaped(name)}", "value": str(value)}
        for name, value in _resources(inventory).items()
        if not quantity.equal(present.get(name, 0), value)
    ]


def _resources(inventory: Inventory) -> dict[str, int]:
    """Memory of all cards, in the resource's unit, and 100 percent for each on a soft node; unhealthy ones too.

    Slices on a card that fell ill still hold their part, so taking it away would make the other cards look full.
    """
    found = {}
    for chip in inventory.chips:
        cards = inventory.of(chip)
        found[chip.memory_name] = sum(offered.card.memory_mib // chip.memory_factor for offered in cards)
        found[chip.core_name] = WHOLE_CORE * len(cards) if inventory.soft else 0
    return found


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def served(annotation: str, text: str, slot: int, uid: str, *, last: bool) -> list[dict[str, Any]]:
    """A JSON patch of a pod that takes an entry out of its device text; it fails where someone else was faster.

    Args:
        annotation: the key of the device text.
        text: as it was read.
        slot: the place of the entry.
        uid: of the pod.
        last: whether the pod has then all that it was to get.
    """
    pieces = text.split(";")
    pieces[slot] = ""
    path = f"/metadata/annotations/{_escaped(annotation)}"
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": path, "value": text},
        {"op": "replace", "path": path, "value": ";".join(pieces)},
    ]
    if last:
        phase = f"/metadata/annotations/{_escaped(names.BIND_PHASE)}"
        operations.append({"op": "add", "path": phase, "value": names.BIND_PHASE_SUCCESS})
    return operations


def failed(uid: str) -> Mapping[str, Any]:
    """A merge patch that marks a pod as one whose binding failed."""
    return {"metadata": {"uid": uid, "annotations": {names.BIND_PHASE: names.BIND_PHASE_FAILED}}}


def unlocked(lock: str) -> Sequence[Mapping[str, Any]]:
    """A JSON patch that takes this lock off a node, and no other."""
    path = f"/metadata/annotations/{_escaped(names.NODE_LOCK)}"
    return [{"op": "test", "path": path, "value": lock}, {"op": "remove", "path": path}]
