"""Who holds what: the cards of nodes, and the books of what running pods hold of them.

What one pod holds is read in :mod:`vnpu.holdings`. What is unknown is occupied: what cannot be told makes its node
unsafe for new slices, with a reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vnpu import names, quantity
from vnpu.annotations import policies, register
from vnpu.cards import NO_USE, WHOLE_CORE, Card, Node, Use
from vnpu.errors import ABSENT, AnnotationError, FieldError, InputError, bare, few, key, shown
from vnpu.holdings import held, holdings
from vnpu.objects import annotation_path, annotations_of, mapping_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vnpu.chips import Chip, ChipTable
    from vnpu.holdings import Holding

__all__ = ("Entry", "Ledger", "balance", "book", "entry", "held", "read_node")


@dataclass(frozen=True, slots=True)
class Entry:
    """What one pod tells about the cards that it holds: read once, and booked as often as the books are made.

    Attributes:
        label: the pod, for sentences.
        where: the node that it is bound to, else the one that a scheduler chose for it, else ``""``.
        holdings: what it holds, chip by chip.
        fault: why that cannot be told, ``""`` where it can.
    """

    label: str
    where: str
    holdings: tuple[Holding, ...] = ()
    fault: str = ""

    @property
    def uuids(self) -> set[str]:
        """The cards that it holds."""
        return {uuid for holding in self.holdings for uuid in holding.uses}


@dataclass(frozen=True, slots=True)
class Ledger:
    """The books of a cluster.

    Attributes:
        nodes: as given, with ``unsafe`` filled in.
        used: what is held of each card that is held at all, by UUID. A card that holds more than it has, or hard and
            soft slices together, shows all its slots as held.
        warnings: sentences.
        over_booked: what of such a card is held twice, by UUID, for people.
    """

    nodes: tuple[Node, ...]
    used: Mapping[str, Use]
    warnings: tuple[str, ...]
    over_booked: Mapping[str, str] = field(default_factory=dict)


def read_node(document: Mapping[str, Any], chips: ChipTable) -> tuple[Node, tuple[str, ...]]:
    """A node and its cards, from a Kubernetes Node object; a node without cards is a node too.

    Args:
        document: the Node as JSON.
        chips: the chip table. Cards of other chips are not seen.

    Returns:
        The node and warnings. Annotations that cannot be read make the node unsafe, with the reason. Cards of a chip
        of which kubelet offers none are unhealthy: the device plugin is gone, whatever it once registered. A node
        without ``status.allocatable``, as people write it by hand, is taken at its word.

    Raises:
        InputError: this is no Node object.
    """
    name = mapping_at(document, "metadata").get("name", ABSENT)
    if not isinstance(name, str) or not name:
        raise InputError("metadata.name", name, "the name of a node is expected")
    annotations = annotations_of(document)
    cards: list[Card] = []
    reasons: list[str] = []
    warnings: list[str] = []
    for chip in chips:
        try:
            cards += _registered(document, annotations, chip, warnings)
        except register.NoCardsError as error:
            warnings.append(str(error))
        except FieldError as error:
            reasons.append(str(error))
    cordoned: frozenset[str] = frozenset()
    try:
        cordoned = policies.uuid_list(annotations.get(names.CORDON, ""), annotation_path(names.CORDON))
    except AnnotationError as error:
        reasons.append(str(error))
    uuids = {card.uuid for card in cards}
    if len(uuids) != len(cards):
        reasons.append("one card is registered under two chips")
    strangers = sorted(cordoned.difference(uuids))
    if strangers:
        warnings.append(f"{annotation_path(names.CORDON)}: the node has no card {few(strangers)}")
    hard_because = _hard_because(annotations, chips)
    node = Node(
        name,
        tuple(sorted(cards, key=lambda card: (card.index, card.uuid))),
        soft=not hard_because,
        cordoned=cordoned,
        unsafe="; ".join(reasons),
        hard_because=hard_because,
    )
    return node, tuple(f"node {name}: {warning}" for warning in warnings)


def _hard_because(annotations: Mapping[str, Any], chips: ChipTable) -> str:
    """Why the node takes no soft slices, ``""`` where it does."""
    if names.SOFT_NODE not in annotations:
        missing = f"it has no annotation {names.SOFT_NODE}, and the device config has no hamiVnpuCore: true"
        return "" if chips.soft_nodes_by_default else missing
    value = annotations[names.SOFT_NODE]
    return "" if value == "true" else f'its annotation {names.SOFT_NODE} is {shown(value)}, not the text "true"'


def _registered(
    document: Mapping[str, Any], annotations: Mapping[str, Any], chip: Chip, warnings: list[str]
) -> Sequence[Card]:
    annotation = names.node_register(chip.common_word)
    path = annotation_path(annotation)
    offered = _offered(document, chip)
    if annotation not in annotations:
        # A node written by hand often has its capacity alone.
        if found := _offered(document, chip, "capacity") if offered is None else offered:
            warnings.append(f"{path}: absent, though kubelet offers {found} {chip.resource_name}: no card is known")
        return ()
    cards = register.decode(annotations[annotation], chip, path)
    if register.is_legacy(annotations[annotation]):
        warnings.append(f"{path}: the comma text of older device plugins; Volcano does not read it")
    if offered == 0:
        warnings.append(f"kubelet offers no {chip.resource_name}: all its cards count as unhealthy")
        return [replace(card, healthy=False) for card in cards]
    return cards


def _offered(document: Mapping[str, Any], chip: Chip, where: str = "allocatable") -> int | None:
    """How many shares of the chip's cards kubelet offers, None where the object does not say what kubelet offers."""
    offers = mapping_at(document, "status", where)
    if not offers:
        return None
    value = offers.get(chip.resource_name, 0)
    return quantity.whole(value, key(f"status.{where}", chip.resource_name), low=0, high=quantity.INT32_MAX)


