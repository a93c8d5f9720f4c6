"""What ours writes, as HAMi, its device plugin and Volcano read it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import cluster
from tests.support.chips import chip_named
from tests.support.upstream_readers import (
    Read,
    hami_device_text,
    plugin_lock_owner,
    plugin_runtime_info,
    volcano_device_text,
    volcano_register,
)
from vnpu import names
from vnpu.allocation import binding_annotations
from vnpu.annotations import lock, register
from vnpu.annotations.lock import NodeLock
from vnpu.fit import fit
from vnpu.placement import Placement
from vnpu.request import ContainerRequest, PodRequest

SOFT = st.builds(cluster.soft, st.integers(1, 16384), st.integers(0, 20), st.integers(1, 2))
HARD = st.sampled_from([cluster.hard("vir05_1c_16g"), cluster.hard("vir10_3c_32g"), cluster.hard()])
PODS = st.one_of(st.lists(SOFT, min_size=1, max_size=3), st.lists(HARD, min_size=1, max_size=2)).map(
    lambda wanted: cluster.pod(*wanted)
)


def placed(request: PodRequest) -> tuple[Placement, dict[str, str]]:
    found = fit(request, cluster.node(), {})
    assert isinstance(found, Placement)
    return found, binding_annotations(found, 1)


def wanted(found: Placement) -> list[list[Read]]:
    return [
        [Read(one.card.uuid, one.card.chip, one.memory_mib, one.core_percent) for one in container.cards]
        for container in found.containers
    ]


@given(PODS)
def test_hami_reads_each_containers_cards(request: PodRequest) -> None:
    found, written = placed(request)
    *slots, behind = hami_device_text(written[names.allocated("Ascend910B3")])
    assert slots == wanted(found)
    assert behind == [], "the last separator leaves one empty container"


@given(PODS)
def test_volcano_reads_the_cards_of_the_first_container(request: PodRequest) -> None:
    found, written = placed(request)
    read = volcano_device_text(written[names.allocated("Ascend910B3")])
    first = wanted(found)[0]
    assert read[: len(first)] == first


def test_volcano_b4_books_no_card_of_a_later_container() -> None:
    """Why pods that our scheduler or HAMi's placed must not run on nodes where Volcano places too (docs/volcano.md)."""
    _, written = placed(cluster.pod(cluster.soft(8192, 20), cluster.soft(8192, 20)))
    second = volcano_device_text(written[names.allocated("Ascend910B3")])[1]
    assert second.uuid.startswith(";")
    behind_init = PodRequest(
        "team",
        "app",
        cluster.soft(1).mode,
        (cluster.init(None), ContainerRequest("main", cluster.container(None).kind, cluster.soft(8192, 20))),
        {},
    )
    _, written = placed(behind_init)
    assert volcano_device_text(written[names.allocated("Ascend910B3")])[0].uuid.startswith(";")


@given(PODS)
def test_the_device_plugin_of_hami_finds_every_card_and_its_template(request: PodRequest) -> None:
    found, written = placed(request)
    read = plugin_runtime_info(written[names.runtime_info("Ascend910B3")])
    shares = {one.card.uuid: one for container in found.containers for one in container.cards}
    assert read == {uuid: (one.template or "", one.memory_mib, one.core_percent) for uuid, one in shares.items()}


@pytest.mark.parametrize("word", ["Ascend910A", "Ascend910B3", "Ascend910B4-1", "Ascend310P", "Ascend910C"])
@pytest.mark.parametrize("soft", [True, False])
def test_schedulers_read_our_registration(word: str, *, soft: bool) -> None:
    chip = chip_named(word)
    cards = [cluster.card(index, chip, healthy=index != 1, network_id=index // 2) for index in range(4)]
    read = volcano_register(register.encode(cards, chip, soft=soft))
    assert [(one["id"], one["index"], one["count"], one["devmem"]) for one in read] == [
        (card.uuid, card.index, card.slots, card.memory_mib) for card in cards
    ]
    assert [one["health"] for one in read] == [card.healthy for card in cards]
    assert {one["type"] for one in read} == {word}
    assert {one["devcore"] for one in read} == {100 if soft else chip.ai_core}
    assert [one["custominfo"]["NetworkID"] for one in read] == [0, 0, 1, 1]


def test_the_device_plugin_of_hami_finds_the_owner_of_our_lock() -> None:
    text = lock.encode(NodeLock(datetime(2026, 11, 29, tzinfo=UTC), "team", "app-0"))
    assert plugin_lock_owner(text) == ("team", "app-0")
    assert plugin_lock_owner(lock.encode(NodeLock(datetime(2026, 11, 29, tzinfo=UTC)))) is None
