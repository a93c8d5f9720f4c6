"""What the extender keeps of a pod: a small part, for there may be very many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu import ledger, names
from vnpu.annotations import fields
from vnpu.containers import containers_or_faults, resources
from vnpu.errors import AnnotationError, InputError
from vnpu.objects import ENDED_PHASES, annotation_path, annotations_of, mapping_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vnpu.chips import Chip, ChipTable
    from vnpu.ledger import Entry

_METADATA: Final = ("namespace", "name", "uid", "resourceVersion")
_CONTAINER: Final = ("name", "resources", "restartPolicy")
_OWN_PREFIXES: Final = (names.RUNTIME_INFO_PREFIX, names.DEVICE_TEXT_PREFIX, names.PREDICATE_TIME)


@dataclass(frozen=True, slots=True)
class Unserved:
    """A pod that is bound, and whose containers the device plugin has not served yet.

    Attributes:
        texts: its device texts, chip by chip, and whatever else decides what its containers get.
        alone: whether a single container of it waits.
        since: when it was bound, in unix seconds; 0 where it does not say.
    """

    texts: tuple[str, ...]
    alone: bool
    since: int

    def alike(self, other: Unserved | None) -> bool:
        """Whether a device plugin may take one for the other: whichever is served first, both get the same."""
        return other is not None and self.alone and other.alone and self.texts == other.texts


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that has to do with NPUs.

    Attributes:
        uid: its UID.
        namespace: its namespace.
        name: its name.
        version: its resource version.
        node: the node that it is bound to, ``""`` for none.
        deleting: whether somebody deleted it; it may run all the same.
        finished: whether all its containers ended for good.
        entry: what it tells about the cards that it holds.
        ticket: under which ticket an extender bound it, ``""`` for none.
        unserved: what the device plugin still has to serve, None where there is nothing.
        document: what it asks for, reduced to what matters here; empty for a bound pod.
    """

    uid: str
    namespace: str
    name: str
    version: str
    node: str
    deleting: bool
    finished: bool
    entry: Entry
    ticket: str
    unserved: Unserved | None
    document: Mapping[str, Any]


def read(document: Mapping[str, Any], chips: ChipTable) -> Pod | None:
    """The pod, None where it neither asks for an NPU nor holds one.

    Args:
        document: a Pod as the API server gives it.
        chips: the chip table.
    """
    reduced = reduce(document)
    annotations = reduced["metadata"]["annotations"]
    held = [
        chip
        for chip in chips
        if names.allocated(chip.common_word) in annotations or names.runtime_info(chip.common_word) in annotations
    ]
    if not held and not any(_asks(container, chips) for container in containers_or_faults(reduced)):
        return None
    metadata, node, phase = reduced["metadata"], reduced["spec"]["nodeName"], reduced["status"]["phase"]
    return Pod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=metadata["resourceVersion"],
        node=node,
        deleting="deletionTimestamp" in document["metadata"],
        finished=phase in ENDED_PHASES,
        entry=ledger.entry(reduced, chips),
        ticket=annotations.get(names.BIND_TICKET, ""),
        unserved=_unserved(reduced, held) if node and phase == "Pending" else None,
        document={} if node else reduced,
    )


def reduce(document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a Pod that decide what it asks for, what it holds and where it is.

    Raises:
        InputError: this is no Pod object. What is no container is kept, for whoever reads containers to tell.
    """
    metadata, spec, annotations = (
        mapping_at(document, "metadata"),
        mapping_at(document, "spec"),
        annotations_of(document),
    )
    return {
        "metadata": {name: metadata.get(name, "") for name in _METADATA}
        | {"annotations": {name: value for name, value in annotations.items() if name.startswith(_OWN_PREFIXES)}},
        "spec": {section: _containers(spec.get(section)) for section in ("initContainers", "containers")}
        | {"nodeName": spec.get("nodeName") or ""},
        "status": {"phase": mapping_at(document, "status").get("phase", "")},
    }


def _containers(entries: Any) -> Any:
    if not isinstance(entries, list):
        return entries
    return [
        {name: one[name] for name in _CONTAINER if name in one} if isinstance(one, dict) else one for one in entries
    ]


def bound(document: Mapping[str, Any], node: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    """A reduced pod as it will be once it is bound with these annotations."""
    metadata = {**document["metadata"], "annotations": {**document["metadata"]["annotations"], **annotations}}
    return {**document, "metadata": metadata, "spec": {**document["spec"], "nodeName": node}}


def _asks(container: Any, chips: ChipTable) -> bool:
    return not isinstance(container, InputError) and any(
        isinstance(named, InputError) or chips.resource(named.name) is not None for named in resources(container)
    )


def _unserved(reduced: Mapping[str, Any], held: list[Chip]) -> Unserved | None:
    annotations = reduced["metadata"]["annotations"]
    if annotations.get(names.BIND_PHASE) != names.BIND_PHASE_ALLOCATING:
        return None
    texts = tuple(annotations.get(names.allocated(chip.common_word), "") for chip in held)
    templates = tuple(annotations.get(names.runtime_info(chip.common_word), "") for chip in held)
    manner = annotations.get(names.MODE, ""), annotations.get(names.SHARE, "")
    since = _seconds(annotations.get(names.BIND_TIME, ""))
    return Unserved((*texts, *templates, *manner), sum(_waiting(texts)) == 1, since)


def _seconds(text: str) -> int:
    """The unix seconds in an annotation that anybody may have written, 0 where there are none."""
    try:
        return fields.number(text, annotation_path(names.BIND_TIME))
    except AnnotationError:
        return 0


def _waiting(texts: tuple[str, ...]) -> Iterator[bool]:
    """For each slot of these device texts, whether it has cards."""
    for text in texts:
        yield from (bool(slot) for slot in text.split(";"))
