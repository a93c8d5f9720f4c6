"""The laws of fit, on random nodes and pods, against an independent reference that tries every assignment."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support import brute_force
from tests.support.cluster_strategies import cases, clusters, grouped_cases, pods, riddles, smaller
from tests.support.examples import examples
from vnpu import names
from vnpu.allocation import binding_annotations
from vnpu.cards import NO_USE, Node, Use
from vnpu.chips import DEFAULT_CHIPS
from vnpu.containers import ContainerKind
from vnpu.fit.answers import NodeRefusal, Placement, Unplaced
from vnpu.fit.place import place
from vnpu.fit.plan import Workload, plan
from vnpu.fit.policy import DEFAULT_POLICY
from vnpu.fit.rules import fit
from vnpu.fit.scores import connection, node_load
from vnpu.holdings import held

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from vnpu.chips import Chip
    from vnpu.request import PodRequest

Case = tuple["PodRequest", Node, "Mapping[str, Use]"]
Cluster = tuple["Chip", tuple[Node, ...], "Mapping[str, Use]"]

PART = re.compile(r"(\d+)/(\d+) ([A-Za-z]+)")


def taken(used: Mapping[str, Use], placement: Placement) -> dict[str, Use]:
    after = dict(used)
    for uuid, use in placement.holds().items():
        after[uuid] = after.get(uuid, NO_USE).plus(use)
    return after


def bound(placement: Placement) -> dict[str, Any]:
    """The pod as the API server shows it once it is bound and runs."""
    spec: dict[str, Any] = {"nodeName": placement.node, "initContainers": [], "containers": []}
    for container in placement.pod.containers:
        entry: dict[str, Any] = {"name": container.name}
        if container.slice is not None:
            entry["resources"] = {"limits": {container.slice.chip.resource_name: container.slice.count}}
        if container.kind is ContainerKind.SIDECAR:
            entry["restartPolicy"] = "Always"
        spec["containers" if container.kind is ContainerKind.APP else "initContainers"].append(entry)
    annotations = {names.MODE: str(placement.pod.mode), **binding_annotations(placement, 1700000000)}
    return {
        "metadata": {"name": "pod", "namespace": "default", "annotations": annotations},
        "spec": spec,
        "status": {"phase": "Running"},
    }


@examples(60)
@given(st.one_of(cases(), riddles()))
def test_no_law_is_ever_broken(case: Case) -> None:
    pod, node, used = case
    answer = fit(pod, node, used)
    if isinstance(answer, Placement):
        assert brute_force.broken_law_of(answer, node, used) is None


@examples(120)
@given(st.one_of(cases(), riddles(), riddles()))
def test_a_pod_is_refused_only_where_no_assignment_holds_it(case: Case) -> None:
    pod, node, used = case
    assert isinstance(fit(pod, node, used), Placement) is brute_force.feasible(pod, node, used)


@examples(60)
@given(cases())
def test_what_a_placement_holds_stays_within_the_cards(case: Case) -> None:
    pod, node, used = case
    answer = fit(pod, node, used)
    if isinstance(answer, Placement):
        after = taken(used, answer)
        for card in node.cards:
            use = after.get(card.uuid, NO_USE)
            assert use.slots <= card.slots
            assert use.memory_mib <= card.memory_mib
            assert use.core_percent <= 100
            assert use.ai_core <= card.ai_core
            assert use.ai_cpu <= card.ai_cpu


@examples(60)
@given(cases())
def test_placing_and_releasing_changes_nothing(case: Case) -> None:
    pod, node, used = case
    answer = fit(pod, node, used)
    if isinstance(answer, Placement):
        after = taken(used, answer)
        for uuid, use in answer.holds().items():
            assert after[uuid] != used.get(uuid, NO_USE)
            assert after[uuid].minus(use) == used.get(uuid, NO_USE)


@examples(60)
@given(st.one_of(cases(), riddles()))
def test_the_ledger_reads_back_what_a_placement_holds(case: Case) -> None:
    pod, node, used = case
    answer = fit(pod, node, used)
    if isinstance(answer, Placement):
        assert held(bound(answer), DEFAULT_CHIPS) == answer.holds()


@examples(60)
@given(cases(), st.data())
def test_a_smaller_request_fits_where_a_larger_one_does(case: Case, data: st.DataObject) -> None:
    pod, node, used = case
    if isinstance(fit(pod, node, used), Placement):
        assert isinstance(fit(smaller(data.draw, pod), node, used), Placement)


@examples(60)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_cards_does_not_matter(case: Case, generator: random.Random) -> None:
    pod, node, used = case
    cards = list(node.cards)
    generator.shuffle(cards)
    shuffled = fit(pod, replace(node, cards=tuple(cards)), dict(reversed(used.items())))
    assert shuffled == fit(pod, node, used)


@examples(60)
@given(cases())
def test_a_refusal_counts_its_reasons_and_says_them_twice(case: Case) -> None:
    pod, node, used = case
    answer = fit(pod, node, used)
    if isinstance(answer, NodeRefusal):
        parts = [PART.fullmatch(part) for part in answer.text.split(", ")]
        assert answer.reasons
        assert {part[3]: int(part[1]) for part in parts if part} == dict(answer.reasons)
        assert all(part and 1 <= int(part[1]) <= int(part[2]) == answer.total for part in parts)
        assert parts == sorted(parts, key=lambda part: part[0] if part else "") or len(parts) < 2
        assert node.name in answer.message


@examples(60)
@given(grouped_cases())
def test_cards_in_groups_stay_together(case: Case) -> None:
    pod, node, used = case
    wanted = pod.containers[0].slice
    assert wanted is not None
    free = Counter(
        card.network_id
        for card in node.cards
        if used.get(card.uuid, NO_USE).memory_mib + wanted.memory_mib <= card.memory_mib
    )
    answer = fit(pod, node, used)
    if isinstance(answer, NodeRefusal):
        assert free.total() < wanted.count
        return
    groups = Counter(share.card.network_id for share in answer.containers[0].cards)
    holding = [size for size in free.values() if size >= wanted.count]
    if holding:
        assert [free[group] for group in groups] == [min(holding)]
    else:
        assert max(groups.values()) == max(free.values())


@examples(40)
@given(clusters(), st.data(), st.sampled_from(("binpack", "spread", "mutex")))
def test_the_best_node_is_taken(cluster: Cluster, data: st.DataObject, policy: str) -> None:
    of, nodes, used = cluster
    pod = data.draw(pods(of))
    pod = replace(pod, annotations={**pod.annotations, "hami.io/node-scheduler-policy": policy})
    sign = {"binpack": -1, "spread": 1, "mutex": 0}[policy]
    ranked = []
    for position, node in enumerate(nodes):
        placement = fit(pod, node, used)
        if isinstance(placement, Placement):
            joined = sum(connection(of, [share.card for share in entry.cards]) for entry in placement.containers)
            ranked.append((sign * node_load(node, used) - joined, position, placement))
    answer = place(pod, nodes, used)
    if ranked:
        assert answer == min(ranked, key=lambda entry: entry[:2])[2]
    else:
        assert isinstance(answer, Unplaced)
        assert list(answer.nodes) == [node.name for node in nodes]
        assert answer.reasons


@examples(40)
@given(clusters(), st.data())
def test_a_plan_is_pod_after_pod_and_gangs_are_all_or_none(cluster: Cluster, data: st.DataObject) -> None:
    of, nodes, used = cluster
    workloads = []
    for number in range(data.draw(st.integers(1, 4))):
        replica = data.draw(pods(of))
        count = data.draw(st.integers(1, 3))
        replicas = tuple(replace(replica, name=f"p{number}-{index}") for index in range(count))
        workloads.append(Workload(replicas, data.draw(st.integers(0, count))))
    answer = plan(workloads, nodes, used)

    expected: list[str] = []
    now = dict(used)
    for workload in workloads:
        before = dict(now)
        placed = []
        for pod in workload.pods:
            one = place(pod, nodes, now, DEFAULT_POLICY)
            if isinstance(one, Placement):
                now = taken(now, one)
                placed.append(pod.name)
        if len(placed) < workload.min_available:
            now = before
        else:
            expected += placed
    assert [placement.pod.name for placement in answer.placements] == expected
    every = [pod.name for workload in workloads for pod in workload.pods]
    assert [unplaced.pod.name for unplaced in answer.unplaced] == [name for name in every if name not in expected]
    for status in answer.cards:
        assert status.use == now.get(status.card.uuid, NO_USE)
        assert status.mode is status.use.mode
    assert [status.card for status in answer.cards] == [card for node in nodes for card in node.cards]
