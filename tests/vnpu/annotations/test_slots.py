from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from vnpu.annotations import devices, slots
from vnpu.annotations.devices import DeviceEntry, Slot
from vnpu.annotations.slots import Owner
from vnpu.containers import ContainerKind
from vnpu.errors import AnnotationError

if TYPE_CHECKING:
    from collections.abc import Iterator

INIT, SIDECAR, APP = ContainerKind.INIT, ContainerKind.SIDECAR, ContainerKind.APP


def owners_of(pattern: str) -> list[Owner]:
    """``i``, ``s`` and ``a`` for containers of each kind; in capitals those that ask."""
    kinds = {"i": INIT, "s": SIDECAR, "a": APP}
    return [Owner(f"{word}{place}", kinds[word.lower()], word.isupper()) for place, word in enumerate(pattern)]


def slot(place: int) -> Slot:
    return (DeviceEntry(f"U{place}", "Ascend910B3", 1024 * (place + 1), place),)


def patterns(length: int) -> Iterator[str]:
    """Every pod of that many containers, each asking or not, init containers and sidecars first."""
    for inits in range(length + 1):
        for pattern in product(*(["iIsS"] * inits + ["aA"] * (length - inits))):
            yield "".join(pattern)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_r38_the_form_of_hami_gives_each_container_its_own_slot(length: int) -> None:
    for pattern in patterns(length):
        owners = owners_of(pattern)
        written = tuple(slot(place) if owner.asks else () for place, owner in enumerate(owners))
        matched = slots.match(owners, devices.decode(devices.encode(written)))
        assert matched == slots.Matched(written), pattern


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_r38_the_form_of_volcano_gives_each_app_container_that_asks_its_own_slot(length: int) -> None:
    for pattern in patterns(length):
        owners = owners_of(pattern)
        asks = [place for place, owner in enumerate(owners) if owner.asks and owner.kind is APP]
        matched = slots.match(owners, devices.decode(devices.encode(slot(place) for place in asks)))
        assert matched.containers == tuple(slot(p) if p in asks else () for p in range(length)), pattern


def test_r38_slots_past_the_last_container_are_ignored_with_a_warning() -> None:
    matched = slots.match(owners_of("aA"), devices.decode(";U,T,1,2:;;;"), "metadata.annotations[x]")
    assert [len(cards) for cards in matched.containers] == [0, 1]
    assert matched.warnings == (
        "metadata.annotations[x]: 4 slots for 2 containers; the empty ones at the end are ignored",
    )


def test_r38_missing_slots_are_empty() -> None:
    matched = slots.match(owners_of("AaA"), devices.decode("U,T,1,2:;"), "x")
    assert [len(cards) for cards in matched.containers] == [1, 0, 0]
    assert matched.warnings == ("x: container A2 asks for this chip and has no cards in it",)
    assert slots.match(owners_of("aA"), ()) == slots.Matched(((), ()))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a", "U,T,1,2:;"),  # nobody asks
        ("Aa", ";U,T,1,2:;"),  # for a container that does not ask
        ("A", ";U,T,1,2:;"),  # for no container at all
        ("aAA", "U,T,1,2:;;;V,T,1,2:;"),
        ("ia", "U,T,1,2:;"),
    ],
)
def test_cards_for_a_container_that_does_not_ask_are_an_error(pattern: str, text: str) -> None:
    with pytest.raises(AnnotationError, match=r"the pod asks for this chip in") as caught:
        slots.match(owners_of(pattern), devices.decode(text), "metadata.annotations[x]")
    assert caught.value.path == "metadata.annotations[x]"


def test_a_text_with_a_hole_that_means_two_things_is_an_error() -> None:
    # HAMi would mean the second container, Volcano the third.
    with pytest.raises(AnnotationError, match="one thing in HAMi's form and another in Volcano's"):
        slots.match(owners_of("aAA"), devices.decode(";U,T,1,2:;"))


def test_init_containers_that_ask_tell_the_forms_apart() -> None:
    one, two = devices.decode("U,T,1,2:;"), devices.decode("U,T,1,2:;V,T,1,2:;")
    volcano = slots.match(owners_of("IA"), one)
    assert [len(cards) for cards in volcano.containers] == [0, 1]
    assert "container I0 asks" in volcano.warnings[0]
    assert [cards[0].uuid for cards in slots.match(owners_of("IA"), two).containers] == ["U", "V"]
    assert [len(cards) for cards in slots.match(owners_of("Ia"), one).containers] == [1, 0]
