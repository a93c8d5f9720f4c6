"""Chips of the default table, and their entries in a device config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vnpu.chips import DEFAULT_CHIPS

if TYPE_CHECKING:
    from vnpu.chips import Chip


def chip_named(common_word: str) -> Chip:
    """The chip of the default table."""
    chip = DEFAULT_CHIPS.get(common_word)
    assert chip is not None
    return chip


def config_entry(chip: Chip, **fields: Any) -> dict[str, Any]:
    """What a device config says of the chip, the largest template first; further fields as they are."""
    entry = {
        "commonWord": chip.common_word,
        "chipName": chip.chip_name,
        "resourceName": chip.resource_name,
        "resourceMemoryName": chip.memory_name,
        "resourceCoreName": chip.core_name,
        "memoryAllocatable": chip.memory_allocatable_mib,
        "memoryCapacity": chip.memory_capacity_mib,
        "memoryFactor": chip.memory_factor,
        "aiCore": chip.ai_core,
        "aiCPU": chip.ai_cpu,
        "superPod": chip.super_pod,
        "templates": [
            {"name": template.name, "memory": template.memory_mib, "aiCore": template.ai_core, "aiCPU": template.ai_cpu}
            for template in reversed(chip.templates)
        ],
    }
    return entry | fields


def device_config_of(*entries: dict[str, Any]) -> dict[str, Any]:
    """A device config of these entries."""
    return {"vnpus": {"configs": list(entries)}}
