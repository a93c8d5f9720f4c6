"""The device config: both layouts, and every fault loud."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu import device_config
from vnpu.chips import DEFAULT_CHIPS, Chip
from vnpu.errors import ConfigError


def entry_of(chip: Chip) -> dict[str, Any]:
    return {
        "commonWord": chip.common_word,
        "chipName": chip.chip_name,
        "resourceName": chip.resource_name,
        "resourceMemoryName": chip.memory_name,
        "resourceCoreName": chip.core_name,
        "memoryAllocatable": chip.memory_allocatable_mib,
        "memoryCapacity": chip.memory_capacity_mib,
        "memoryFactor": 1,
        "aiCore": chip.ai_core,
        "aiCPU": chip.ai_cpu,
        "superPod": chip.super_pod,
        "templates": [
            {"name": template.name, "memory": template.memory_mib, "aiCore": template.ai_core, "aiCPU": template.ai_cpu}
            for template in reversed(chip.templates)
        ],
    }


CONFIGS = [entry_of(chip) for chip in DEFAULT_CHIPS]


def test_both_layouts_give_the_same_chips() -> None:
    new = device_config.parse({"vnpus": {"hamiVnpuCore": True, "configs": CONFIGS}, "nvidia": {}})
    old = device_config.parse({"vnpus": CONFIGS})
    assert new.table.chips == old.table.chips == DEFAULT_CHIPS.chips
    assert new.table.soft_nodes_by_default
    assert not old.table.soft_nodes_by_default
    assert new.warnings == ()
    assert len(old.warnings) == 1
    assert "hamiVnpuCore" in old.warnings[0]


def changed(field: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(CONFIGS[2])
    if value is ...:
        del config[field]
    else:
        config[field] = value
    return {"vnpus": {"configs": [config]}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], ""),
        ({}, "vnpus"),
        ({"vnpus": None}, "vnpus"),
        ({"vnpus": "x"}, "vnpus"),
        ({"vnpus": []}, "vnpus"),
        ({"vnpus": {"configs": {}}}, "vnpus.configs"),
        ({"vnpus": {"hamiVnpuCore": "true", "configs": CONFIGS}}, "vnpus.hamiVnpuCore"),
        ({"vnpus": {"configs": ["x"]}}, "vnpus.configs[0]"),
        ({"vnpus": {"configs": [CONFIGS[0], CONFIGS[0]]}}, "vnpus.configs[1].commonWord"),
        (changed("commonWord", ...), "vnpus.configs[0].commonWord"),
        (changed("commonWord", ""), "vnpus.configs[0].commonWord"),
        (changed("chipName", 910), "vnpus.configs[0].chipName"),
        (changed("memoryAllocatable", 65537), "vnpus.configs[0].memoryAllocatable"),
        (changed("memoryAllocatable", 0), "vnpus.configs[0].memoryAllocatable"),
        (changed("memoryCapacity", 65536.0), "vnpus.configs[0].memoryCapacity"),
        (changed("memoryCapacity", 2**31), "vnpus.configs[0].memoryCapacity"),
        (changed("memoryFactor", -1), "vnpus.configs[0].memoryFactor"),
        (changed("aiCore", "20"), "vnpus.configs[0].aiCore"),
        (changed("superPod", "yes"), "vnpus.configs[0].superPod"),
        (changed("templates", {}), "vnpus.configs[0].templates"),
        (changed("templates", [{"name": "a", "memory": 0}]), "vnpus.configs[0].templates[0].memory"),
        (changed("templates", [{"memory": 1}]), "vnpus.configs[0].templates[0].name"),
        (changed("templates", [{"name": "a", "memory": 65537}]), "vnpus.configs[0].templates[a]"),
        (changed("templates", [{"name": "a", "memory": 1, "aiCore": 21}]), "vnpus.configs[0].templates[a]"),
        (changed("templates", [{"name": "a", "memory": 1}, {"name": "a", "memory": 2}]), "vnpus.configs[0].templates"),
        (changed("templates", [{"name": "vir04_3c_ndvpp", "memory": 1}]), "vnpus.configs[0].templates[0].name"),
    ],
)
def test_a_fault_names_its_field(document: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        device_config.parse(document)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (changed("memoryAlocatable", 1), ["memoryAlocatable", "did you mean memoryAllocatable"]),
        (changed("resourceCoreName", "huawei.com/cores"), ["Volcano", "huawei.com/cores"]),
        (changed("memoryFactor", 1024), ["memoryFactor", "Volcano"]),
        (changed("resourceName", "huawei.com/npu"), ["resourceName", "Ascend910B3"]),
    ],
)
def test_what_surprises_is_a_warning(document: Any, words: list[str]) -> None:
    warnings = " ".join(device_config.parse(document).warnings)
    for word in words:
        assert word in warnings


@pytest.mark.parametrize("field", ["resourceCoreName", "resourceMemoryName", "templates", "memoryFactor", "superPod"])
def test_what_other_copies_leave_out_has_its_usual_value(field: str) -> None:
    chip = device_config.parse(changed(field, ...)).table.chips[0]
    assert (chip.memory_name, chip.core_name) == ("huawei.com/Ascend910B3-memory", "huawei.com/Ascend910B3-core")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*CONFIGS[0], "x"]), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_anything_is_read_or_refused(document: Any) -> None:
    for shape in (document, {"vnpus": document}, {"vnpus": {"configs": document}}, {"vnpus": [document]}):
        try:
            table = device_config.parse(shape).table
        except ConfigError:
            continue
        assert len(table) > 0
