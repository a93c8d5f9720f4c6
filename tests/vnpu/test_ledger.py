from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects import CHIP, card, container, node, pod
from vnpu import names
from vnpu.annotations import devices, runtime_info
from vnpu.cards import Card, Node, Use
from vnpu.chips import DEFAULT_CHIPS, ChipTable
from vnpu.errors import InputError
from vnpu.ledger import Ledger, book, read_node
from vnpu.mode import Mode

TEXT = "U0,Ascend910B3,8192,20:;"
SLICE = Use(1, 8192, 20, 0, 0, Mode.SOFT)
SOFT_TABLE = ChipTable(DEFAULT_CHIPS.chips, soft_nodes_by_default=True)
REGISTER = f"metadata.annotations[{names.node_register(CHIP)}]"


def read(document: dict[str, Any], chips: ChipTable = DEFAULT_CHIPS) -> Node:
    found, warnings = read_node(document, chips)
    assert warnings == ()
    return found


def booked(nodes: list[dict[str, Any]], *pods: dict[str, Any]) -> Ledger:
    return book([read(document) for document in nodes], pods, DEFAULT_CHIPS)


# ---- Nodes


def test_the_cards_of_a_node_are_sorted_by_index() -> None:
    found = read(node(card("V", 1, custominfo={"NetworkID": 1}), card("U", 0, health=False)))
    assert found == Node(
        "n1",
        (
            Card("U", 0, CHIP, 65536, 10, 20, 7, healthy=False),
            Card("V", 1, CHIP, 65536, 10, 20, 7, network_id=1),
        ),
        soft=True,
    )


def test_a_node_without_cards_is_a_node_too() -> None:
    assert read(node(offered=None)) == Node("n1", (), soft=True)
    assert read({"metadata": {"name": "plain"}}) == Node("plain", ())


@pytest.mark.parametrize(
    ("mark", "by_default", "soft"),
    [
        ("true", False, True),
        ("true", True, True),
        ("false", True, False),
        ("True", True, False),
        ("", True, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_a_node_is_soft_by_its_annotation_else_by_the_config(*, mark: str | None, by_default: bool, soft: bool) -> None:
    document = node(card("U"))
    del document["metadata"]["annotations"][names.SOFT_NODE]
    if mark is not None:
        document["metadata"]["annotations"][names.SOFT_NODE] = mark
    assert read(document, SOFT_TABLE if by_default else DEFAULT_CHIPS).soft is soft


def test_the_ai_cores_come_from_the_chip_table_not_from_the_percent_of_a_soft_node() -> None:
    (found,) = read(node(card("U", devcore=100))).cards
    assert (found.ai_core, found.ai_cpu) == (20, 7)


def test_cordoned_cards_are_named() -> None:
    document = node(card("U"), card("V", 1), annotations={names.CORDON: " V , W,"})
    found, warnings = read_node(document, DEFAULT_CHIPS)
    assert found.cordoned == {"V", "W"}
    assert found.unsafe == ""
    assert warnings == ("node n1: metadata.annotations[huawei.com/vnpu-cordon]: the node has no card W",)


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({names.node_register(CHIP): "garbage"}, f'{REGISTER}: "garbage": a JSON array of cards is expected'),
        ({names.node_register(CHIP): '[{"id":"U","type":"Ascend910B4"}]'}, f'{REGISTER}[0].type: "Ascend910B4": '),
        ({names.CORDON: "U,,V"}, "metadata.annotations[huawei.com/vnpu-cordon]: "),
        ({names.CORDON: 7}, "metadata.annotations[huawei.com/vnpu-cordon]: 7: a text is expected"),
    ],
)
def test_an_annotation_that_cannot_be_used_makes_the_node_unsafe(annotations: dict[str, Any], reason: str) -> None:
    assert read(node(card("U"), annotations=annotations)).unsafe.startswith(reason)


def test_a_card_that_is_registered_under_two_chips_makes_the_node_unsafe() -> None:
    twice = {names.node_register("Ascend910B2"): '[{"id":"U","index":1,"type":"Ascend910B2"}]'}
    document = node(card("U"), annotations=twice)
    document["status"]["allocatable"]["huawei.com/Ascend910B2"] = "8"
    assert read(document).unsafe == "one card is registered under two chips"


def test_one_bad_chip_leaves_the_cards_of_the_other_visible() -> None:
    found = read(node(card("U"), annotations={names.node_register("Ascend310P"): "garbage"}))
    assert [known.uuid for known in found.cards] == ["U"]
    assert "node-register-Ascend310P" in found.unsafe


@pytest.mark.parametrize("offered", [None, "0", 0])
def test_cards_of_which_kubelet_offers_none_are_unhealthy(offered: object) -> None:
    found, warnings = read_node(node(card("U"), offered=offered), DEFAULT_CHIPS)
    assert [known.healthy for known in found.cards] == [False]
    assert warnings == ("node n1: kubelet offers no huawei.com/Ascend910B3: all its cards count as unhealthy",)


@pytest.mark.parametrize("offered", ["4", 4, "1k"])
def test_an_offer_in_any_spelling_counts(offered: object) -> None:
    assert read(node(card("U"), offered=offered)).cards[0].healthy


@pytest.mark.parametrize("offered", ["many", "-1", "0.5", []])
def test_an_offer_that_is_no_count_makes_the_node_unsafe(offered: object) -> None:
    assert read(node(card("U"), offered=offered)).unsafe.startswith("status.allocatable[huawei.com/Ascend910B3]: ")


def test_volcano_b3_a_node_that_offers_cards_that_nobody_registered_is_named() -> None:
    found, warnings = read_node(node(), DEFAULT_CHIPS)
    assert found.cards == ()
    assert warnings == (
        f"node n1: {REGISTER}: absent, though kubelet offers 40 huawei.com/Ascend910B3: no card is known",
    )


def test_an_empty_register_is_no_fault() -> None:
    found, warnings = read_node(node(offered=None, annotations={names.node_register(CHIP): "[]"}), DEFAULT_CHIPS)
    assert (found.cards, found.unsafe) == ((), "")
    assert warnings == (f'node n1: {REGISTER}: "[]": the node has no Ascend910B3: at least one card is expected',)


def test_r40_both_forms_of_the_register_say_the_same_and_the_old_one_is_warned_of() -> None:
    new = read(node(card("U", 0), card("V", 1, health=False)))
    old = "U,10,65536,100,Ascend910B3,0,true,0,hami-core:V,10,65536,100,Ascend910B3,0,false,1,hami-core:"
    found, warnings = read_node(node(annotations={names.node_register(CHIP): old}), DEFAULT_CHIPS)
    assert found == new
    assert warnings == (f"node n1: {REGISTER}: the comma text of older device plugins; Volcano does not read it",)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": None},
        {"metadata": []},
        {"metadata": {}},
        {"metadata": {"name": ""}},
        {"metadata": {"name": 7}},
        {"metadata": {"name": "n", "annotations": []}},
    ],
)
def test_what_is_no_node_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read_node(document, DEFAULT_CHIPS)


