"""Faults of HAMi (D, A) and Volcano (B) that touch admission: the same input, and what is right.

The names are those of the lists in which the faults were described; each docstring says what goes wrong elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from tests.support.chips import chip_named, config_entry, device_config_of
from tests.support.pods import CHIP, CORE, MEMORY, asking, container, patched, pod
from vnpu import device_config, names
from vnpu.admission import rules
from vnpu.admission.settings import DevicePlugin, Settings
from vnpu.chips import DEFAULT_CHIPS, ChipTable
from vnpu.errors import ConfigError

SOFT = {names.MODE: "hami-core"}
HARD = {names.MODE: "template"}


def mutated(document: dict[str, Any], chips: ChipTable = DEFAULT_CHIPS, **settings: Any) -> rules.Outcome:
    return rules.mutate_pod(document, Settings(**settings), chips)


def limits_of(document: dict[str, Any], outcome: rules.Outcome, index: int = 0) -> dict[str, Any]:
    assert outcome.allowed, outcome.message
    limits: dict[str, Any] = patched(document, outcome.sets)["spec"]["containers"][index]["resources"]["limits"]
    return limits


def test_d01_a_part_of_a_910c_is_judged_by_the_count_it_becomes() -> None:
    """One card with 16384 MiB becomes two cards with 16384 MiB each, without an error."""
    outcome = mutated(pod(container(limits=asking("huawei.com/Ascend910C", count=1, memory=16384))))
    assert "several cards (2) come as whole cards" in outcome.message


@pytest.mark.parametrize("limits", [asking(count=1), asking(count=1, memory=8192, core=20)])
def test_d02_a_container_with_an_npu_gets_no_empty_list_of_cards(limits: dict[str, Any]) -> None:
    """With overwriteEnv each other chip appends an empty ASCEND_VISIBLE_DEVICES, and the container sees no NPU."""
    entries = (config_entry(chip, overwriteEnv=True) for chip in DEFAULT_CHIPS)
    chips = device_config.parse(device_config_of(*entries)).table
    document = pod(container(limits=limits))
    env = patched(document, mutated(document, chips).sets)["spec"]["containers"][0].get("env", [])
    written = [entry["name"] for entry in env]
    assert "ASCEND_VISIBLE_DEVICES" not in written
    assert len(set(written)) == len(written)


@pytest.mark.parametrize("memory", [0, -5, "-5", "0"])
def test_d03_memory_of_nothing_is_no_template(memory: Any) -> None:
    """Memory 0 or -5 becomes the smallest template, which hides the bad value from the API server."""
    outcome = mutated(pod(container(limits=asking(count=1, memory=memory)), annotations=HARD))
    assert "from 1 to 65536 MiB" in outcome.message


def test_d04_bytes_are_not_mib() -> None:
    """Memory 16Gi is accepted; the scheduler reads no request at all, and every node passes."""
    outcome = mutated(pod(container(limits=asking(count=1, memory="16Gi")), annotations=SOFT))
    assert "16Gi is 16384 MiB, write 16384" in outcome.message


def test_d05_a_soft_slice_is_not_larger_than_the_card() -> None:
    """70000 MiB of a card with 65536 are accepted, and the pod is pending for ever."""
    assert "from 1 to 65536 MiB" in mutated(pod(container(limits=asking(memory=70000)), annotations=SOFT)).message


def test_d06_core_above_100_is_refused() -> None:
    """Core 150 is accepted, fit cuts it to 100 and the quota is charged 150."""
    assert "from 1 to 100" in mutated(pod(container(limits=asking(memory=8192, core=150)))).message


def test_d07_a_memory_factor_scales_rounds_and_scales_back() -> None:
    """With factor 1024, memory 8 becomes 2184, which the scheduler then reads as 2236416 MiB."""
    chip = chip_named("Ascend910A")
    chips = ChipTable((replace(chip, memory_factor=1024),))
    document = pod(container(limits=asking(chip.resource_name, count=1, memory=8)))
    outcome = mutated(document, chips)
    units = int(limits_of(document, outcome)[chip.memory_name])
    template = chip.template_for(8 * 1024)
    assert template is not None
    assert units == template.memory_mib // 1024
    again = patched(document, outcome.sets)
    assert mutated(again, chips).sets == ()


def test_d08_a_whole_card_that_has_less_than_was_asked_brings_a_warning() -> None:
    """310P: 24000 MiB become 21527 without a word."""
    document = pod(container(limits=asking("huawei.com/Ascend310P", count=1, memory=24000)))
    outcome = mutated(document)
    assert limits_of(document, outcome)["huawei.com/Ascend310P-memory"] == "21527"
    assert any("24000 is more than the card has; the container gets 21527" in text for text in outcome.warnings)


@pytest.mark.parametrize("annotations", [SOFT, HARD])
@pytest.mark.parametrize("limits", [asking(count=0), asking(count=1, memory=0)])
def test_a5_count_0_and_memory_0_are_refused(limits: dict[str, Any], annotations: dict[str, str]) -> None:
    """Count 0 is completed and then asks for nothing; soft memory 0 is the whole card."""
    assert "a whole number from 1" in mutated(pod(container(limits=limits), annotations=annotations)).message


def test_a9_pods_for_volcano_are_completed_too() -> None:
    """A pod with another scheduler's name is skipped, and keeps memory that no template has."""
    document = pod(container(limits=asking(memory=10000)), schedulerName="volcano")
    outcome = mutated(document, scheduler_name="hami-scheduler")
    assert limits_of(document, outcome) == {CHIP: "1", MEMORY: "16384"}
    assert patched(document, outcome.sets)["spec"]["schedulerName"] == "volcano"


