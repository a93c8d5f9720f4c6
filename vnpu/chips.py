"""Chips and templates: what a model of NPU has, and the fixed hard slices it can be cut into.

The default table is that of HAMi's chart (v2.10). A cluster's own table comes from its device config
(:mod:`vnpu.device_config`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from vnpu import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ResourceKind(StrEnum):
    """What an extended resource of a chip counts."""

    COUNT = "count"
    MEMORY = "memory"
    CORE = "core"


@dataclass(frozen=True, slots=True)
class Template:
    """A fixed hard slice of a card.

    Attributes:
        name: the driver's name, for example ``vir05_1c_16g``.
        memory_mib: MiB of the card's memory.
        ai_core: AI cores of the card.
        ai_cpu: AI CPUs of the card, 0 where the chip has none of its own.
    """

    name: str
    memory_mib: int
    ai_core: int
    ai_cpu: int = 0


@dataclass(frozen=True, slots=True)
class Chip:
    """A model of NPU, as the device config describes it.

    Attributes:
        common_word: the name in annotation keys, for example ``Ascend910B3``.
        chip_name: the driver's name, for example ``910B3``.
        resource_name: the extended resource that counts cards.
        memory_name: the extended resource of memory per card; its unit is MiB (times ``memory_factor``).
        core_name: the extended resource of compute per card, in percent.
        memory_allocatable_mib: what slices of a card may hold together.
        memory_capacity_mib: what the card is sold as; requests up to it get the whole card in hard mode.
        ai_core: AI cores of a card.
        ai_cpu: AI CPUs of a card, 0 where the chip has none of its own.
        memory_factor: MiB per unit of ``memory_name``; 1 nearly everywhere.
        runtime_class_name: the RuntimeClass that pods with this chip get, ``""`` for none.
        super_pod: whether cards go in modules of two (910C).
        templates: the hard slices, smallest memory first.
    """

    common_word: str
    chip_name: str
    resource_name: str
    memory_name: str
    core_name: str
    memory_allocatable_mib: int
    memory_capacity_mib: int
    ai_core: int
    ai_cpu: int = 0
    memory_factor: int = 1
    runtime_class_name: str = ""
    super_pod: bool = False
    templates: tuple[Template, ...] = ()

    def resource(self, kind: ResourceKind) -> str:
        """The extended resource that counts this of the chip."""
        match kind:
            case ResourceKind.COUNT:
                return self.resource_name
            case ResourceKind.MEMORY:
                return self.memory_name
            case ResourceKind.CORE:
                return self.core_name

    def template_for(self, memory_mib: int) -> Template | None:
        """The smallest template that holds ``memory_mib``, or None where only the whole card does."""
        return next((template for template in self.templates if template.memory_mib >= memory_mib), None)

    def template_named(self, name: str) -> Template | None:
        """The template called ``name``, or None."""
        return next((template for template in self.templates if template.name == name), None)

    @property
    def hard_slots(self) -> int:
        """Shares of one card by template arithmetic: as many of the smallest template as fit, 1 without templates."""
        return self.memory_allocatable_mib // self.templates[0].memory_mib if self.templates else 1


@dataclass(frozen=True)
class ChipTable:
    """The chips that a cluster knows.

    Attributes:
        chips: in the order of the config; ``common_word`` and resource names are unique.
        soft_nodes_by_default: the global ``hamiVnpuCore``: whether a node without the annotation ``hami-vnpu-core``
            is soft.
    """

    chips: tuple[Chip, ...]
    soft_nodes_by_default: bool = False
    _by_word: dict[str, Chip] = field(init=False, repr=False, compare=False)
    _by_resource: dict[str, tuple[Chip, ResourceKind]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_word", {chip.common_word: chip for chip in self.chips})
        resources = {chip.resource(kind): (chip, kind) for chip in self.chips for kind in ResourceKind}
        object.__setattr__(self, "_by_resource", resources)

    def __iter__(self) -> Iterator[Chip]:
        return iter(self.chips)

    def __len__(self) -> int:
        return len(self.chips)

    def get(self, common_word: str) -> Chip | None:
        """The chip of that common word; equality, never a substring (910B4 is not 910B4-1)."""
        return self._by_word.get(common_word)

    @property
    def resource_names(self) -> Iterable[str]:
        """Every extended resource of every chip."""
        return self._by_resource.keys()

    def resource(self, name: str) -> tuple[Chip, ResourceKind] | None:
        """Which chip an extended resource belongs to, and what it counts; None for other resources."""
        return self._by_resource.get(name)


def standard_names(common_word: str) -> tuple[str, str, str]:
    """The names of the count, memory and core resource that every shipped config uses for a chip."""
    resource = f"huawei.com/{common_word}"
    return resource, resource + names.MEMORY_SUFFIX, resource + names.CORE_SUFFIX


def _chip(
    chip_name: str,
    common_word: str,
    allocatable_mib: int,
    capacity_mib: int,
    ai_core: int,
    ai_cpu: int,
    *templates: tuple[str, int, int, int],
    super_pod: bool = False,
) -> Chip:
    return Chip(
        common_word,
        chip_name,
        *standard_names(common_word),
        memory_allocatable_mib=allocatable_mib,
        memory_capacity_mib=capacity_mib,
        ai_core=ai_core,
        ai_cpu=ai_cpu,
        super_pod=super_pod,
        templates=tuple(Template(*template) for template in templates),
    )


_HALVES: Final = (("vir05_1c_16g", 16384, 5, 1), ("vir10_3c_32g", 32768, 10, 3))

DEFAULT_CHIPS: Final = ChipTable(
    (
        _chip(
            *("910A", "Ascend910A", 32768, 32768, 30, 0),
            *(("vir02", 2184, 2, 0), ("vir04", 4369, 4, 0), ("vir08", 8738, 8, 0), ("vir16", 17476, 16, 0)),
        ),
        _chip(
            *("910B2", "Ascend910B2", 65536, 65536, 24, 6),
            *(("vir03_1c_8g", 8192, 3, 1), ("vir06_1c_16g", 16384, 6, 1), ("vir12_3c_32g", 32768, 12, 3)),
        ),
        _chip("910B3", "Ascend910B3", 65536, 65536, 20, 7, *_HALVES),
        _chip("910B4-1", "Ascend910B4-1", 65536, 65536, 20, 7, *_HALVES),
        _chip(
            *("910B4", "Ascend910B4", 32768, 32768, 20, 7),
            *(("vir05_1c_8g", 8192, 5, 1), ("vir10_3c_16g", 16384, 10, 3)),
        ),
        _chip(
            *("310P3", "Ascend310P", 21527, 24576, 8, 7),
            *(("vir01", 3072, 1, 1), ("vir02", 6144, 2, 2), ("vir04", 12288, 4, 4)),
        ),
        _chip("Ascend910", "Ascend910C", 65536, 65536, 20, 7, *_HALVES, super_pod=True),
    )
)
"""The seven chips of HAMi's chart."""