@pytest.mark.parametrize("status", [[], {"allocatable": 7}])
def test_a_status_of_another_shape_makes_the_node_unsafe(status: object) -> None:
    assert "a mapping is expected" in read(node(card("U")) | {"status": status}).unsafe


# ---- Books


def test_pods_are_booked_on_their_cards() -> None:
    found = booked(
        [node(card("U0"), card("U1", 1)), node(card("W"), name="n2")],
        pod(text=TEXT, name="a"),
        pod(text=TEXT, name="b"),
        pod(text="W,Ascend910B3,1024,0:;", name="c", node="n2"),
        pod(text="U1,Ascend910B3,1024,0:;", name="d", phase="Succeeded"),
        pod(node="", name="waiting"),
    )
    assert found.used == {"U0": Use(2, 16384, 40, 0, 0, Mode.SOFT), "W": Use(1, 1024, 0, 0, 0, Mode.SOFT)}
    assert found.warnings == ()
    assert [known.unsafe for known in found.nodes] == ["", ""]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            {"text": "garbage:;"},
            'pod team/bad: metadata.annotations[hami.io/Ascend910B3-devices-allocated][0][0]: "garbage": uuid,',
        ),
        (
            {"info": '[{"UUID":"U0","memory":"x"}]'},
            'pod team/bad: metadata.annotations[huawei.com/Ascend910B3][0].memory: "x": a whole number',
        ),
        (
            {"text": TEXT, "info": '[{"UUID":"U1"}]'},
            'pod team/bad: metadata.annotations[huawei.com/Ascend910B3]: "U0": hami.io/Ascend910B3-devices-allocated',
        ),
        ({}, "pod team/bad: metadata.annotations[hami.io/Ascend910B3-devices-allocated]: absent: the pod is bound"),
        ({"text": "GONE,Ascend910B3,1,0:;"}, "pod team/bad holds card GONE, which no known node has"),
    ],
)
def test_r34_a_pod_that_cannot_be_booked_makes_its_node_unsafe_and_only_its_node(
    fault: dict[str, Any], reason: str
) -> None:
    found = booked(
        [node(card("U0")), node(card("W"), name="n2")],
        pod(name="bad", **fault),
        pod(text="W,Ascend910B3,1024,0:;", name="good", node="n2"),
    )
    assert found.nodes[0].unsafe.startswith(reason)
    assert found.nodes[1].unsafe == ""
    assert found.warnings == (f"node n1 is unsafe: {found.nodes[0].unsafe}",)
    assert found.used == {"W": Use(1, 1024, 0, 0, 0, Mode.SOFT)}


