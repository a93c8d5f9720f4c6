"""What a pod asks of a node beside its cards, by the rules of Kubernetes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import objects
from tests.support.cluster import node
from tests.support.planner import run
from vnpu.errors import InputError
from vnpu.fit.terms import Surroundings, Taint, Terms, close, read_surroundings, read_terms

if TYPE_CHECKING:
    from pathlib import Path

LABELS = {"zone": "a", "gen": "3", "empty": ""}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def affinity(*terms: Any) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def obstacle(spec: dict[str, Any], labels: dict[str, str] | None = LABELS, *taints: Taint) -> str:
    return read_terms(spec).obstacle("n1", Surroundings(labels, taints))


@pytest.mark.parametrize(
    ("one", "matches"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "In", "b"), False),
        (expression("zone", "In"), False),
        (expression("none", "In", "a"), False),
        (expression("zone", "NotIn", "b"), True),
        (expression("zone", "NotIn", "a"), False),
        (expression("none", "NotIn", "a"), True),
        (expression("empty", "Exists"), True),
        (expression("none", "Exists"), False),
        (expression("none", "DoesNotExist"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("gen", "Gt", "2"), True),
        (expression("gen", "Gt", "3"), False),
        (expression("gen", "Gt", "-1"), True),
        (expression("gen", "Lt", "4"), True),
        (expression("gen", "Lt", "3"), False),
        (expression("zone", "Gt", "1"), False),
        (expression("gen", "Lt", "x"), False),
        (expression("gen", "Gt", "1", "2"), False),
        (expression("none", "Lt", "9"), False),
    ],
)
def test_the_operators_of_node_affinity(one: dict[str, Any], *, matches: bool) -> None:
    told = obstacle(affinity({"matchExpressions": [one]}))
    assert told == ("" if matches else "its labels match no term of the pod's required node affinity")


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        (
            [
                {"matchExpressions": [expression("zone", "In", "b")]},
                {"matchExpressions": [expression("gen", "Exists")]},
            ],
            True,
        ),
        ([{"matchExpressions": [expression("zone", "In", "a"), expression("none", "Exists")]}], False),
        ([{"matchFields": [expression("metadata.name", "In", "n1")]}], True),
        ([{"matchFields": [expression("metadata.name", "NotIn", "n1")]}], False),
        (
            [
                {
                    "matchFields": [expression("metadata.name", "In", "n1")],
                    "matchExpressions": [expression("zone", "In", "b")],
                }
            ],
            False,
        ),
        ([{}], False),
        ([{}, {"matchExpressions": [expression("zone", "Exists")]}], True),
    ],
)
def test_terms_are_alternatives_and_an_empty_one_matches_nothing(terms: list[Any], *, matches: bool) -> None:
    assert (obstacle(affinity(*terms)) == "") is matches


def test_preferences_keep_nobody_away() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}
    assert obstacle({"affinity": {"nodeAffinity": preferred}}) == ""
    assert obstacle({"affinity": None, "nodeSelector": None, "tolerations": None}) == ""


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ({}, ""),
        ({"zone": "a", "empty": ""}, ""),
        ({"zone": "b"}, 'its label zone is "a", and the pod\'s nodeSelector wants "b"'),
        ({"none": ""}, 'its label none is absent, and the pod\'s nodeSelector wants ""'),
    ],
)
def test_every_label_of_the_selector_must_be_there(selector: dict[str, str], told: str) -> None:
    assert obstacle({"nodeSelector": selector}) == told


def test_labels_that_nobody_told_keep_nobody_away() -> None:
    spec = {"nodeSelector": {"zone": "b"}, **affinity({"matchExpressions": [expression("zone", "In", "b")]})}
    assert obstacle(spec, None) == ""
    assert read_terms(spec).need_labels
    assert not read_terms({"tolerations": [{"operator": "Exists"}]}).need_labels


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        (None, Taint("npu", "a", "NoSchedule"), False),
        (None, Taint("npu", "a", "NoExecute"), False),
        (None, Taint("npu", "a", "PreferNoSchedule"), True),
        ({"key": "npu", "value": "a"}, Taint("npu", "a", "NoSchedule"), True),
        ({"key": "npu", "value": "b"}, Taint("npu", "a", "NoSchedule"), False),
        ({"key": "npu"}, Taint("npu", "", "NoSchedule"), True),
        ({"key": "npu", "operator": "Exists"}, Taint("npu", "a", "NoSchedule"), True),
        ({"key": "npu", "operator": "Equal", "value": "a"}, Taint("npu", "a", "NoExecute"), True),
        ({"key": "npu", "operator": "Exists", "effect": "NoExecute"}, Taint("npu", "a", "NoSchedule"), False),
        ({"operator": "Exists"}, Taint("npu", "a", "NoSchedule"), True),
        ({"operator": "Exists", "effect": "NoSchedule"}, Taint("npu", "a", "NoSchedule"), True),
        ({"value": ""}, Taint("npu", "", "NoSchedule"), False),
        ({"key": "other", "operator": "Exists"}, Taint("npu", "a", "NoSchedule"), False),
    ],
)
def test_taints_and_tolerations(toleration: dict[str, Any] | None, taint: Taint, *, tolerated: bool) -> None:
    told = obstacle({} if toleration is None else {"tolerations": [toleration]}, {}, taint)
    assert told == ("" if tolerated else f"its taint {taint} is not tolerated")


def test_taints_are_written_as_kubectl_writes_them() -> None:
    assert [str(Taint("npu", value, "NoSchedule")) for value in ("", "a")] == ["npu:NoSchedule", "npu=a:NoSchedule"]


def test_a_node_that_the_pod_names_is_the_only_one() -> None:
    assert obstacle({"nodeName": "n1"}) == ""
    assert obstacle({"nodeName": "n2"}) == "the pod names node n2"


def test_nodes_are_closed_to_the_pods_that_they_are_not_for() -> None:
    red, blue = (Terms(selector=(("zone", zone),)) for zone in ("red", "blue"))
    surroundings = {"a": Surroundings({"zone": "red"}), "b": Surroundings({"zone": "blue"}), "c": Surroundings()}
    closed = close([node("a"), node("b"), node("c")], surroundings, [red, blue, Terms()])
    assert [list(one.closed_to) for one in closed] == [[blue], [red], []]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"nodeSelector": {"a/b": 1}}, "spec.nodeSelector[a/b]"),
        ({"nodeSelector": []}, "spec.nodeSelector"),
        ({"nodeName": 7}, "spec.nodeName"),
        ({"tolerations": [7]}, "spec.tolerations[0]"),
        ({"tolerations": [{"operator": "Lt"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"effect": []}]}, "spec.tolerations[0].effect"),
        ({"affinity": {"nodeAffinity": []}}, "spec.affinity.nodeAffinity"),
        (affinity(), "nodeSelectorTerms"),
        (affinity(7), "nodeSelectorTerms[0]"),
        (affinity({"matchExpressions": [{"key": "a"}]}), "nodeSelectorTerms[0].matchExpressions[0].operator"),
        (
            affinity({"matchFields": [expression("a", "In") | {"values": [1]}]}),
            "nodeSelectorTerms[0].matchFields[0].values",
        ),
        (affinity({"matchExpressions": [expression("a", "in")]}), "nodeSelectorTerms[0].matchExpressions[0].operator"),
    ],
)
def test_a_field_without_its_shape_is_named(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        read_terms(spec)
    assert caught.value.path.startswith("spec.")
    assert caught.value.path.endswith(path)


def test_what_a_node_tells() -> None:
    document = {
        "metadata": {"labels": LABELS},
        "spec": {"taints": [{"key": "npu", "value": "a", "effect": "NoExecute"}]},
    }
    assert read_surroundings(document) == Surroundings(LABELS, (Taint("npu", "a", "NoExecute"),))
    assert read_surroundings({"metadata": {}, "spec": None}) == Surroundings({})
    for broken, path in (
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a"),
        ({"spec": {"taints": [{"key": 1}]}}, "spec.taints[0].key"),
    ):
        with pytest.raises(InputError) as caught:
            read_surroundings(broken)
        assert caught.value.path == path


def pods(*specs: dict[str, Any]) -> bytes:
    resources = {"limits": {"huawei.com/Ascend910B3-memory": 1000, "huawei.com/Ascend910B3-core": 10}}
    return "\n---\n".join(
        json.dumps(
            {
                "kind": "Pod",
                "metadata": {"name": f"pod-{number}"},
                "spec": {"containers": [{"name": "app", "resources": resources}], **spec},
            }
        )
        for number, spec in enumerate(specs)
    ).encode()


def test_a_plan_keeps_pods_from_nodes_that_are_not_for_them(tmp_path: Path) -> None:
    files = []
    for name, zone, taints in (("a", "red", []), ("b", "blue", [{"key": "npu", "effect": "NoSchedule"}])):
        found = objects.node(objects.card(f"U-{name}"), name=name)
        found["metadata"]["labels"] = {"zone": zone}
        found["spec"] = {"taints": taints}
        (tmp_path / name).write_text(json.dumps(found))
        files += ["--nodes", str(tmp_path / name)]
    tolerant = {"tolerations": [{"key": "npu", "operator": "Exists"}]}
    specs: tuple[dict[str, Any], ...] = (
        {},
        {"nodeSelector": {"zone": "blue"}},
        {"nodeSelector": {"zone": "blue"}, **tolerant},
        {"nodeSelector": {"zone": "green"}, **tolerant},
    )
    found = json.loads(run(*files, "-", "-o", "json", "--explain", "pod-3", stdin=pods(*specs)).out)
    assert {one["pod"]: one["node"] for one in found["placements"]} == {"default/pod-0": "a", "default/pod-2": "b"}
    refused = {one["pod"]: one for one in found["unplaced"]}
    assert list(refused) == ["default/pod-1", "default/pod-3"]
    assert refused["default/pod-1"]["reasons"] == {"NodeNotEligible": 2}
    assert refused["default/pod-1"]["nodes"] == {"a": "1/1 NodeNotEligible", "b": "1/1 NodeNotEligible"}
    wants = 'its label zone is "red", and the pod\'s nodeSelector wants'
    assert refused["default/pod-1"]["message"].endswith(f'a is not for this pod: {wants} "blue"')
    (explanation,) = found["explanations"]
    assert [card["detail"].partition(" is ")[0] for card in explanation["cards"]] == ["a", "b"]
    assert {card["reason"] for card in explanation["cards"]} == {"NodeNotEligible"}
    assert found["warnings"] == []


def test_what_is_not_looked_at_because_nobody_told_it_is_said(tmp_path: Path) -> None:
    labelled = {"nodes": [{"name": "i", "chip": "Ascend910B3", "cards": 1, "soft": True, "labels": {"zone": "red"}}]}
    (tmp_path / "nodes").write_text(json.dumps(labelled))
    options = ("--nodes", str(tmp_path / "nodes"), "--card", "Ascend910B3", "-", "-o", "json")
    found = json.loads(run(*options, stdin=pods({"nodeSelector": {"zone": "blue"}})).out)
    assert [one["node"] for one in found["placements"]] == ["node-0"]
    assert found["warnings"] == [
        "nodeSelector and node affinity are not looked at on nodes whose labels are not told: node-0"
    ]
    assert json.loads(run(*options, stdin=pods({})).out)["warnings"] == []
