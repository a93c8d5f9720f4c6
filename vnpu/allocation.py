"""What follows from a placement: the annotations that bind a pod to its cards, and what its containers get on the node.

A scheduler writes :func:`binding_annotations` together with the binding; the device plugin answers kubelet's Allocate
with :func:`container_response`. Both are drop-in for HAMi's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vnpu import names
from vnpu.annotations import devices, runtime_info
from vnpu.annotations.devices import DeviceEntry
from vnpu.annotations.runtime_info import RuntimeInfo
from vnpu.cards import WHOLE_CORE
from vnpu.errors import InputError, RequestError
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vnpu.annotations.allocated import AllocatedCard
    from vnpu.placement import Placement

_PATH_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


def binding_annotations(placement: Placement, time_s: int | None = None) -> dict[str, str]:
    """The annotations that a scheduler writes with the binding, in HAMi's form: a slot for each container of the pod.

    Only the chips that the pod holds are written; a pod without an NPU gets nothing.

    Args:
        placement: where the pod goes.
        time_s: now, in unix seconds; None for a plan, which binds nothing yet, so that it has no times and no phase.

    Raises:
        AnnotationError: a card whose UUID device text cannot carry.
    """
    shares = [container.cards for container in placement.containers]
    words = dict.fromkeys(share.card.chip for cards in shares for share in cards)
    if not words:
        return {}
    annotations = {names.ASSIGNED_NODE: placement.node}
    if time_s is not None:
        annotations |= dict.fromkeys((names.ASSIGNED_TIME, names.PREDICATE_TIME, names.BIND_TIME), str(time_s))
        annotations[names.BIND_PHASE] = names.BIND_PHASE_ALLOCATING
    for word in words:
        slots = [[share for share in cards if share.card.chip == word] for cards in shares]
        text = devices.encode(
            [DeviceEntry(share.card.uuid, word, share.memory_mib, share.core_percent) for share in slot]
            for slot in slots
        )
        annotations[names.to_allocate(word)] = annotations[names.allocated(word)] = text
        annotations[names.runtime_info(word)] = runtime_info.encode(
            RuntimeInfo(share.card.uuid, share.template, share.memory_mib, share.core_percent)
            for slot in slots
            for share in slot
        )
    return annotations


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the host in a container.

    Attributes:
        host_path: absolute.
        container_path: absolute.
        read_only: whether the container may only read it.
    """

    host_path: str
    container_path: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class ContainerResponse:
    """What kubelet adds to a container: environment and mounts."""

    env: Mapping[str, str]
    mounts: tuple[Mount, ...]


@dataclass(frozen=True, slots=True)
class HostPaths:
    """What a soft container gets of its host, as the caller found it there.

    Attributes:
        driver: files and directories of the driver, npu-smi among them, each mounted where it is.
        core_dir: the directory of one version of libvnpu.so, limiter and ld.so.preload. A container keeps the version
            that it started with.
        quota_file: this container's quota file, ``""`` for none.
    """

    driver: tuple[str, ...]
    core_dir: str
    quota_file: str = ""


def container_response(
    cards: Sequence[AllocatedCard],
    physical_ids: Mapping[str, int],
    mode: Mode,
    *,
    pod_uid: str,
    container: str,
    host: HostPaths,
) -> ContainerResponse:
    """Environment and mounts of one container.

    The cards are the container's own (:func:`vnpu.holdings.cards_of`), so that two containers on one card keep their
    own quotas. A soft container is never answered without its quota.

    Args:
        cards: the container's cards, in the order in which it sees them.
        physical_ids: the driver's ids of the cards of this node, by UUID.
        mode: the pod's mode.
        pod_uid: the pod's UID.
        container: the container's name.
        host: what there is on the host; only soft containers need it.

    Raises:
        RequestError: no card, a card that stands twice or that this node does not have, or amounts that a container of
            this mode cannot have.
        InputError: a UID or name that cannot be part of a path.
    """
    path = f"container {container}"
    if not cards:
        raise RequestError(path, 0, "at least one card is expected")
    for card in cards:
        if card.uuid not in physical_ids:
            raise RequestError(path, card.uuid, "a card of this node is expected")
    if twice := next((card.uuid for card in cards if sum(one.uuid == card.uuid for one in cards) > 1), None):
        raise RequestError(path, twice, "a container holds a card once")
    ids = [physical_ids[card.uuid] for card in cards]
    env = {names.ENV_VISIBLE_DEVICES: ",".join(map(str, ids))}
    if mode is Mode.HARD:
        return ContainerResponse(env | _template_env(cards, path), ())
    env |= _quota_env(cards, path)
    env[names.ENV_GLOBAL_SHM] = names.global_registry(ids[0])
    env[names.ENV_LOCAL_SHM] = names.LOCAL_SHM
    return ContainerResponse(env, _soft_mounts(host, _local_shm_host(pod_uid, container)))


def _template_env(cards: Sequence[AllocatedCard], path: str) -> dict[str, str]:
    templates = [card.template.name for card in cards if card.template is not None]
    if not templates:
        return {}
    if len(cards) > 1:
        raise RequestError(path, templates, "a template is a part of one card; several cards come as whole ones")
    return {names.ENV_VNPU_SPECS: templates[0]}


def _quota_env(cards: Sequence[AllocatedCard], path: str) -> dict[str, str]:
    first = cards[0]
    for card in cards:
        if not card.memory_mib:
            raise RequestError(path, card.memory_mib, f"a soft slice needs its MiB of card {card.uuid}: 0 is no limit")
        if (card.memory_mib, card.core) != (first.memory_mib, first.core):
            raise RequestError(path, card.uuid, "a soft container holds the same memory and core of each of its cards")
    if first.core > WHOLE_CORE:
        raise RequestError(path, first.core, f"a core of at most {WHOLE_CORE} percent is allowed")
    env = {names.ENV_MEMORY: str(first.memory_mib)}
    if first.core:
        env[names.ENV_PRIORITY] = str(first.core)
    return env


def _local_shm_host(pod_uid: str, container: str) -> str:
    for name, part in (("pod UID", pod_uid), ("container name", container)):
        if not _PATH_PART.fullmatch(part):
            raise InputError(name, part, "letters, digits, dash, dot and underscore are expected")
    return names.local_shm_host(pod_uid, container)


def _soft_mounts(host: HostPaths, local_shm: str) -> tuple[Mount, ...]:
    mounts = [
        *(Mount(path, path) for path in host.driver),
        Mount(host.core_dir, names.CORE_DIR),
        Mount(f"{host.core_dir}/{names.PRELOAD_FILE_NAME}", names.PRELOAD_FILE),
        Mount(names.SHARED_REGION_HOST, names.SHARED_REGION, read_only=False),
        Mount(local_shm, names.LOCAL_SHM_DIR, read_only=False),
    ]
    if host.quota_file:
        mounts.append(Mount(host.quota_file, names.QUOTA_FILE))
    return tuple(mounts)