def test_the_first_of_many_reasons_is_shown_and_all_are_warned_of() -> None:
    pods = [pod(name=name, text="garbage") for name in "abc"]
    found = booked([node(card("U0"))], *pods)
    assert found.nodes[0].unsafe.startswith("pod team/a: ")
    assert found.nodes[0].unsafe.endswith(" (and 2 more)")
    assert [warning.split(":")[1].strip() for warning in found.warnings] == ["pod team/a", "pod team/b", "pod team/c"]


def test_a_node_that_was_unsafe_stays_so() -> None:
    unsafe = read(node(card("U0"), annotations={names.CORDON: ",,"}))
    found = book([unsafe], [pod(text="garbage")], DEFAULT_CHIPS)
    assert found.nodes[0].unsafe.startswith(unsafe.unsafe + "; pod team/app: ")


def test_a_promised_pod_is_booked_where_the_scheduler_sent_it() -> None:
    promised: dict[str, Any] = {"node": "", "annotations": {names.ASSIGNED_NODE: "n1"}}
    assert booked([node(card("U0"))], pod(text=TEXT, **promised)).used == {"U0": SLICE}
    assert booked([node(card("U0"))], pod(text="garbage", **promised)).nodes[0].unsafe


def test_a_pod_that_names_no_node_is_warned_of() -> None:
    found = booked([node(card("U0"))], pod(text="garbage", node=""), pod(text="GONE,Ascend910B3,1,0:;", node=""))
    assert found.nodes[0].unsafe == ""
    assert [warning.rpartition("; ")[2] for warning in found.warnings] == ["it names no node"] * 2
    assert booked([node(card("U0"))], pod(text=TEXT, node="")).used == {"U0": SLICE}


def test_pods_of_nodes_that_are_not_given_are_counted_and_change_nothing() -> None:
    found = booked(
        [node(card("U0"))],
        pod(text="garbage", node="elsewhere"),
        pod(text="W,Ascend910B3,1,0:;", node="elsewhere"),
        pod(text="X,Ascend910B3,1,0:;", node="n9"),
        pod(text="Y,Ascend910B3,1,0:;", node="n8", phase="Succeeded"),
        pod(container("app"), node="n7"),
    )
    warning = "3 running pods hold NPUs on nodes that are not listed: elsewhere, n9"
    assert (found.used, found.warnings, found.nodes[0].unsafe) == ({}, (warning,), "")


def test_of_many_nodes_that_are_not_given_a_few_are_named() -> None:
    pods = [pod(text="W,Ascend910B3,1,0:;", node=f"n{number}") for number in (5, 4, 3, 2)]
    assert booked([], *pods).warnings == (
        "4 running pods hold NPUs on nodes that are not listed: n2, n3, n4 and 1 more",
    )
    assert booked([], pods[0]).warnings == ("1 running pod holds NPUs on nodes that are not listed: n5",)


def test_a_card_of_another_node_is_held_and_makes_the_pods_node_unsafe() -> None:
    nodes = [node(card("U0")), node(card("W"), name="n2")]
    found = booked(nodes, pod(text=TEXT, node="n2"))
    assert found.used == {"U0": SLICE}
    assert [known.unsafe for known in found.nodes] == ["", "pod team/app is on n2 and holds card U0 of n1"]
    strange = booked(nodes, pod(text=TEXT, node="elsewhere"))
    assert strange.nodes[0].unsafe == "pod team/app is on elsewhere and holds card U0 of n1"


def test_a_card_held_as_another_chip_makes_its_node_unsafe() -> None:
    asks = container("app", chip="Ascend910B2", count=1)
    found = booked([node(card("U0"))], pod(asks, chip="Ascend910B2", text="U0,Ascend910B2,8192,20:;"))
    assert found.nodes[0].unsafe == "pod team/app holds card U0 as Ascend910B2, and it is Ascend910B3"
    assert found.used == {"U0": SLICE}


def test_a_card_that_two_nodes_register_makes_both_unsafe() -> None:
    found = booked([node(card("U0")), node(card("U0"), name="n2"), node(card("W"), name="n3")])
    assert [known.unsafe for known in found.nodes] == ["card U0 is registered by n1 and n2"] * 2 + [""]


