"""Cards and nodes: what is there, and what is held of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from vnpu.mode import Mode

WHOLE_CORE: Final = 100
"""Percent of a card's compute: the cores of the soft slices of one card never sum above it."""


@dataclass(frozen=True, slots=True)
class Card:
    """One physical NPU, as its node registers it.

    Attributes:
        uuid: the driver's id of the card; unique in the cluster.
        index: position on the node; 910C modules are the pairs ``2n, 2n + 1``.
        chip: the chip's common word, for example ``Ascend910B3``.
        memory_mib: MiB that slices may hold together.
        slots: how many slices the card offers.
        ai_core: AI cores for hard slices.
        ai_cpu: AI CPUs for hard slices, 0 where the chip has none of its own.
        healthy: whether the device plugin calls it healthy.
        network_id: the group of cards with a fast connection, None where the node does not say.
    """

    uuid: str
    index: int
    chip: str
    memory_mib: int
    slots: int
    ai_core: int = 0
    ai_cpu: int = 0
    healthy: bool = True
    network_id: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A node and its cards.

    Attributes:
        name: the node's name.
        cards: every registered card, sorted by index, then uuid.
        soft: whether soft slices may live here (annotation ``hami-vnpu-core``, else the global flag).
        cordoned: UUIDs that take no new slices (annotation ``huawei.com/vnpu-cordon``).
        unsafe: why no new slice may come here, ``""`` where the node is sound. What is unknown counts as occupied.
        hard_because: why no soft slices may live here, for people; it makes no node another one.
        closed_to: pods that must not come here for other reasons than cards, by :attr:`PodRequest.terms`, with these
            reasons. A scheduler's extender leaves it empty: kube-scheduler has asked already.
    """

    name: str
    cards: tuple[Card, ...]
    soft: bool = False
    cordoned: frozenset[str] = frozenset()
    unsafe: str = ""
    hard_because: str = field(default="", compare=False)
    closed_to: Mapping[Hashable, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Use:
    """What slices hold of one card together.

    Attributes:
        slots: slices.
        memory_mib: MiB.
        core_percent: percent of the card's compute, soft slices only.
        ai_core: AI cores of the templates, hard slices only.
        ai_cpu: AI CPUs of the templates, hard slices only.
        mode: what kind of slices the card carries, None while it is empty.
    """

    slots: int = 0
    memory_mib: int = 0
    core_percent: int = 0
    ai_core: int = 0
    ai_cpu: int = 0
    mode: Mode | None = None

    def plus(self, other: Self) -> Self:
        """Both together. The mode is that of the first that has one: callers keep one mode per card."""
        return type(self)(
            self.slots + other.slots,
            self.memory_mib + other.memory_mib,
            self.core_percent + other.core_percent,
            self.ai_core + other.ai_core,
            self.ai_cpu + other.ai_cpu,
            self.mode or other.mode,
        )

    def highest(self, other: Self) -> Self:
        """The larger of both, amount by amount."""
        return type(self)(
            max(self.slots, other.slots),
            max(self.memory_mib, other.memory_mib),
            max(self.core_percent, other.core_percent),
            max(self.ai_core, other.ai_core),
            max(self.ai_cpu, other.ai_cpu),
            self.mode or other.mode,
        )

    def minus(self, other: Self) -> Self:
        """What is left when ``other`` goes; an empty card has no mode."""
        left = replace(
            self,
            slots=self.slots - other.slots,
            memory_mib=self.memory_mib - other.memory_mib,
            core_percent=self.core_percent - other.core_percent,
            ai_core=self.ai_core - other.ai_core,
            ai_cpu=self.ai_cpu - other.ai_cpu,
        )
        return left if left.slots else replace(left, mode=None)


NO_USE: Final = Use()
