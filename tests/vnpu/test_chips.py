"""The default chip table: the figures of the shipped configs, and look-ups by equality."""

from __future__ import annotations

import pytest

from vnpu.chips import DEFAULT_CHIPS, Chip, ResourceKind

ROWS = {
    # common word: (driver name, allocatable, capacity, AI cores, AI CPUs, module pairs, slots of a hard card)
    "Ascend910A": ("910A", 32768, 32768, 30, 0, False, 15),
    "Ascend910B2": ("910B2", 65536, 65536, 24, 6, False, 8),
    "Ascend910B3": ("910B3", 65536, 65536, 20, 7, False, 4),
    "Ascend910B4-1": ("910B4-1", 65536, 65536, 20, 7, False, 4),
    "Ascend910B4": ("910B4", 32768, 32768, 20, 7, False, 4),
    "Ascend310P": ("310P3", 21527, 24576, 8, 7, False, 7),
    "Ascend910C": ("Ascend910", 65536, 65536, 20, 7, True, 4),
}


def test_the_table_is_that_of_the_chart() -> None:
    assert {
        chip.common_word: (
            chip.chip_name,
            chip.memory_allocatable_mib,
            chip.memory_capacity_mib,
            chip.ai_core,
            chip.ai_cpu,
            chip.super_pod,
            chip.hard_slots,
        )
        for chip in DEFAULT_CHIPS
    } == ROWS


@pytest.mark.parametrize("chip", DEFAULT_CHIPS.chips, ids=lambda chip: chip.common_word)
def test_templates_go_up_and_fit_on_the_card(chip: Chip) -> None:
    memories = [template.memory_mib for template in chip.templates]
    assert memories == sorted(memories)
    assert chip.template_for(1) is chip.templates[0]
    assert chip.template_for(memories[-1]) is chip.templates[-1]
    assert chip.template_for(memories[-1] + 1) is None
    for template in chip.templates:
        assert template.ai_core <= chip.ai_core
        assert template.ai_cpu <= chip.ai_cpu
        assert chip.template_named(template.name) is template


def test_a_dash_belongs_to_the_name_of_the_chip() -> None:
    chip, kind = DEFAULT_CHIPS.resource("huawei.com/Ascend910B4-1") or pytest.fail("not found")
    assert (chip.common_word, kind) == ("Ascend910B4-1", ResourceKind.COUNT)
    chip, kind = DEFAULT_CHIPS.resource("huawei.com/Ascend910B4-1-memory") or pytest.fail("not found")
    assert (chip.common_word, kind) == ("Ascend910B4-1", ResourceKind.MEMORY)
    chip, kind = DEFAULT_CHIPS.resource("huawei.com/Ascend910B4-core") or pytest.fail("not found")
    assert (chip.common_word, kind) == ("Ascend910B4", ResourceKind.CORE)


@pytest.mark.parametrize("name", ["huawei.com/Ascend910", "huawei.com/Ascend910B", "nvidia.com/gpu", "Ascend910B3", ""])
def test_near_names_are_no_chips(name: str) -> None:
    assert DEFAULT_CHIPS.resource(name) is None
    assert DEFAULT_CHIPS.get(name.removeprefix("huawei.com/")) is (
        DEFAULT_CHIPS.get("Ascend910B3") if name == "Ascend910B3" else None
    )
