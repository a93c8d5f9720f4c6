"""Where a pod goes: what fit decides, and what is then written into annotations and containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vnpu.cards import Card
    from vnpu.request import PodRequest


@dataclass(frozen=True, slots=True)
class CardShare:
    """What one container gets of one card: MiB, percent (0 in hard mode) and the template, None unless one."""

    card: Card
    memory_mib: int
    core_percent: int
    template: str | None


@dataclass(frozen=True, slots=True)
class ContainerPlacement:
    """A container and its cards, ``()`` where it asks for no NPU; as many distinct cards as it asked for otherwise."""

    name: str
    cards: tuple[CardShare, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod on a node: every container of the pod, in the order of :attr:`vnpu.request.PodRequest.containers`."""

    pod: PodRequest
    node: str
    containers: tuple[ContainerPlacement, ...]
