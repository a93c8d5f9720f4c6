"""What a container asks for: found first, then read by the mode of its pod, each fault where its number stands."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.chips import chip_named
from tests.support.pods import CHIP, CORE, MEMORY, container
from vnpu import asked
from vnpu.chips import DEFAULT_CHIPS, ChipTable, ResourceKind
from vnpu.containers import containers
from vnpu.mode import Mode
from vnpu.request import complete

if TYPE_CHECKING:
    from vnpu.asked import Asked, Found, Reading

PLACE = "spec.containers[0].resources"
P = "huawei.com/Ascend310P"


def found(limits: Any = None, requests: Any = None) -> Found:
    document = {"spec": {"containers": [container(resources={"limits": limits, "requests": requests})]}}
    (one,) = containers(document)
    return asked.find(one, DEFAULT_CHIPS)


def read(limits: Any = None, requests: Any = None, *, mode: Mode | None = Mode.SOFT) -> Reading:
    return asked.numbers(found(limits, requests), mode)


def sound(reading: Reading) -> Asked:
    assert reading.faults == []
    assert reading.asked is not None
    return reading.asked


def test_what_a_container_names_is_known_before_its_numbers_are() -> None:
    one = found({CHIP: "many", "cpu": 1}, {CORE: -1, "huawei.com/Ascend910X": 1})
    assert one.chip is chip_named("Ascend910B3")
    assert one.named.keys() == {ResourceKind.COUNT, ResourceKind.CORE}
    assert [other.path for other in one.others] == [f"{PLACE}.limits.cpu", f"{PLACE}.requests[huawei.com/Ascend910X]"]
    assert one.faults == []


def test_who_asks_for_no_chip_has_no_numbers_and_no_faults() -> None:
    assert found({"cpu": "x"}).chip is None
    assert read({"cpu": "x"}) == (None, [])


def test_each_number_keeps_its_place_and_what_is_not_written_belongs_into_the_limits() -> None:
    one = sound(read({CHIP: 1, CORE: 20}, {CHIP: 1, MEMORY: "8Ki"}))
    assert (one.count, one.memory, one.core) == (1, 8192, 20)
    assert one.path(ResourceKind.COUNT) == f"{PLACE}.limits[{CHIP}]"
    assert one.path(ResourceKind.MEMORY) == f"{PLACE}.requests[{MEMORY}]"
    assert one.path(ResourceKind.CORE) == f"{PLACE}.limits[{CORE}]"
    bare = sound(read(None, {CORE: 20}))
    assert (bare.count, bare.memory) == (None, None)
    assert bare.path(ResourceKind.COUNT) == f"{PLACE}.limits[{CHIP}]"
    assert bare.path(ResourceKind.MEMORY) == f"{PLACE}.limits[{MEMORY}]"


@pytest.mark.parametrize("section", ["limits", "requests"])
@pytest.mark.parametrize(
    ("mode", "memory", "largest"),
    [
        *((Mode.SOFT, 21527, None), (Mode.SOFT, 21528, 21527), (Mode.SOFT, 24576, 21527), (Mode.SOFT, 30000, 21527)),
        *((Mode.HARD, 21528, None), (Mode.HARD, 24576, None), (Mode.HARD, 24577, 24576)),
        *((None, 24577, 24576), (None, 0, 24576)),
    ],
)
def test_the_mode_says_how_much_memory_there_is(
    mode: Mode | None, memory: int, largest: int | None, section: str
) -> None:
    reading = read(**{section: {f"{P}-memory": memory}}, mode=mode)
    if largest is None:
        assert sound(reading).memory == memory
        return
    (fault,) = reading.faults
    assert reading.asked is None
    assert fault.path == f"{PLACE}.{section}[{P}-memory]"
    assert fault.allowed == f"a whole number from 1 to {largest} MiB is allowed"


def test_without_a_mode_faults_are_told_and_no_number_is_given() -> None:
    assert read({CHIP: 1, MEMORY: 8192}, mode=None) == (None, [])
    reading = read({CHIP: 0, MEMORY: 70000, CORE: 101}, mode=None)
    assert [fault.path for fault in reading.faults] == [f"{PLACE}.limits[{name}]" for name in (CHIP, MEMORY, CORE)]


def test_contradictions_and_numbers_are_told_together() -> None:
    reading = read({CHIP: 0, MEMORY: 1}, {MEMORY: 2, P: 1})
    assert [fault.path for fault in reading.faults] == [
        f"{PLACE}.requests[{P}]",
        f"{PLACE}.requests[{MEMORY}]",
        f"{PLACE}.limits[{CHIP}]",
    ]


@given(
    st.sampled_from(DEFAULT_CHIPS.chips),
    st.sampled_from(Mode),
    st.integers(1, 2**17) | st.integers(1, 128).map("{}Gi".format) | st.integers(1, 2**17).map("{}Mi".format),
)
@example(chip_named("Ascend310P"), Mode.SOFT, "16Gi")
@example(chip_named("Ascend310P"), Mode.SOFT, "24Gi")
def test_the_number_that_a_refusal_recommends_is_not_refused(chip: Any, mode: Mode, memory: Any) -> None:
    for fault in read({chip.memory_name: memory}, mode=mode).faults:
        for figure in re.findall(r"(?:to|write) ([0-9]+)", fault.allowed):
            wanted = sound(read({chip.memory_name: figure}, mode=mode))
            if not (chip.super_pod and mode is Mode.HARD):  # half a module is refused whatever its memory
                complete(wanted)


@given(st.permutations([CHIP, MEMORY, P, "huawei.com/Ascend910B4-memory"]))
def test_the_order_of_keys_decides_nothing(names: list[str]) -> None:
    reading = read(dict.fromkeys(names, 70000), {})
    assert {fault.path.partition("limits")[2] for fault in reading.faults} == {
        f"[{MEMORY}]",
        f"[{P}]",
        "[huawei.com/Ascend910B4-memory]",
    }
    assert all("Ascend910B3 is there" in str(fault) or MEMORY in fault.path for fault in reading.faults)


def refused(memory: Any, word: str = "Ascend910B3", factor: int = 1, mode: Mode = Mode.SOFT, count: int = 1) -> str:
    chip = replace(chip_named(word), memory_factor=factor)
    limits = {chip.resource_name: count, chip.memory_name: memory}
    (one,) = containers({"spec": {"containers": [container(resources={"limits": limits})]}})
    (fault,) = asked.numbers(asked.find(one, ChipTable((chip,))), mode).faults
    assert fault.path == f"{PLACE}.limits[{chip.memory_name}]"
    assert fault.value == memory
    return fault.allowed


@pytest.mark.parametrize(
    ("memory", "meant"),
    [
        ("16Gi", "16Gi is 16384 MiB, write 16384"),
        ("8192Mi", "8192Mi is 8192 MiB, write 8192"),
        (17179869184, "17179869184 is 16384 MiB, write 16384"),
        ("1500Ki", "1500Ki is more than 1 and less than 2 MiB, rounded up, write 2"),
        ("8G", "8G is more than 7629 and less than 7630 MiB, rounded up, write 7630"),
        ("1Ti", "1Ti is 1048576 MiB, more than there is"),
    ],
)
def test_bytes_are_refused_with_the_mib_that_were_meant(memory: Any, meant: str) -> None:
    assert refused(memory) == f"a whole number from 1 to 65536 MiB is allowed; the unit is MiB already: {meant}"


@pytest.mark.parametrize(
    ("memory", "meant"),
    [
        ("16Gi", "16Gi is 16384 MiB, write 16 (for 16384 MiB)"),
        ("1500Mi", "1500Mi is 1500 MiB, rounded up, write 2 (for 2048 MiB)"),
        ("65Gi", "65Gi is 66560 MiB, more than there is"),
    ],
)
def test_bytes_where_the_unit_is_a_factor(memory: Any, meant: str) -> None:
    allowed = "a whole number from 1 to 64 units of 1024 MiB is allowed; the unit is 1024 MiB already: "
    assert refused(memory, factor=1024) == allowed + meant


@pytest.mark.parametrize("memory", ["70000", "70k", "0", "-1", "0.5", "x", "1023Ki", None, True, []])
def test_what_nobody_means_as_bytes_is_not_told_as_bytes(memory: Any) -> None:
    assert "already" not in refused(memory)


@pytest.mark.parametrize(("word", "count"), [("Ascend910C", 1), ("Ascend910B3", 2)])
def test_bytes_for_several_hard_cards_are_told_without_a_figure_that_would_be_refused_too(
    word: str, count: int
) -> None:
    told = refused("16Gi", word, mode=Mode.HARD, count=count)
    assert told.endswith("16Gi is 16384 MiB, and several cards come as whole cards: leave the memory out")
    assert "write 16384" in refused("16Gi", word, mode=Mode.SOFT, count=count)


@given(st.integers(2**20, 2**40), st.sampled_from([1, 2, 3, 1024]))
def test_the_figure_that_is_proposed_holds_what_was_meant_and_is_the_smallest(meant: int, factor: int) -> None:
    told = refused(str(meant), factor=factor)
    found = re.search(r"write (\d+)", told)
    if found is None:
        assert told.endswith("more than there is")
        assert -(-meant // (factor * 2**20)) > 65536 // factor
        return
    units = int(found[1])
    assert (units - 1) * factor * 2**20 < meant <= units * factor * 2**20
    assert ("rounded up" in told) == (meant != units * factor * 2**20)
    assert asked.numbers(found_with(units, factor), Mode.SOFT).faults == []


def found_with(units: int, factor: int) -> Found:
    chip = replace(chip_named("Ascend910B3"), memory_factor=factor)
    (one,) = containers({"spec": {"containers": [container(resources={"limits": {chip.memory_name: units}})]}})
    return asked.find(one, ChipTable((chip,)))
