"""What holds for every plan, whatever the nodes and the manifests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.planner import run
from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.chips import DEFAULT_CHIPS
from vnpu.fit.answers import Reason

SCHEMA = json.loads((Path(__file__).parents[3] / "vnpu" / "fit" / "plan.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CHIPS = st.sampled_from(["Ascend910B3", "Ascend910B4", "Ascend310P"])

INVENTORIES = st.lists(
    st.fixed_dictionaries(
        {"chip": CHIPS, "cards": st.integers(1, 4)},
        optional={"soft": st.booleans(), "healthy": st.booleans(), "slots": st.integers(1, 12)},
    ),
    max_size=3,
).map(lambda nodes: {"nodes": [node | {"name": f"n{number}"} for number, node in enumerate(nodes)]})


@st.composite
def containers(draw: st.DrawFn) -> dict[str, Any]:
    chip = draw(st.none() | CHIPS)
    if chip is None:
        return {"name": draw(st.sampled_from("abc"))}
    limits = draw(
        st.fixed_dictionaries(
            {},
            optional={
                f"huawei.com/{chip}": st.integers(1, 3),
                f"huawei.com/{chip}-memory": st.sampled_from([1024, 8192, 16384, 30000, 70000]),
                f"huawei.com/{chip}-core": st.sampled_from([10, 50, 100]),
            },
        )
    )
    return {"name": draw(st.sampled_from("abc")), "resources": {"limits": limits}}


@st.composite
def manifests(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """A list of objects, and how many pods with an NPU come of it."""
    items = []
    npu_pods = 0
    for number in range(draw(st.integers(1, 5))):
        found = draw(st.lists(containers(), min_size=1, max_size=3))
        annotations = draw(st.sampled_from([{}, {"huawei.com/vnpu-mode": "hami-core"}]))
        template = {"metadata": {"annotations": annotations}, "spec": {"containers": found}}
        asks = any(container.get("resources", {}).get("limits") for container in found)
        replicas = draw(st.integers(0, 4))
        gang = draw(st.booleans())
        metadata = {"name": f"w{number}"}
        npu_pods += replicas * asks
        if gang:
            spec: dict[str, Any] = {"tasks": [{"name": "t", "replicas": replicas, "template": template}]}
            version, kind = "batch.volcano.sh/v1alpha1", "Job"
        else:
            spec, version, kind = {"replicas": replicas, "template": template}, "apps/v1", "Deployment"
        items.append({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
    return {"apiVersion": "v1", "kind": "List", "items": items}, npu_pods


@examples(40)
@given(INVENTORIES, manifests(), st.sampled_from(list(NodePolicy)), st.sampled_from(list(CardPolicy)))
def test_every_plan(
    tmp_path_factory: Any, inventory: dict[str, Any], asked: tuple[dict[str, Any], int], nodes: str, cards: str
) -> None:
    objects, npu_pods = asked
    path = tmp_path_factory.getbasetemp() / "nodes.json"
    path.write_text(json.dumps(inventory))
    arguments = ("--nodes", str(path), "-", "-o", "json", "--policy", nodes, "--card-policy", cards)
    found = run(*arguments, stdin=json.dumps(objects).encode())
    assert found.err == ""
    plan = json.loads(found.out)
    VALIDATOR.validate(plan)
    assert found == run(*arguments, stdin=json.dumps(objects).encode())
    assert found.code == (1 if plan["unplaced"] else 0)
    assert plan["policy"] == {"node": nodes, "card": cards}

    pods = [entry["pod"] for entry in (*plan["placements"], *plan["unplaced"])]
    assert len(pods) == len(set(pods)) == npu_pods
    for one in plan["unplaced"]:
        refused = one["reasons"] == {"Refused": 1}
        assert (
            refused or one["nodes"].keys() == {node["name"] for node in inventory["nodes"]} or "gang" in one["message"]
        )

    held: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    for placement in plan["placements"]:
        for container in placement["containers"]:
            uuids = [card["uuid"] for card in container["cards"]]
            assert len(uuids) == len(set(uuids))
            held.update({card["uuid"]: card["memory_mib"] for card in container["cards"]})
            slots.update(uuids)
    assert [card["uuid"] for card in plan["cards"]] == [
        f"{node['name']}-{index}" for node in inventory["nodes"] for index in range(node["cards"])
    ]
    for card in plan["cards"]:
        assert card["memory_used_mib"] == held[card["uuid"]] <= card["memory_mib"]
        assert card["slots_used"] == slots[card["uuid"]] <= card["slots"]
        assert card["core_used_percent"] <= 100
        assert (card["mode"] is None) == (card["slots_used"] == 0)


def test_the_schema_knows_every_reason_and_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["reason"]["enum"] == [str(reason) for reason in Reason]
    policies = SCHEMA["properties"]["policy"]["properties"]
    assert policies["node"]["enum"] == [str(policy) for policy in NodePolicy]
    assert policies["card"]["enum"] == [str(policy) for policy in CardPolicy]
    assert all(part.get("additionalProperties") is not None for part in objects_of(SCHEMA))


def objects_of(part: Any) -> list[dict[str, Any]]:
    """Every object in the schema."""
    if isinstance(part, list):
        return [one for entry in part for one in objects_of(entry)]
    if not isinstance(part, dict):
        return []
    own = [part] if part.get("type") == "object" else []
    return own + [one for entry in part.values() for one in objects_of(entry)]


def test_every_chip_can_be_planned() -> None:
    for chip in DEFAULT_CHIPS:
        name = chip.common_word
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "whole", "annotations": {"huawei.com/vnpu-mode": "template"}},
            "spec": {"containers": [{"name": "app", "resources": {"limits": {chip.resource_name: 1}}}]},
        }
        found = run("--card", f"{name}x4", "-", "-o", "json", stdin=json.dumps(pod).encode())
        assert (found.code, found.err) == (0, ""), name
        VALIDATOR.validate(json.loads(found.out))
