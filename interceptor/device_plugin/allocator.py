"""Serving kubelet's Allocate: find the pod, prepare its files, book what it got, answer; or refuse, and say why."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from interceptor.device_plugin import answer, lookup, report
from interceptor.device_plugin.kubelet import KubeletError
from interceptor.device_plugin.notices import LOGGER
from vnpu import kube, names
from vnpu.annotations import lock as node_lock
from vnpu.errors import AnnotationError, FieldError, VnpuError
from vnpu.objects import annotations_of, mapping_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from interceptor.device_plugin.host import Host
    from interceptor.device_plugin.inventory import Inventory
    from interceptor.device_plugin.lookup import Found, Shown
    from vnpu.allocation import ContainerResponse
    from vnpu.annotations.lock import NodeLock
    from vnpu.chips import Chip, ChipTable
    from vnpu.kube import Cluster

COMPONENT: Final = "vnpu-device-plugin"
_REASON: Final = "NPUAllocationFailed"
_MOST_EVENTS: Final = 3
"""Pods that hear of one refusal that could not tell them apart."""


class AllocateError(VnpuError):
    """A container cannot be served; kubelet refuses its pod with this message."""


class Allocator:
    """Serves the containers of one node, one after the other."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        chips: ChipTable,
        host: Host,
        inventory: Callable[[], Inventory],
        served: Callable[[], frozenset[Shown]],
    ) -> None:
        """Serve the containers of ``node``.

        Args:
            cluster: the API server.
            node: the node's name.
            chips: all chips that its pods may ask for.
            host: where containers' files are made.
            inventory: what the node offers now.
            served: which containers kubelet lists as served; raises KubeletError where it does not answer.
        """
        self._cluster = cluster
        self._node = node
        self._chips = chips
        self._host = host
        self._inventory = inventory
        self._served = served
        self._turn = threading.Lock()
        self._refused: set[str] = set()

    def allocate(self, chip: Chip, counts: Sequence[int]) -> list[ContainerResponse]:
        """What each of the containers gets for which kubelet asks so many cards.

        Raises:
            AllocateError: one of them cannot be served; nothing more is served then.
        """
        with self._turn:
            return [self._serve(chip, count) for count in counts]

    def wanted(self, chip: Chip, count: int) -> list[str]:
        """UUIDs of the cards of the container for which kubelet will ask next, ``[]`` where that cannot be told."""
        with self._turn, suppress(VnpuError):
            _, lock = self._lock()
            return [card.uuid for card in self._find(chip, count, lock).entry.cards]
        return []

    def _serve(self, chip: Chip, count: int) -> ContainerResponse:
        try:
            text, lock = self._lock()
        except VnpuError as error:
            raise AllocateError(f"the node object cannot be read: {error}") from error
        try:
            found = self._find(chip, count, lock)
        except _OfPodError as error:
            self._refuse(error.pod, text, lock, str(error))
            raise AllocateError(str(error)) from error
        except lookup.NotFoundError as error:
            self._say(error.pods, str(error))
            self._release(text, lock, None)
            raise AllocateError(str(error)) from error
        except VnpuError as error:
            raise AllocateError(f"the pods of this node cannot be read: {error}") from error
        try:
            response = self._give(found)
        except (VnpuError, OSError) as error:
            self._refuse(found.pod, text, lock, str(error))
            raise AllocateError(str(error)) from error
        if found.last:
            self._release(text, lock, found.pod)
        LOGGER.info("%s, container %s: served with %s", _label(found.pod), found.entry.container, dict(response.env))
        return response

    def _lock(self) -> tuple[str, NodeLock | None]:
        """The lock on the node as it stands there, and what it means; one that cannot be read names nobody."""
        node = self._cluster.get(kube.NODES, self._node)
        text = annotations_of(node).get(names.NODE_LOCK, "")
        try:
            return text, node_lock.decode(text) if text else None
        except AnnotationError as error:
            LOGGER.warning("%s: %s", names.NODE_LOCK, error)
            return text, None

    def _find(self, chip: Chip, count: int, lock: NodeLock | None) -> Found:
        shown = self._shown()
        if lock is not None and lock.pod:
            with suppress(kube.NotFound):
                pod = self._cluster.get(kube.PODS, lock.pod, lock.namespace)
                try:
                    found = lookup.of_owner(pod, self._node, chip, count, self._chips, shown)
                except FieldError as error:
                    raise _OfPodError(pod, error) from error
                if found is not None:
                    return found
        selector = f"spec.nodeName={self._node},status.phase=Pending"
        pods = self._cluster.list(kube.PODS, field_selector=selector).items
        # kubelet never asks again for a pod that was refused, and needs a moment to say that it failed.
        waiting = [pod for pod in pods if mapping_at(pod, "metadata").get("uid") not in self._refused]
        self._refused.intersection_update(mapping_at(pod, "metadata").get("uid", "") for pod in pods)
        return lookup.only(waiting, self._node, chip, count, self._chips, shown)

    def _shown(self) -> frozenset[Shown]:
        try:
            return self._served()
        except KubeletError as error:
            # What was served by this plugin is out of the device text before it is answered.
            LOGGER.warning("kubelet's list of devices is not there, going by annotations alone: %s", error)
            return frozenset()

    def _give(self, found: Found) -> ContainerResponse:
        """Prepare, book, answer: in this order, so that what kubelet was told is never served a second time.

        Raises:
            VnpuError: this node cannot give what was booked, or the API server does not take the book.
            OSError: the host's file system refuses.
        """
        metadata, entry = found.pod["metadata"], found.entry
        host = self._host.paths(metadata["uid"], entry.container)
        response, quota = answer.respond(found.pod, entry.container, entry.cards, entry.chip, self._inventory(), host)
        if quota:
            self._host.prepare(metadata["uid"], entry.container, quota)
        key = names.to_allocate(entry.chip.common_word)
        text = annotations_of(found.pod)[key]
        change = report.served(key, text, entry.slot, metadata["uid"], last=found.last)
        self._cluster.patch(kube.PODS, metadata["name"], change, metadata["namespace"])
        return response

    def _refuse(self, pod: Mapping[str, Any], text: str, lock: NodeLock | None, why: str) -> None:
        metadata = pod["metadata"]
        self._refused.add(metadata["uid"])
        self._say([pod], why)
        self._try(
            "mark it as failed",
            lambda: self._cluster.patch(
                kube.PODS, metadata["name"], report.failed(metadata["uid"]), metadata["namespace"], kind="merge"
            ),
        )
        self._release(text, lock, pod)

    def _release(self, text: str, lock: NodeLock | None, pod: Mapping[str, Any] | None) -> None:
        """Take the lock off the node, if it is this pod's, or nobody's in particular."""
        if lock is None:
            return
        metadata = pod["metadata"] if pod is not None else {}
        if lock.pod and (lock.namespace, lock.pod) != (metadata.get("namespace"), metadata.get("name")):
            return
        self._try(
            "release the node lock",
            lambda: self._cluster.patch(kube.NODES, self._node, report.unlocked(text)),
        )

    def _say(self, pods: Sequence[Mapping[str, Any]], why: str) -> None:
        """An Event on each pod that it concerns, on the node where it is none."""
        LOGGER.error("%s: %s", ", ".join(_label(pod) for pod in pods) or self._node, why)
        about = [(kube.PODS, pod) for pod in pods[:_MOST_EVENTS]] or [(kube.NODES, {"metadata": {"name": self._node}})]
        for resource, obj in about:
            event = partial(self._cluster.event, resource, obj, reason=_REASON, message=why)
            self._try("write an event", partial(event, component=COMPONENT, warning=True))

    def _try(self, what: str, call: Callable[[], Any]) -> None:
        """Do what is right, but must not hide why it had to be done."""
        try:
            call()
        except kube.KubeError as error:
            LOGGER.warning("cannot %s: %s", what, error)


class _OfPodError(VnpuError):
    """The pod is known, and what it gets cannot be told."""

    def __init__(self, pod: Mapping[str, Any], error: FieldError) -> None:
        super().__init__(str(error))
        self.pod = pod


def _label(pod: Mapping[str, Any]) -> str:
    metadata = mapping_at(pod, "metadata")
    return f"pod {metadata.get('namespace')}/{metadata.get('name')}"
