"""What containers get of a card, with wide margins: the machine is shared. The figures are those of make bench."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.npu_client import Machine
from tests.support.shares import Load, shares, sharing

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 3
MARGIN = 8.0
"""Points of what the card did in all: a busy machine wakes its processes late, all of them alike."""

CASES = {
    "20 and 40": ([Load("20", ("1000",)), Load("40", ("1000",))], [33.3, 66.7]),
    "10 and 90": ([Load("10", ("1000",)), Load("90", ("1000",))], [10, 90]),
    "three processes against one": ([Load("50", ("1000", "1000", "1000")), Load("50", ("1000",))], [50, 50]),
    "short kernels against long ones": ([Load("50", ("50",)), Load("50", ("20000",))], [50, 50]),
    "without a priority beside 60": ([Load(None, ("1000",)), Load("60", ("1000",))], [40, 60]),
}


@pytest.mark.parametrize(("loads", "wanted"), CASES.values(), ids=CASES.keys())
def test_weights(tmp_path: Path, loads: list[Load], wanted: list[float]) -> None:
    machine = Machine(tmp_path / "npu")
    with sharing(machine, tmp_path, loads):
        for load in loads:
            load.go()
        shares(machine, len(loads), 0.5)
        got = shares(machine, len(loads), SECONDS)

    assert sum(got) > 30
    for part, want in zip(got, wanted, strict=True):
        assert abs(100 * part / sum(got) - want) < MARGIN, got


def test_a_ceiling_holds_also_alone(tmp_path: Path) -> None:
    loads = [Load("20", ("1000",), ceiling=True)]
    machine = Machine(tmp_path / "npu")
    with sharing(machine, tmp_path, loads):
        loads[0].go()
        (got,) = shares(machine, 1, SECONDS)

    assert 5 < got < 23


def test_idle_time_goes_to_whoever_wants_it(tmp_path: Path) -> None:
    loads = [Load("10", ("1000",)), Load("90", ("1000",))]
    machine = Machine(tmp_path / "npu")
    with sharing(machine, tmp_path, loads):
        loads[0].go()
        got = shares(machine, 2, 1.5)

    assert got[0] > 50
    assert got[1] == 0


def test_a_holder_that_pauses_gives_the_rest_of_its_turn_away(tmp_path: Path) -> None:
    loads = [Load("10", ("1000",)), Load("90", ("1000 think 100000",))]
    machine = Machine(tmp_path / "npu")
    with sharing(machine, tmp_path, loads):
        for load in loads:
            load.go()
        shares(machine, 2, 0.5)
        got = shares(machine, 2, SECONDS)

    assert got[0] > 50, got
    assert 0 < got[1] < 20, got


def test_collectives_of_two_containers_on_two_cards(tmp_path: Path) -> None:
    """The bare card deadlocks here at once: each collective needs both cards at the same time."""
    loads = [Load("50", ("1000 cards 2",), devices="0,1") for _ in range(2)]
    machine = Machine(tmp_path / "npu")
    machine.tool("create", "cards=2")
    with sharing(machine, tmp_path, loads):
        for load in loads:
            load.go()
        shares(machine, 2, 0.5)
        for card in range(2):
            got = shares(machine, 2, SECONDS, card)
            assert min(got) > 5, got
