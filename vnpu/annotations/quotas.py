"""The keys of a ResourceQuota that budget NPUs.

Kubernetes itself enforces extended resources under ``requests.`` only; HAMi's webhook reads ``limits.`` only, for
memory and core. A budget that both shall hold stands twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from vnpu import quantity
from vnpu.errors import key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vnpu.chips import Chip, ChipTable, ResourceKind


class Enforcer(StrEnum):
    """Who holds a budget; the value begins its keys."""

    KUBERNETES = "requests"
    HAMI = "limits"


@dataclass(frozen=True, slots=True)
class Budget:
    """One key of ``spec.hard`` that speaks of a chip.

    Attributes:
        chip: the chip.
        kind: cards, memory or core.
        enforcer: who holds it.
        amount: in the unit of the resource: cards, memory units, percent; 0 allows nothing.
    """

    chip: Chip
    kind: ResourceKind
    enforcer: Enforcer
    amount: int


def budget_key(enforcer: Enforcer, resource_name: str) -> str:
    """The key of ``spec.hard`` for a resource, for example ``requests.huawei.com/Ascend910B3-memory``."""
    return f"{enforcer}.{resource_name}"


def budgets(hard: Mapping[str, Any], chips: ChipTable, path: str = "spec.hard") -> Iterator[Budget]:
    """The budgets of the configured chips in a ResourceQuota, in its order; other keys are passed over.

    Args:
        hard: the quota's ``spec.hard``.
        chips: the chip table.
        path: where ``hard`` stands, for the error.

    Raises:
        QuantityError: an amount that is no whole number.
    """
    for name, value in hard.items():
        prefix, _, resource = name.partition(".")
        found = chips.resource(resource)
        if found is not None and prefix in tuple(Enforcer):
            amount = quantity.whole(value, key(path, name), low=0, high=2**63 - 1)
            yield Budget(*found, Enforcer(prefix), amount)
