"""Nodes: what they register, whether they are alive, and whether the books of their cards can be trusted."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.annotations import handshake, lock, register
from vnpu.annotations.handshake import Side
from vnpu.chips import ResourceKind
from vnpu.errors import AnnotationError, few, shown
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.programs import Role
from webhook.doctor.snapshot import dig, items, moment, span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from vnpu.cards import Node
    from vnpu.chips import Chip
    from vnpu.kube import Object
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

NO_NODES: Final = Fault("no-npu-nodes", Severity.WARNING, "label nodes for a pool of the chart (docs/install.md)")
UNREGISTERED: Final = Fault(
    "node-unregistered",
    Severity.ERROR,
    "restart its device plugin and read its log: Volcano binds pods to such a node without choosing cards, and they do "
    "not start",
)
UNREADABLE: Final = Fault(
    "node-annotation-unreadable",
    Severity.ERROR,
    "the node takes no new slices until it is mended: kubectl annotate it away; the device plugin writes its own again",
)
UNSAFE: Final = Fault(
    "node-unsafe",
    Severity.ERROR,
    "the node takes no new slices until that is mended: delete the pod that is named, or have its scheduler write what "
    "it holds",
)
OVERBOOKED: Final = Fault(
    "card-over-booked", Severity.ERROR, "move pods away from the card (kubectl vnpu top pods tells which are there)"
)
STALE: Final = Fault(
    "node-handshake-stale",
    Severity.WARNING,
    "look at the node's device plugin: it speaks when it is asked, and every few minutes by itself",
)
UNANSWERED: Final = Fault(
    "node-handshake-unanswered",
    Severity.ERROR,
    "look at the node's device plugin: HAMi's scheduler asked and got no answer, and drops the node's cards",
)
SOFT_WORD: Final = Fault(
    "node-soft-flag-odd",
    Severity.WARNING,
    'write "true" or "false" into the annotation: every other word means hard slices only',
)
SOFT_MISMATCH: Final = Fault(
    "node-soft-flag-differs",
    Severity.WARNING,
    "look at the events of the node and the log of its device plugin: what soft slices need (driver {driver}, npu-smi, "
    "the library) is missing there, or another device plugin wrote the flag",
)
FEW_SLOTS: Final = Fault(
    "soft-slots-by-templates",
    Severity.INFO,
    "nothing, where that is enough; else give the node more (vDeviceCount; softSlots with our device plugin)",
)
AMOUNTS: Final = Fault(
    "node-amounts-missing",
    Severity.WARNING,
    "look at the log of its device plugin: it may not patch nodes/status; pods of schedulers that do not ignore these "
    "resources stay pending",
)
UNHEALTHY: Final = Fault(
    "card-unhealthy", Severity.WARNING, "npu-smi info -t health on the node gives the code (docs/runbook.md)"
)
CORDONED: Final = Fault(
    "card-cordoned",
    Severity.INFO,
    "nothing, while it is meant; kubectl annotate node {node} huawei.com/vnpu-cordon- ends it",
)
CORDON_STRANGER: Final = Fault(
    "cordon-of-unknown-card", Severity.WARNING, "correct the UUIDs: kubectl vnpu top nodes shows those that there are"
)
OLD_LOCK: Final = Fault(
    "node-lock-old",
    Severity.WARNING,
    "nothing, if a scheduler takes it over; else kubectl annotate node {node} hami.io/mutex.lock-: pods for the node "
    "wait",
)
ODD_LOCK: Final = Fault(
    "node-lock-unreadable",
    Severity.WARNING,
    "kubectl annotate node {node} hami.io/mutex.lock-: nobody can tell whose it is",
)
NOT_OFFERED: Final = Fault(
    "node-not-offered",
    Severity.ERROR,
    "restart the node's device plugin and read its log: it has not registered with kubelet, so its cards count as "
    "unhealthy",
)
LEGACY: Final = Fault(
    "node-registration-legacy", Severity.WARNING, "update the node's device plugin: Volcano does not read this form"
)
HANDSHAKE_UNREADABLE: Final = Fault(
    "node-handshake-unreadable", Severity.WARNING, "kubectl annotate it away: the device plugin writes it again"
)

_HOURS_OF_ZONES: Final = timedelta(hours=14)
"""The handshake is written in the node's local time, without its zone: no clock is further ahead of UTC."""
_STALE: Final = timedelta(seconds=2 * names.HANDSHAKE_STALE_S)
_ANSWERED: Final = timedelta(minutes=2)
"""HAMi's scheduler waits one minute for an answer, and the device plugin looks every half."""


def registrations(case: Case) -> Iterator[Finding]:
    """What nodes say of their cards."""
    if not case.node_readings:
        yield NO_NODES.at("cluster", "no node offers or registers a chip of the device config")
    for document, node in case.node_readings:
        subject = f"Node {node.name}"
        if node.unsafe:
            yield UNREADABLE.at(subject, node.unsafe)
        else:
            yield from _registered(case, document, node)
        uuids = {card.uuid for card in node.cards}
        if strangers := sorted(node.cordoned - uuids):
            yield CORDON_STRANGER.at(subject, f"{names.CORDON} names {few(strangers)}, which the node does not have")
        if unhealthy := [card.uuid for card in node.cards if not card.healthy and card.uuid not in node.cordoned]:
            yield UNHEALTHY.at(subject, f"cards are unhealthy: {few(unhealthy)}")
        if cordoned := sorted(node.cordoned & uuids):
            yield CORDONED.at(subject, f"cards take no new slices: {few(cordoned)}", node=node.name)
        yield from _soft(case, document, node)
        yield from _amounts(case, document, node)