def book(nodes: Iterable[Node], pods: Iterable[Mapping[str, Any]], chips: ChipTable) -> Ledger:
    """The books of a cluster: what its pods hold of its cards.

    No pod raises. One whose holding cannot be told makes its node unsafe, with a reason that names pod and field; so
    do a card that the pod's node does not have and a card that two nodes register. Pods of other nodes than the given
    ones change nothing; where they hold NPUs, a warning names those nodes.

    Args:
        nodes: as :func:`read_node` or an inventory gives them.
        pods: Pods as JSON, of any phase.
        chips: the chip table.
    """
    return balance(nodes, (entry(pod, chips) for pod in pods))


def entry(pod: Mapping[str, Any], chips: ChipTable) -> Entry:
    """What one pod tells about the cards that it holds. No pod raises.

    Args:
        pod: the Pod as JSON, of any phase.
        chips: the chip table.
    """
    label, where = _label(pod), _whereabouts(pod)
    try:
        return Entry(label, where, tuple(holdings(pod, chips)))
    except FieldError as error:
        return Entry(label, where, fault=f"{label}: {error}")


def balance(nodes: Iterable[Node], entries: Iterable[Entry]) -> Ledger:
    """The books of these nodes, from what their pods tell: :func:`book` in two steps.

    Args:
        nodes: as :func:`read_node` or an inventory gives them.
        entries: what pods tell.
    """
    books = _Books(tuple(nodes))
    for one in entries:
        books.add(one)
    return books.close()


