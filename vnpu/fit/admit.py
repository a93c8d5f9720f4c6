"""Pods at the door: judged by admission as the webhook would judge them, and made ready to be placed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from vnpu.admission.rules import mutate_pod
from vnpu.errors import path_of
from vnpu.fit.answers import Reason, Unplaced
from vnpu.fit.plan import Workload
from vnpu.fit.terms import read_terms
from vnpu.mode import Mode
from vnpu.objects import mapping_at
from vnpu.request import PodRequest, pod_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vnpu.admission.settings import Settings
    from vnpu.chips import ChipTable

DEFAULT_NAMESPACE: Final = "default"

_NOT_LOOKED_AT: Final = (("affinity", "podAffinity"), ("affinity", "podAntiAffinity"), ("topologySpreadConstraints",))
"""What may keep a pod from a node because of other pods."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Pods that belong together.

    Attributes:
        pods: in order; those that admission refuses have their answer already.
        min_available: pods of a gang that must be placed together, 0 where each stands for itself.
        warnings: sentences that begin with the place of the field.
        owner: the name of the object that makes the pods, ``""`` for bare pods.
    """

    pods: tuple[PodRequest | Unplaced, ...]
    min_available: int = 0
    warnings: tuple[str, ...] = ()
    owner: str = ""

    @property
    def requests(self) -> tuple[PodRequest, ...]:
        """The pods that admission lets through."""
        return tuple(pod for pod in self.pods if isinstance(pod, PodRequest))

    @property
    def workloads(self) -> list[Workload]:
        """What is left to place: the gang, or each pod for itself."""
        pods = self.requests
        return [Workload(pods, self.min_available)] if self.min_available else [Workload((pod,)) for pod in pods]


def full_name(pod: PodRequest) -> str:
    """``namespace/name``."""
    return f"{pod.namespace or DEFAULT_NAMESPACE}/{pod.name}"


def admit(pod: Mapping[str, Any], names: Sequence[str], settings: Settings, chips: ChipTable) -> Batch:
    """Equal pods under several names, judged once.

    Args:
        pod: the pod as JSON, with its namespace.
        names: what the pods are called.
        settings: what admission judges by.
        chips: the chip table.

    Raises:
        FieldError: the pod asks for no NPU, so that admission lets it through, and has not the shape of a pod.
    """
    outcome = mutate_pod(pod, settings, chips)
    if not outcome.allowed:
        return Batch(refused(pod["metadata"].get("namespace"), names, outcome.message), warnings=outcome.warnings)
    request = pod_request(
        pod, chips, default_mode=settings.default_mode, default_core_percent=settings.default_core_percent
    )
    warnings = outcome.warnings
    if request.asks:
        request = replace(request, terms=read_terms(pod["spec"]))
        warnings += tuple(
            f"spec.{path_of(field)}: not looked at, as the plan goes by nodes and cards, not by the pods on them"
            for field in _NOT_LOOKED_AT
            if mapping_at(pod["spec"], *field[:-1]).get(field[-1])
        )
    return Batch(tuple(replace(request, name=name) for name in names), warnings=warnings)


def refused(namespace: str | None, names: Sequence[str], message: str) -> tuple[Unplaced, ...]:
    """Pods that are not even tried."""
    return tuple(
        Unplaced(PodRequest(namespace or "", name, Mode.HARD, (), {}), message, {Reason.REFUSED: 1}, {})
        for name in names
    )