def _registered(case: Case, document: Object, node: Node) -> Iterator[Finding]:
    """What kubelet offers of each chip against what the device plugin wrote."""
    subject, annotations = f"Node {node.name}", dig(document, "metadata", "annotations") or {}
    words, offered = {card.chip for card in node.cards}, case.offered(document)
    for chip in case.chips:
        key, count = names.node_register(chip.common_word), chip.resource_name in offered
        if count and chip.common_word not in words:
            how = "registers no card" if key in annotations else "is absent"
            yield UNREGISTERED.at(subject, f"kubelet offers {chip.resource_name}, and the annotation {key} {how}")
        elif chip.common_word in words and not count:
            yield NOT_OFFERED.at(subject, f"{key} registers cards, and kubelet offers no {chip.resource_name}")
        if key in annotations and register.is_legacy(annotations[key]):
            yield LEGACY.at(subject, f"{key} is the comma text of older device plugins")


def _soft(case: Case, document: Object, node: Node) -> Iterator[Finding]:
    subject, flag = f"Node {node.name}", (dig(document, "metadata", "annotations") or {}).get(names.SOFT_NODE)
    if flag not in (None, "true", "false"):
        yield SOFT_WORD.at(subject, f"the annotation {names.SOFT_NODE} is {shown(flag)}")
    few_slots = sorted({card.slots for card in node.cards if card.slots == _chip(case, card.chip).hard_slots})
    if node.soft and few_slots:
        yield FEW_SLOTS.at(
            subject, f"a card takes {few_slots[0]} slices of any size, as many as of its smallest template"
        )
    for program in case.device_plugins.get(node.name, ()):
        wanted = program.option("mode") if program.role is Role.NODE else None
        if wanted is not None and node.cards and (wanted == "soft") is not node.soft:
            seen = f"its pool is {wanted}, and it says that it takes {'' if node.soft else 'no '}soft slices"
            yield SOFT_MISMATCH.at(subject, seen, driver=names.LEAST_DRIVER)


def _amounts(case: Case, document: Object, node: Node) -> Iterator[Finding]:
    """Memory and core, which our device plugin states beside the count."""
    ours = any(program.role is Role.NODE for program in case.device_plugins.get(node.name, ()))
    allocatable = dig(document, "status", "allocatable") or {}
    kinds = (ResourceKind.MEMORY, *((ResourceKind.CORE,) if node.soft else ()))
    missing = [
        name
        for word in sorted({card.chip for card in node.cards})
        for kind in kinds
        if (name := _chip(case, word).resource(kind)) not in allocatable
    ]
    if ours and missing:
        yield AMOUNTS.at(f"Node {node.name}", f"its status does not offer {few(missing)}")


def _chip(case: Case, word: str) -> Chip:
    found = case.chips.get(word)
    assert found is not None, "cards of other chips are not read"
    return found


def books(case: Case) -> Iterator[Finding]:
    """What pods hold of the cards."""
    read = {node.name: node.unsafe for _, node in case.node_readings}
    for node in case.ledger.nodes:
        before = read[node.name]
        if node.unsafe != before:
            yield UNSAFE.at(f"Node {node.name}", node.unsafe.removeprefix(before).removeprefix("; "))
        for card in node.cards:
            if card.uuid in case.ledger.over_booked:
                yield OVERBOOKED.at(f"Node {node.name}", f"card {card.uuid}: {case.ledger.over_booked[card.uuid]}")


def handshakes(case: Case) -> Iterator[Finding]:
    """Whether device plugins still speak."""
    for document, node in case.node_readings:
        annotations = dig(document, "metadata", "annotations") or {}
        for word in sorted({card.chip for card in node.cards}):
            key = names.node_handshake(word)
            if key not in annotations:
                continue
            try:
                last = handshake.decode(annotations[key], UTC, key)
            except AnnotationError as error:
                yield HANDSHAKE_UNREADABLE.at(f"Node {node.name}", str(error))
                continue
            age = _age(document, key, last.time, case.snapshot.now)
            if last.side is Side.REQUESTING and age > _ANSWERED:
                yield UNANSWERED.at(f"Node {node.name}", f"{key} is {shown(annotations[key])}, {span(age)} ago")
            elif age > _STALE:
                yield STALE.at(f"Node {node.name}", f"{key} is {shown(annotations[key])}, {span(age)} ago")


def _age(document: Object, annotation: str, written: datetime, now: datetime) -> timedelta:
    """How long ago the annotation was written, at least: managed fields tell the true time, its text a local one."""
    times = [
        moment(entry.get("time"))
        for entry in items(dig(document, "metadata", "managedFields"))
        if dig(entry, "fieldsV1", "f:metadata", "f:annotations", f"f:{annotation}") is not None
    ]
    known = [one for one in times if one is not None]
    return now - (max(known) if known else written + _HOURS_OF_ZONES)


def locks(case: Case) -> Iterator[Finding]:
    """Locks that nobody gave back."""
    for document, node in case.node_readings:
        value: Any = (dig(document, "metadata", "annotations") or {}).get(names.NODE_LOCK)
        if value is None:
            continue
        subject = f"Node {node.name}"
        try:
            found = lock.decode(value, names.NODE_LOCK)
        except AnnotationError as error:
            yield ODD_LOCK.at(subject, str(error), node=node.name)
            continue
        if found.expired(case.snapshot.now):
            owner = f"pod {found.namespace}/{found.pod}" if found.pod else "a pod that it does not name"
            age = span(case.snapshot.now - found.time)
            yield OLD_LOCK.at(subject, f"{owner} has held the node lock for {age}", node=node.name)
