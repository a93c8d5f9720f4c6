"""What to refuse in a pod, and what to warn of, beyond the numbers that cannot be completed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.admission.pod import named
from vnpu.admission.settings import DevicePlugin, UnknownChips
from vnpu.annotations import policies
from vnpu.chips import ResourceKind
from vnpu.containers import ContainerKind
from vnpu.errors import ABSENT, FieldError, RequestError, did_you_mean, key, shown
from vnpu.mode import Mode
from vnpu.objects import annotation_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vnpu.admission.complete import Completion
    from vnpu.admission.pod import Pod, Resource
    from vnpu.admission.settings import Settings
    from vnpu.chips import ChipTable

_MOST_UNKNOWN: Final = 20
"""Unknown resources of a pod that are told."""

_MOST_ANNOTATIONS: Final = 20
"""The same for annotations."""
_WRITTEN: Final = (names.MODE, names.SHARE)
_READ: Final = frozenset({*_WRITTEN, names.BIND_TICKET, names.BIND_FENCE})

_PARTS: Final = (names.MEMORY_SUFFIX, names.CORE_SUFFIX)
_SURPRISES: Final = (
    ("hostIPC", "the containers of the node's pods see each other's shared memory; each still keeps its own quota"),
    ("hostPID", "processes of other pods appear in the container's process list; quotas stay apart"),
    ("shareProcessNamespace", "the containers of the pod see each other's processes; quotas stay per container"),
)

_HARD_ENV_FROM: Final = (
    f"a variable in it named {names.ENV_VISIBLE_DEVICES} or {names.ENV_VNPU_SPECS} beats what the device plugin sets, "
    "and brings in another card or template"
)
_SOFT_ENV_FROM: Final = (
    "what admission writes beats it, but a variable in it named ASCEND_..., NPU_... or VNPU_... beats what the device "
    "plugin sets, and may bring in another card or mislead the limiter"
)


def _is_ours(pod: Pod) -> bool:
    """Whether the pod asks for a configured chip, or carries an annotation that says so."""
    return pod.is_npu or names.MODE in pod.annotations or names.SHARE in pod.annotations


def foreign_resources(pod: Pod, settings: Settings, chips: ChipTable) -> tuple[list[FieldError], list[str]]:
    """Refusals and warnings for NPUs that are not configured chips, and for MindCluster's own.

    Both kinds alone are not our business: Huawei's device plugin serves them. Mixed with ours they would never start.
    """
    faults: list[FieldError] = []
    warnings: list[str] = []
    ours = _is_ours(pod)
    if ours:
        faults += _mindcluster(pod)
    ours = ours or any(resource.name.endswith(_PARTS) for resource in pod.unknown)
    deny = ours or settings.unknown_chips is UnknownChips.DENY
    if deny or settings.unknown_chips is UnknownChips.WARN:
        # To look for the nearest name takes time, and nobody reads a thousand of them.
        left = "" if deny else ", and leaves it to another device plugin"
        told = [_unknown(resource, chips, left) for resource in islice(_once(pod.unknown), _MOST_UNKNOWN)]
        if deny:
            faults += told
        else:
            warnings += map(str, told)
    return faults, warnings


def _once(resources: Iterable[Resource]) -> Iterable[Resource]:
    """Each resource of each container once, though limits and requests both name it."""
    first: dict[tuple[str, str], Resource] = {}
    for resource in resources:
        first.setdefault((resource.container.path, resource.name), resource)
    return first.values()


def _unknown(resource: Resource, chips: ChipTable, left: str) -> FieldError:
    hint = did_you_mean(resource.name, chips.resource_names)
    if not hint:
        hint = f"; known are {', '.join(chip.resource_name for chip in chips)}"
    allowed = f"the device config knows no such resource{left}{hint}"
    return named(RequestError(resource.path, resource.value, allowed), resource.container)


def _mindcluster(pod: Pod) -> Iterator[FieldError]:
    remedy = "a pod is served either by MindCluster or by vNPU, whose device plugins cannot share it: use one of them"
    for resource in _once(pod.mindcluster):
        yield named(
            RequestError(resource.path, resource.value, f"this resource is MindCluster's; {remedy}"), resource.container
        )
    for label in names.MINDCLUSTER_LABELS:
        if label in pod.labels:
            yield RequestError(
                key("metadata.labels", label), pod.labels[label], f"this label is MindCluster's; {remedy}"
            )


def npu_pod(pod: Pod, completion: Completion, settings: Settings) -> Iterator[FieldError]:
    """What an NPU pod must not be, beyond its numbers."""
    words = dict.fromkeys(completed.slice.chip.common_word for completed in completion.slices)
    yield from policies.faults(pod.annotations, words)
    node = pod.spec.get("nodeName")
    if node and not settings.allow_node_name:
        yield RequestError(
            "spec.nodeName",
            node,
            "a pod that names its node passes no scheduler, so no card is booked for it; use a nodeSelector "
            "(kubernetes.io/hostname) or node affinity",
        )
    if not settings.allow_privileged:
        yield from _privileged(pod)
    if settings.soft_card_limit is not None and pod.mode is Mode.SOFT:
        yield from _soft_cards(completion, settings, settings.soft_card_limit)


def _privileged(pod: Pod) -> Iterator[FieldError]:
    for member in pod.members:
        security = member.container.raw.get("securityContext")
        if isinstance(security, dict) and security.get("privileged") is True:
            fault = RequestError(
                f"{member.container.path}.securityContext.privileged",
                security["privileged"],
                "a privileged container reaches every card of its node past any slice; drop privileged, or move the "
                "container into a pod without an NPU",
            )
            yield named(fault, member.container)


def _soft_cards(completion: Completion, settings: Settings, limit: int) -> Iterator[FieldError]:
    why = ""
    if settings.device_plugin is DevicePlugin.HAMI:
        why = ": HAMi's device plugin limits the first card only"
    for completed in completion.slices:
        wanted = completed.slice
        if wanted.count > limit:
            word = wanted.chip.common_word
            module = f"; {word} goes in modules of two cards (1 becomes 2)" if wanted.chip.super_pod else ""
            written = completed.asked.count
            fault = RequestError(
                completed.asked.path(ResourceKind.COUNT),
                ABSENT if written is None else written,
                f"a soft container may ask for at most {limit} card(s) (setting maxSoftCards{why}){module}; for whole "
                f"cards set the annotation {names.MODE}: {Mode.HARD.value} and leave memory and core out",
            )
            yield named(fault, completed.asked.container)


def surprises(pod: Pod, completion: Completion, settings: Settings) -> Iterator[str]:
    """What works in an NPU pod, but not as one might think."""
    yield from _unread(pod.annotations)
    for field, text in _SURPRISES:
        if pod.spec.get(field) is True:
            yield f"spec.{field}: {text}"
    for member in pod.members:
        if member.asks and member.container.raw.get("envFrom"):
            yield f"{member.container.path}.envFrom: {_HARD_ENV_FROM if pod.mode is Mode.HARD else _SOFT_ENV_FROM}"
    if completion.scheduler in settings.volcano_schedulers:
        yield from _volcano(pod, f"spec.schedulerName: {shown(completion.scheduler)}")


def _unread(annotations: Mapping[str, Any]) -> Iterator[str]:
    slips = (name for name in annotations if name.startswith(names.OUR_ANNOTATIONS) and name not in _READ)
    for name in islice(slips, _MOST_ANNOTATIONS):
        yield f"{annotation_path(name)}: nobody reads it{did_you_mean(name, _WRITTEN)}"


def _volcano(pod: Pod, where: str) -> Iterator[str]:
    if pod.mode is Mode.SOFT:
        yield f"{where}: soft slices need Volcano {names.VOLCANO_SOFT_SINCE}; older ones make a template of them"
    asking = [member.container for member in pod.members if member.asks]
    apps = sum(container.kind is ContainerKind.APP for container in asking)
    if apps > 1:
        yield f"{where}: Volcano books only the first of the pod's {apps} NPU containers"
    for container in asking:
        if container.kind is not ContainerKind.APP:
            yield f"{container.path}: Volcano looks at spec.containers alone, and books no card for this container"
