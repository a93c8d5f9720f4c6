"""Two extenders in a world where everything goes wrong: no share is owned twice, and none is lost."""

from __future__ import annotations

import random

import pytest

from tests.support.extender_world import World, unserved
from vnpu import ledger
from vnpu.admission.settings import DevicePlugin
from vnpu.cards import NO_USE
from vnpu.chips import DEFAULT_CHIPS
from vnpu.fit.answers import Placement
from vnpu.fit.place import place
from vnpu.kube import NODES, PODS
from vnpu.request import pod_request

STEPS = 2000
SEEDS = range(8)


@pytest.mark.parametrize("plugin", DevicePlugin)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_share_is_owned_twice_and_none_is_lost(seed: int, plugin: DevicePlugin) -> None:
    world = World(random.Random(seed), plugin)
    for _ in range(STEPS):
        world.step()
    assert world.counts["Bind"] >= 1, "pods get bound all the same"
    world.calm()
    nothing_is_lost(world)
    everything_that_fits_comes_in(world)


def nothing_is_lost(world: World) -> None:
    """What the extenders know is what the annotations say."""
    nodes = [ledger.read_node(node, DEFAULT_CHIPS)[0] for node in world.objects(NODES)]
    books = ledger.book(nodes, world.objects(PODS), DEFAULT_CHIPS)
    for extender in world.extenders:
        assert not extender.state.assumed
        index = extender.state.index
        assert {node.name: node for node in index.nodes} == {node.name: node for node in books.nodes}
        for node in nodes:
            for card in node.cards:
                assert index.held(card.uuid) == books.used.get(card.uuid, NO_USE)


def everything_that_fits_comes_in(world: World) -> None:
    """No turn is stuck, no lock stays: as long as a pod fits anywhere, it gets bound."""
    for pod in world.objects(PODS):
        if pod["metadata"].get("deletionTimestamp"):
            world.delete(pod)
    for _ in range(40):
        for pod in world.objects(PODS):
            if unserved(pod):
                world.serve(pod)
        for extender in world.extenders:
            world.catch_up(extender)
        nodes = [ledger.read_node(node, DEFAULT_CHIPS)[0] for node in world.objects(NODES)]
        books = ledger.book(nodes, world.objects(PODS), DEFAULT_CHIPS)
        waiting = [pod for pod in world.objects(PODS) if not pod["spec"].get("nodeName")]
        fitting = [
            pod
            for pod in waiting
            if isinstance(place(pod_request(pod, DEFAULT_CHIPS), books.nodes, books.used), Placement)
        ]
        if not fitting:
            return
        extender = world.chance.choice(world.extenders)
        assert world.schedule(extender, fitting[0])
        world.run(extender)
        assert world.store.objects[PODS, "team", fitting[0]["metadata"]["name"]]["spec"].get("nodeName"), world.said[
            -3:
        ]
    raise AssertionError("pods are bound without end")
