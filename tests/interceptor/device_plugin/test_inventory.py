from __future__ import annotations

from dataclasses import replace

import pytest

from interceptor.device_plugin import inventory as offers
from interceptor.device_plugin.settings import NodeSettings
from interceptor.devices import machine_of
from tests.support.device_plugin import device, inventory
from vnpu.cards import Card


def test_a_card_is_offered_with_what_the_table_says_of_its_chip() -> None:
    found = inventory(device(1))
    assert [offered.card for offered in found.cards] == [Card("U1", 1, "Ascend910B3", 65536, 10, 20, 7, network_id=0)]
    assert found.cards[0].slots() == [f"U1-{slot}" for slot in range(10)]
    assert found.physical_ids == {"U1": 1}


@pytest.mark.parametrize(
    ("soft", "settings", "slots"),
    [
        (True, NodeSettings(), 10),
        (True, NodeSettings(soft_slots=25), 25),
        (True, NodeSettings(slots=6), 6),
        (False, NodeSettings(), 4),
        (False, NodeSettings(soft_slots=25), 4),
        (False, NodeSettings(slots=6), 6),
    ],
)
def test_slots_come_from_the_node_else_from_the_mode(soft: bool, settings: NodeSettings, slots: int) -> None:  # noqa: FBT001 - a parameter of the case
    assert inventory(device(0), soft=soft, settings=settings).cards[0].card.slots == slots


def test_groups_of_cards_follow_the_cards_number() -> None:
    found = inventory(*(device(number) for number in (3, 4)), device(5, chip="Ascend910"), device(6, chip="310P3"))
    assert [offered.card.network_id for offered in found.cards] == [0, 1, 0, None]
    assert [chip.common_word for chip in found.chips] == ["Ascend910B3", "Ascend910C", "Ascend310P"]


def test_a_chip_that_the_table_does_not_know_is_told_and_not_offered() -> None:
    found = inventory(device(0), device(1, chip="910B3x"))
    assert [offered.card.uuid for offered in found.cards] == ["U0"]
    assert "chip 1 is a 910B3x" in found.faults[0]


def test_sick_unshareable_and_cordoned_cards_are_unhealthy_for_reasons_of_their_own() -> None:
    found = inventory(
        device(0, fault="alarm"), device(1), device(2), share_faults={"U1": "no", "U2": ""}, cordoned={"U2"}
    )
    assert [(one.card.healthy, one.fault) for one in found.cards] == [(False, "alarm"), (False, "no"), (False, "")]


def test_whether_a_chip_can_be_shared_is_nothing_to_a_hard_node() -> None:
    assert inventory(device(0), soft=False, share_faults={"U0": "no"}).cards[0].card.healthy


@pytest.mark.parametrize(
    ("driver", "library", "share", "reason"),
    [
        ("25.5.0", "", "", ""),
        ("26.0", "", "", ""),
        ("25.10.0", "", "", ""),
        ("25.3.1", "", "", "25.5 or newer"),
        ("24.1.RC3", "", "", "25.5 or newer"),
        ("unknown", "", "", "such as 25.5.0"),
        ("25.5.0", "wrong machine", "", "wrong machine"),
        ("25.5.0", "", "no npu-smi", "no npu-smi"),
    ],
)
def test_why_soft_slices_are_refused(driver: str, library: str, share: str, reason: str) -> None:
    found = offers.soft_fault(driver, library, share)
    assert bool(found) == bool(reason)
    assert reason in found


def test_a_card_that_the_driver_no_longer_names_is_lost_and_not_gone() -> None:
    before = machine_of("dcmi", "25.5.0", [device(0), device(1)])
    now = offers.remembered(before, machine_of("dcmi", "25.5.0", [device(1)]))
    assert [(one.uuid, bool(one.fault)) for one in now.devices] == [("U0", True), ("U1", False)]
    back = offers.remembered(now, before)
    assert back == before


def test_a_chip_in_the_place_of_another_takes_it() -> None:
    before = machine_of("dcmi", "25.5.0", [device(0)])
    now = offers.remembered(before, machine_of("dcmi", "25.5.0", [device(0, uuid="new")]))
    assert [one.uuid for one in now.devices] == ["new"]


def test_what_a_node_offers_is_compared_by_value() -> None:
    assert inventory() == inventory()
    assert inventory() != replace(inventory(), soft=False)


FREE = [f"U{card}-{slot}" for card in range(2) for slot in range(3)]


@pytest.mark.parametrize(
    ("needed", "size", "wanted", "chosen"),
    [
        ([], 1, ["U1"], ["U1-0"]),
        ([], 2, ["U1", "U0"], ["U1-0", "U0-0"]),
        (["U0-2"], 2, ["U1", "U0"], ["U0-2", "U1-0"]),
        (["U0-2"], 1, ["U1"], []),
        ([], 1, [], []),
        ([], 1, ["U7"], []),
        ([], 2, ["U1"], []),
    ],
)
def test_preferred_slots_are_those_of_the_chosen_cards(
    needed: list[str], size: int, wanted: list[str], chosen: list[str]
) -> None:
    assert offers.preferred(FREE, needed, size, wanted) == chosen


def test_uuids_with_dashes_are_cards_too() -> None:
    assert offers.preferred(["A-B-0", "A-1"], [], 1, ["A-B"]) == ["A-B-0"]