def test_a10_the_answer_does_not_depend_on_the_order_of_the_chips() -> None:
    """Chips are visited in random order, and so is what they write."""
    document = pod(
        container("a", limits=asking(count=1, memory=8192, core=20)),
        container("b", limits=asking("huawei.com/Ascend310P", memory=1024, core=5)),
    )
    answers = {repr(mutated(document, ChipTable(order))) for order in permutations(DEFAULT_CHIPS.chips[:6], 6)}
    assert len(answers) == 1


def test_a11_two_chips_of_one_name_are_refused() -> None:
    """Of two configs with one commonWord the last silently wins."""
    with pytest.raises(ConfigError, match="names are unique"):
        device_config.parse(device_config_of(*[config_entry(chip_named("Ascend910B3"))] * 2))


def test_a12_core_in_hard_mode_is_refused_for_every_chip() -> None:
    """A chip whose config names no core resource skips the check."""
    config = config_entry(chip_named("Ascend910B3"))
    del config["resourceCoreName"]
    chips = device_config.parse(device_config_of(config)).table
    outcome = mutated(pod(container(limits={CHIP: 1, CORE: 20}), annotations=HARD), chips)
    assert "core belongs to soft slices" in outcome.message


@pytest.mark.parametrize(("chip", "memory"), [("huawei.com/Ascend310P", 24577), (CHIP, 65537)])
def test_volcano_b1_memory_above_the_capacity_is_refused(chip: str, memory: int) -> None:
    """Volcano books 0 MiB and gives the smallest template."""
    assert f"from 1 to {memory - 1}" in mutated(pod(container(limits=asking(chip, count=1, memory=memory)))).message


@pytest.mark.parametrize("memory", ["16Gi", "8Gi", "8192Mi", "5G", 2147483648, 4294967297])
@pytest.mark.parametrize("annotations", [SOFT, HARD])
def test_volcano_b2_numbers_beyond_32_bits_are_refused(memory: Any, annotations: dict[str, str]) -> None:
    """Volcano cuts them to 32 bits: the whole card, 0 MiB, a negative ledger, or 1 MiB of quota."""
    assert not mutated(pod(container(limits=asking(count=1, memory=memory)), annotations=annotations)).allowed


