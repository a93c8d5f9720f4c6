from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chips import chip_named
from tests.support.golden import cases
from tests.support.objects import CHIP
from vnpu.annotations import register
from vnpu.cards import Card
from vnpu.errors import AnnotationError
from vnpu.quantity import INT32_MAX

B3 = chip_named(CHIP)
AMOUNTS = st.integers(0, INT32_MAX)
UUIDS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=",:;"), min_size=1)


@st.composite
def boards(draw: st.DrawFn) -> tuple[Card, ...]:
    uuids = draw(st.lists(UUIDS, min_size=1, max_size=8, unique=True))
    indexes = draw(st.lists(AMOUNTS, min_size=len(uuids), max_size=len(uuids), unique=True))
    return tuple(
        Card(
            uuid,
            index,
            B3.common_word,
            draw(AMOUNTS),
            draw(AMOUNTS),
            B3.ai_core,
            B3.ai_cpu,
            draw(st.booleans()),
            draw(st.none() | AMOUNTS),
        )
        for uuid, index in zip(uuids, indexes, strict=True)
    )


def cards_of(case: dict[str, Any]) -> tuple[Card, ...]:
    return tuple(Card(uuid, index, case["chip"], *amounts) for uuid, index, *amounts in case["cards"])


@pytest.mark.parametrize("case", cases("register", "upstream", "odd"))
def test_a_text_is_read(case: dict[str, Any]) -> None:
    assert register.decode(case["text"], chip_named(case["chip"])) == cards_of(case)


@pytest.mark.parametrize("case", cases("register", "upstream"))
def test_a_text_is_written_byte_for_byte(case: dict[str, Any]) -> None:
    chip = chip_named(case["chip"])
    assert register.encode(register.decode(case["text"], chip), chip, soft=case["soft"]) == case["text"]


@pytest.mark.parametrize("case", cases("register", "illegal"))
def test_an_illegal_text_is_refused_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(AnnotationError) as caught:
        register.decode(case["text"], chip_named(case["chip"]), "metadata.annotations[x]")
    assert caught.value.path == f"metadata.annotations[x]{case['at']}"


@pytest.mark.parametrize("text", ["[]", "null", " [ ] ", ":"])
def test_a_node_without_cards_is_told_apart(text: str) -> None:
    with pytest.raises(register.NoCardsError, match="the node has no Ascend910B3"):
        register.decode(text, B3)


def test_the_old_text_is_told_apart() -> None:
    assert register.is_legacy("u,4,65536,20,Ascend910B3,0,true:")
    assert not any(register.is_legacy(text) for text in (' [{"id":"u"}]', "{}", "null", None))


@given(cards=boards(), soft=st.booleans())
def test_what_is_written_is_read_back(*, cards: tuple[Card, ...], soft: bool) -> None:
    text = register.encode(cards, B3, soft=soft)
    assert register.decode(text, B3) == cards
    assert register.encode(register.decode(text, B3), B3, soft=soft) == text


@given(st.one_of(st.text(), st.text("u,4Ascend910B3:truef[]{}\"'1")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        cards = register.decode(text, B3)
    except AnnotationError:
        return
    assert cards
    assert register.decode(register.encode(cards, B3, soft=True), B3) == cards


def test_a_foreign_card_is_not_written() -> None:
    card = Card("u", 0, "Ascend910B4", 1, 1)
    with pytest.raises(AnnotationError, match="Ascend910B3 is expected"):
        register.encode([card], B3, soft=True)
    with pytest.raises(AnnotationError, match="UUID"):
        register.encode([Card("u,v", 0, "Ascend910B3", 1, 1)], B3, soft=True)