@pytest.mark.parametrize(
    ("first", "second", "excess"),
    [
        ("U0,Ascend910B3,40000,0:;", "U0,Ascend910B3,40000,0:;", "80000 of 65536 MiB"),
        ("U0,Ascend910B3,1,60:;", "U0,Ascend910B3,1,60:;", "120 of 100 percent"),
        ("U0,Ascend910B3,70000,101:;", "U0,Ascend910B3,1,0:;", "70001 of 65536 MiB, 101 of 100 percent"),
    ],
)
def test_an_overbooked_card_is_warned_of_and_has_nothing_free(first: str, second: str, excess: str) -> None:
    found = booked([node(card("U0"))], pod(text=first, name="a"), pod(text=second, name="b"))
    assert found.warnings == (f"node n1: card U0 is over-booked ({excess}) and takes no new slice",)
    assert found.used["U0"].slots == 10
    assert found.nodes[0].unsafe == ""


def test_more_slices_than_slots_are_over_booked_and_counted() -> None:
    pods = [pod(text="U0,Ascend910B3,1,0:;", name=name) for name in "abc"]
    found = booked([node(card("U0", count=2))], *pods)
    assert found.warnings == ("node n1: card U0 is over-booked (3 of 2 slots) and takes no new slice",)
    assert found.used["U0"].slots == 3


@pytest.mark.parametrize("hard_first", [True, False])
def test_d11_hard_beside_soft_slices_are_over_booked(*, hard_first: bool) -> None:
    hard = pod(text="U0,Ascend910B3,16384,0:;", info='[{"UUID":"U0","temp":"vir05_1c_16g"}]', mode="template")
    pods = [pod(text=TEXT), hard]
    found = booked([node(card("U0"))], *(reversed(pods) if hard_first else pods))
    assert found.warnings == ("node n1: card U0 is over-booked (hard beside soft slices) and takes no new slice",)
    assert found.used["U0"].slots == 10


def test_a6_the_ai_cpus_of_templates_are_counted() -> None:
    info = '[{"UUID":"U0","temp":"vir03_1c_8g"}]'
    asks = container("app", chip="Ascend910B2", count=1)
    pods = [
        pod(asks, name=f"p{i}", chip="Ascend910B2", text="U0,Ascend910B2,8192,0:;", info=info, mode="template")
        for i in range(8)
    ]
    found = booked([node(card("U0", type="Ascend910B2"), chip="Ascend910B2")], *pods)
    assert found.warnings == ("node n1: card U0 is over-booked (8 of 6 AI CPUs) and takes no new slice",)


def test_warnings_name_the_pod() -> None:
    found = booked([node(card("U0"))], pod(text=TEXT + ";"))
    (warning,) = found.warnings
    assert warning.startswith(
        "pod team/app: metadata.annotations[hami.io/Ascend910B3-devices-allocated]: 2 slots for 1"
    )


@pytest.mark.parametrize("metadata", [None, [], {"name": 7}, {"annotations": "x"}])
def test_no_pod_raises(metadata: object) -> None:
    broken = pod() | {"metadata": metadata}
    assert booked([node(card("U0"))], broken).nodes[0].unsafe
    assert booked([node(card("U0"))], {"spec": []}).nodes[0].unsafe == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


ANNOTATIONS = st.dictionaries(st.sampled_from([names.allocated(CHIP), names.runtime_info(CHIP), names.MODE]), JSON)
FIELDS = st.sampled_from(["annotations", "nodeName", "containers", "initContainers", "phase", "name"])
SECTIONS = st.sampled_from(["metadata", "spec", "status"])


@given(st.dictionaries(SECTIONS, JSON | st.dictionaries(FIELDS, JSON | ANNOTATIONS)))
def test_whatever_a_pod_looks_like_the_books_are_kept(document: dict[str, Any]) -> None:
    found = booked([node(card("U0"))], document, pod(text=TEXT))
    assert found.used["U0"].slots >= 1


def test_each_text_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[object] = []
    for codec in (devices, runtime_info):

        def counted(value: object, path: str = "", decode: Any = codec.decode) -> object:
            texts.append(value)
            return decode(value, path)

        monkeypatch.setattr(codec, "decode", counted)
    infos = [f'[{{"UUID":"U{i}","memory":{i + 1}}}]' for i in range(8)]
    pods = [pod(name=f"p{i}", text=f"U{i},Ascend910B3,{i + 1},0:;", info=infos[i]) for i in range(8)]
    found = booked([node(*(card(f"U{i}", i) for i in range(8)))], *pods)
    assert len(found.used) == 8
    assert sorted(map(str, texts)) == sorted([f"U{i},Ascend910B3,{i + 1},0:;" for i in range(8)] + infos)
