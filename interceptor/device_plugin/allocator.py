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
from vnpu.errors import AnnotationError, VnpuError
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

    def settle(self, node: Mapping[str, Any]) -> None:
        """Take the lock off the node whose pod needs it no more: an end in the middle of a call leaves one behind.

        Args:
            node: the node, as it was read just now.

        Raises:
            KubeError: the API server does not tell.
        """
        text = annotations_of(node).get(names.NODE_LOCK, "")
        lock = _owner(text)
        if lock is None or not lock.pod or not self._turn.acquire(blocking=False):
            return
        try:
            pod = self._of_lock(lock)
            if pod is None:
                pod = {"metadata": {"namespace": lock.namespace, "name": lock.pod}}
            elif not lookup.is_settled(pod, self._node):
                return
            if lookup.is_given_up(pod, self._node):
                self._mark(pod)
            LOGGER.warning("%s needs the node lock no more", _label(pod))
            self._release(text, lock, pod)
        finally:
            self._turn.release()

    def _serve(self, chip: Chip, count: int) -> ContainerResponse:
        try:
            text, lock = self._lock()
        except Exception as error:
            raise AllocateError(f"the node object cannot be read: {_reason(error)}") from error
        try:
            found = self._find(chip, count, lock)
        except _OfPodError as error:
            self._refuse(error.pod, text, lock, str(error))
            raise AllocateError(str(error)) from error
        except lookup.NotFoundError as error:
            self._say(error.pods, str(error))
            self._release(text, lock, None)
            raise AllocateError(str(error)) from error
        except Exception as error:
            why = f"the pods of this node cannot be read: {_reason(error)}"
            self._say([], why)
            self._release(text, lock, None)
            raise AllocateError(why) from error
        try:
            response = self._give(found)
        except Exception as error:
            why = _reason(error)
            self._refuse(found.pod, text, lock, why)
            raise AllocateError(why) from error
        if found.last:
            self._release(text, lock, found.pod)
        LOGGER.info(
            "%s, container %s: served with %s", _label(found.pod), found.entry.container.name, dict(response.env)
        )
        return response

    def _lock(self) -> tuple[str, NodeLock | None]:
        """The lock on the node as it stands there, and what it means; one that cannot be read names nobody."""
        node = self._cluster.get(kube.NODES, self._node)
        text = annotations_of(node).get(names.NODE_LOCK, "")
        return text, _owner(text)

    def _of_lock(self, lock: NodeLock) -> Mapping[str, Any] | None:
        """The pod that a lock names, None where there is none."""
        with suppress(kube.NotFound):
            return self._cluster.get(kube.PODS, lock.pod, lock.namespace)
        return None

    def _find(self, chip: Chip, count: int, lock: NodeLock | None) -> Found:
        shown = self._shown()
        pod = self._of_lock(lock) if lock is not None and lock.pod else None
        if pod is not None:
            try:
                found = lookup.of_owner(pod, self._node, chip, count, self._chips, shown)
            except Exception as error:
                raise _OfPodError(pod, _reason(error)) from error
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
        host = self._host.paths(metadata["uid"], entry.container.name)
        response, quota = answer.respond(found.pod, entry.container, entry.cards, entry.chip, self._inventory(), host)
        if quota:
            self._host.prepare(metadata["uid"], entry.container.name, quota)
        key = names.to_allocate(entry.chip.common_word)
        text = annotations_of(found.pod)[key]
        change = report.served(key, text, entry.slot, metadata["uid"], last=found.last)
        self._cluster.patch(kube.PODS, metadata["name"], change, metadata["namespace"])
        return response

    def _refuse(self, pod: Mapping[str, Any], text: str, lock: NodeLock | None, why: str) -> None:
        self._refused.add(pod["metadata"]["uid"])
        self._say([pod], why)
        self._mark(pod)
        self._release(text, lock, pod)

    def _mark(self, pod: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        change = report.failed(metadata["uid"])
        patch = partial(self._cluster.patch, kube.PODS, metadata["name"], change, metadata["namespace"], kind="merge")
        self._try("mark it as failed", patch)

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
        except Exception as error:  # noqa: BLE001 - the next step of a refusal must still be done
            LOGGER.warning("cannot %s: %s", what, _reason(error))


class _OfPodError(VnpuError):
    """The pod is known, and what it gets cannot be told."""

    def __init__(self, pod: Mapping[str, Any], why: str) -> None:
        super().__init__(why)
        self.pod = pod


def _reason(error: Exception) -> str:
    """What kubelet and the pod hear; of what nobody foresaw, the log has the traceback."""
    if isinstance(error, (VnpuError, OSError)):
        return str(error)
    LOGGER.error("a fault of this program", exc_info=error)
    return f"a fault of the device plugin, told in its log: {type(error).__name__}: {error}"


def _owner(text: str) -> NodeLock | None:
    try:
        return node_lock.decode(text) if text else None
    except AnnotationError as error:
        LOGGER.warning("%s: %s", names.NODE_LOCK, error)
        return None


def _label(pod: Mapping[str, Any]) -> str:
    metadata = mapping_at(pod, "metadata")
    return f"pod {metadata.get('namespace')}/{metadata.get('name')}"