def test_volcano_b4_several_npu_containers_bring_a_warning_under_volcano() -> None:
    """Volcano never books the second container's card."""
    document = pod(container("a", limits=asking(count=1)), container("b", limits=asking(count=1)))
    assert mutated(document).warnings == ()
    document["spec"]["schedulerName"] = "volcano"
    assert any("books only the first" in text for text in mutated(document).warnings)


@pytest.mark.parametrize("scheduler", [None, "default-scheduler", "volcano", "hami-scheduler", "other"])
@pytest.mark.parametrize("limits", [None, asking(count=1, memory=8192, core=20)])
def test_volcano_b5_a_ledger_that_a_user_brings_is_refused(
    scheduler: str | None, limits: dict[str, Any] | None
) -> None:
    """Volcano books it on any pod; negative numbers free memory, so that 43054 MiB and 200 % fit on a card."""
    forged = {"hami.io/Ascend910B3-devices-allocated": "U0,Ascend910B3,-21527,-100:;"}
    outcome = mutated(pod(container(limits=limits), annotations=forged, schedulerName=scheduler))
    assert "devices-allocated" in outcome.message


def test_volcano_b7_count_0_is_refused() -> None:
    """Volcano books one card, on a 910 all eight, or panics."""
    assert not mutated(pod(container(limits={CHIP: "0"}))).allowed


@pytest.mark.parametrize("limits", [{MEMORY: 8192}, {CORE: 20}, {MEMORY: 8192, CORE: 20}])
def test_volcano_b8_memory_or_core_alone_get_a_count(limits: dict[str, Any]) -> None:
    """Memory without a count is booked, but kubelet never calls Allocate: the container has no NPU."""
    document = pod(container(limits=limits))
    assert limits_of(document, mutated(document))[CHIP] == "1"


def test_volcano_b17_a_soft_container_has_one_card_where_the_plugin_limits_only_one() -> None:
    """A soft pod with several cards gets quota and priority of the first card only."""
    document = pod(container(limits=asking(count=2, memory=8192, core=20)))
    assert "maxSoftCards" in mutated(document).message
    assert mutated(document, device_plugin=DevicePlugin.VNPU).allowed


@pytest.mark.parametrize("limits", [asking(count=1), asking(count=1, memory=8192), asking(core=20)])
def test_volcano_b21_every_npu_pod_carries_its_mode(limits: dict[str, Any]) -> None:
    """A pod without the annotation follows its node: on a soft node a container without any quota."""
    document = pod(container(limits=limits))
    result = patched(document, mutated(document).sets)
    assert result["metadata"]["annotations"][names.MODE] in {"hami-core", "template"}


def test_volcano_b22_names_and_factors_that_volcano_does_not_know_are_told() -> None:
    """Volcano builds the core's name itself and knows no memoryFactor, so that it and HAMi read two pods in one."""
    chip = chip_named("Ascend910B3")
    config = config_entry(chip, resourceCoreName="huawei.com/cores", memoryFactor=1024)
    core, factor = device_config.parse(device_config_of(config)).warnings
    assert core.startswith("vnpus.configs[0].resourceCoreName: ")
    assert CORE in core
    assert factor.startswith("vnpus.configs[0].memoryFactor: 1024: Volcano does not know")
    assert device_config.parse(device_config_of(config_entry(chip))).warnings == ()


@pytest.mark.parametrize("core", [20, 50, 100])
def test_volcano_b23_core_means_percent_and_never_cores(core: int) -> None:
    """In hard mode -core: 20 on a 910B3 means all 20 AI cores, 50 never fits, and nothing is enforced."""
    assert not mutated(pod(container(limits=asking(count=1, core=core)), annotations=HARD)).allowed
    document = pod(container(limits=asking(count=1, memory=8192, core=core)))
    env = patched(document, mutated(document).sets)["spec"]["containers"][0]["env"]
    assert {"name": "NPU_PRIORITY", "value": str(core)} in env