class _Books:
    """The ledger while it is written."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes
        self._reasons: dict[str, list[str]] = {node.name: [] for node in nodes}
        self._used: dict[str, Use] = {}
        self._mixed: set[str] = set()
        self._warnings: list[str] = []
        self._elsewhere: Counter[str] = Counter()
        self._homes: dict[str, tuple[str, Card]] = {}
        for node in nodes:
            for card in node.cards:
                other, _ = self._homes.setdefault(card.uuid, (node.name, card))
                if other != node.name:
                    for name in (other, node.name):
                        self._reasons[name].append(f"card {card.uuid} is registered by {other} and {node.name}")

    def add(self, pod: Entry) -> None:
        """Book one pod."""
        if pod.fault:
            self._notice(pod.where)
            self._blame(pod.where, pod.fault)
        elif pod.holdings:
            self._notice(pod.where)
        for holding in pod.holdings:
            self._warnings += (f"{pod.label}: {warning}" for warning in holding.warnings)
            for uuid, use in holding.uses.items():
                self._book(pod.label, pod.where, holding.chip, uuid, use)

    def _notice(self, where: str) -> None:
        """Count a pod that holds NPUs, or may hold some, on a node that was not given."""
        if where and where not in self._reasons:
            self._elsewhere[where] += 1

    def _book(self, label: str, where: str, chip: Chip, uuid: str, use: Use) -> None:
        if uuid not in self._homes:
            self._blame(where, f"{label} holds card {bare(uuid)}, which no known node has")
            return
        home, card = self._homes[uuid]
        if card.chip != chip.common_word:
            self._blame(home, f"{label} holds card {bare(uuid)} as {chip.common_word}, and it is {card.chip}")
        if where and where != home:
            place = where if where in self._reasons else home
            self._blame(place, f"{label} is on {bare(where)} and holds card {bare(uuid)} of {home}")
        before = self._used.get(uuid, NO_USE)
        if before.mode not in {None, use.mode}:
            self._mixed.add(uuid)
        self._used[uuid] = before.plus(use)

    def _blame(self, where: str, reason: str) -> None:
        if where in self._reasons:
            self._reasons[where].append(reason)
        elif not where:
            self._warnings.append(f"{reason}; it names no node")

    def close(self) -> Ledger:
        """The ledger of all that was booked."""
        over_booked = {}
        for uuid, use in self._used.items():
            home, card = self._homes[uuid]
            excess = [f"{has} of {of} {unit}" for has, of, unit in _compared(use, card) if has > of]
            if uuid in self._mixed:
                excess.append("hard beside soft slices")
            if excess:
                over_booked[uuid] = ", ".join(excess)
                self._warnings.append(
                    f"node {home}: card {uuid} is over-booked ({over_booked[uuid]}) and takes no new slice"
                )
                self._used[uuid] = replace(use, slots=max(use.slots, card.slots))
        if self._elsewhere:
            pods = self._elsewhere.total()
            subject = "1 running pod holds" if pods == 1 else f"{pods} running pods hold"
            self._warnings.append(f"{subject} NPUs on nodes that are not listed: {few(sorted(self._elsewhere))}")
        nodes = tuple(self._closed(node) for node in self._nodes)
        return Ledger(nodes, self._used, tuple(self._warnings), over_booked)

    def _closed(self, node: Node) -> Node:
        reasons = self._reasons[node.name]
        if not reasons:
            return node
        self._warnings += (f"node {node.name} is unsafe: {reason}" for reason in reasons)
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        return replace(node, unsafe="; ".join(filter(None, (node.unsafe, reasons[0] + more))))


def _compared(use: Use, card: Card) -> tuple[tuple[int, int, str], ...]:
    return (
        (use.slots, card.slots, "slots"),
        (use.memory_mib, card.memory_mib, "MiB"),
        (use.core_percent, WHOLE_CORE, "percent"),
        (use.ai_core, card.ai_core, "AI cores"),
        (use.ai_cpu, card.ai_cpu, "AI CPUs"),
    )


def _label(pod: Mapping[str, Any]) -> str:
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return "a pod without metadata"
    namespace, name = (bare(str(metadata.get(field) or "")) for field in ("namespace", "name"))
    return f"pod {namespace or 'default'}/{name or '?'}"


def _whereabouts(pod: Mapping[str, Any]) -> str:
    """The node that the pod is bound to, else the one that a scheduler chose for it, else ``""``."""
    for section, path in (("spec", ("nodeName",)), ("metadata", ("annotations", names.ASSIGNED_NODE))):
        value = pod.get(section)
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return value
    return ""
