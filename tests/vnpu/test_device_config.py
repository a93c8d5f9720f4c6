"""The device config: both layouts, and every fault loud."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import api_rules
from tests.support.chips import chip_named, config_entry, device_config_of
from tests.support.pods import container, pod
from vnpu import device_config, names
from vnpu.annotations.fields import is_word
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import ConfigError

CONFIGS = [config_entry(chip) for chip in DEFAULT_CHIPS]


def test_both_layouts_give_the_same_chips() -> None:
    new = device_config.parse({"vnpus": {"hamiVnpuCore": True, "configs": CONFIGS}, "nvidia": {}})
    old = device_config.parse({"vnpus": CONFIGS})
    assert new.table.chips == old.table.chips == DEFAULT_CHIPS.chips
    assert new.table.soft_nodes_by_default
    assert not old.table.soft_nodes_by_default
    assert new.warnings == ()
    assert len(old.warnings) == 1
    assert "hamiVnpuCore" in old.warnings[0]


WRONG_WORDS = ("A,B", "A;B", "A:B", "A/B", "A B", "-A", "A-", "Ä", "A" * 44)
LONG_NAME = config_entry(chip_named("Ascend910B3"), resourceName="huawei.com/" + "a" * 60, resourceMemoryName=None)
WRONG_RESOURCES = ("A B", "npu", "huawei.com/", "/npu", "Huawei.com/npu", "huawei.com/a/b", "a" * 254 + "/npu")


def changed(field: Any, value: Any) -> dict[str, Any]:
    config = config_entry(chip_named("Ascend910B3")) | {field: value}
    if value is ...:
        del config[field]
    return device_config_of(config)


def with_factor(factor: int, *templates_mib: int) -> dict[str, Any]:
    templates = [{"name": f"vir{memory}", "memory": memory} for memory in templates_mib]
    return device_config_of(config_entry(chip_named("Ascend910A"), memoryFactor=factor, templates=templates))


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
        *((changed("commonWord", word), "vnpus.configs[0].commonWord") for word in WRONG_WORDS),
        *((changed("resourceName", name), "vnpus.configs[0].resourceName") for name in WRONG_RESOURCES),
        (changed("resourceMemoryName", "huawei.com/a b"), "vnpus.configs[0].resourceMemoryName"),
        (changed("resourceCoreName", "cores"), "vnpus.configs[0].resourceCoreName"),
        (device_config_of(LONG_NAME), "vnpus.configs[0].resourceMemoryName"),
        *((changed("runtimeClassName", name), "vnpus.configs[0].runtimeClassName") for name in ("Bad Name", "A", 7)),
        (with_factor(40000), "vnpus.configs[0].memoryFactor"),
        (with_factor(32769), "vnpus.configs[0].memoryFactor"),
        (with_factor(2185, 2184, 4369), "vnpus.configs[0].memoryFactor"),
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


@pytest.mark.parametrize("document", [with_factor(32768), with_factor(2184, 2184, 4369), with_factor(0, 1)])
def test_every_slice_is_at_least_one_unit_of_memory(document: dict[str, Any]) -> None:
    (chip,) = device_config.parse(document).table
    smallest_mib = min([chip.memory_allocatable_mib, *(template.memory_mib for template in chip.templates)])
    assert smallest_mib // chip.memory_factor >= 1


@pytest.mark.parametrize("word", ["A", "Ascend910B4-1", "a_b.c", "A" * 43])
def test_every_annotation_of_a_common_word_can_be_written(word: str) -> None:
    config = config_entry(chip_named("Ascend910B3"), commonWord=word, runtimeClassName="ascend.v2")
    assert device_config.parse(device_config_of(config)).table.get(word) is not None
    assert is_word(word)
    keys = (
        *(names.use_uuid(word), names.no_use_uuid(word), names.to_allocate(word), names.allocated(word)),
        *(names.runtime_info(word), names.node_register(word), names.node_handshake(word)),
    )
    assert api_rules.faults(pod(container(), annotations=dict.fromkeys(keys, "x"))) == []


@pytest.mark.parametrize(
    ("document", "begins", "words"),
    [
        (
            changed("memoryAlocatable", 1),
            "vnpus.configs[0].memoryAlocatable: unknown key, ignored",
            "did you mean memoryAllocatable",
        ),
        (
            changed("resourceCoreName", "huawei.com/cores"),
            'vnpus.configs[0].resourceCoreName: "huawei.com/cores"',
            "Volcano ignores this key, and reads huawei.com/Ascend910B3-core",
        ),
        (
            changed("resourceMemoryName", "huawei.com/mib"),
            'vnpus.configs[0].resourceMemoryName: "huawei.com/mib" is not huawei.com/Ascend910B3-memory',
            "quotas",
        ),
        (changed("memoryFactor", 1024), "vnpus.configs[0].memoryFactor: 1024", "Volcano"),
        (changed(7, "x"), "vnpus.configs[0].7: unknown key", "ignored"),
    ],
)
def test_what_surprises_is_one_warning(document: Any, begins: str, words: str) -> None:
    (warning,) = device_config.parse(document).warnings
    assert warning.startswith(begins)
    assert words in warning


def test_names_that_follow_the_resource_are_no_surprise_beside_it() -> None:
    config = config_entry(chip_named("Ascend910B3"), resourceName="huawei.com/Foo")
    for field in ("resourceMemoryName", "resourceCoreName"):
        del config[field]
    written = {"resourceMemoryName": "huawei.com/Foo-memory", "resourceCoreName": "huawei.com/Foo-core"}
    for more in ({}, written):
        (warning,) = device_config.parse(device_config_of(config | more)).warnings
        assert warning.startswith('vnpus.configs[0].resourceName: "huawei.com/Foo" is not huawei.com/Ascend910B3')


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
