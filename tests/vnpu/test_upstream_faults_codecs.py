"""Faults of HAMi (D, A), its device plugin and Volcano that codecs, ledger and allocation do not share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support import api_rules
from tests.support.chips import chip_named
from tests.support.objects import CHIP, card, container, node, pod
from vnpu import names
from vnpu.allocation import HostPaths, binding_annotations, container_response
from vnpu.annotations import devices, lock, quotas, register, runtime_info
from vnpu.annotations.devices import DeviceEntry
from vnpu.annotations.lock import NodeLock
from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.cards import Card, Use
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import AnnotationError, InputError, RequestError
from vnpu.fit.plan import Workload, plan
from vnpu.holdings import cards_of, held
from vnpu.ledger import book, read_node
from vnpu.mode import Mode
from vnpu.placement import CardShare, ContainerPlacement, Placement
from vnpu.request import pod_request

B3 = chip_named(CHIP)
HOST = HostPaths(("/usr/local/Ascend/driver/version.info",), "/usr/local/hami-vnpu-core/1.0.0")


def env_of(document: dict[str, Any], name: str, mode: Mode = Mode.SOFT) -> dict[str, str]:
    cards = cards_of([document], document["metadata"]["uid"], name, B3)
    ids = {"U0": 0, "U1": 1, "U2": 2}
    response = container_response(cards, ids, mode, pod_uid=document["metadata"]["uid"], container=name, host=HOST)
    return dict(response.env)


def test_d09_a_card_of_a_chip_whose_name_begins_alike_is_not_read_as_the_other() -> None:
    text = '[{"id":"U0","count":4,"devmem":65536,"type":"Ascend910B4-1","health":true}]'
    with pytest.raises(AnnotationError, match="Ascend910B4 is expected"):
        register.decode(text, chip_named("Ascend910B4"))
    (found,) = register.decode(text, chip_named("Ascend910B4-1"))
    assert found.chip == "Ascend910B4-1"


def test_d13_nothing_is_written_for_chips_that_the_pod_does_not_ask_for() -> None:
    document = pod(container("app", count=1, memory=8192), node="")
    shares = (CardShare(Card("U0", 0, CHIP, 65536, 10), 8192, 0, None),)
    placement = Placement(pod_request(document, DEFAULT_CHIPS), "n1", (ContainerPlacement("app", shares),))
    written = binding_annotations(placement, 1)
    assert {key for key in written if "Ascend" in key} == {
        names.to_allocate(CHIP),
        names.allocated(CHIP),
        names.runtime_info(CHIP),
    }


def test_d13_what_hami_writes_for_pods_of_other_vendors_holds_nothing() -> None:
    document = pod(container("gpu"), text=";", info="null")
    assert held(document, DEFAULT_CHIPS) == {}


def test_d14_decoding_and_encoding_again_adds_no_separator() -> None:
    text = "A,T,1,2:;B,T,3,4:;"
    for _ in range(3):
        assert len(devices.decode(text)) == 2
        text = devices.encode(devices.decode(text))
    assert text == "A,T,1,2:;B,T,3,4:;"


def test_d15_garbage_is_an_error_and_no_empty_container() -> None:
    with pytest.raises(AnnotationError, match="uuid,chip,memory,core is expected"):
        devices.decode("garbage:;")


@pytest.mark.parametrize("network", ['"0"', "true", "{}", "[0]", "0.5", "-1"])
def test_a1_a_network_id_that_is_no_number_is_an_error_and_no_group_of_nothing(network: str) -> None:
    text = f'[{{"id":"U0","type":"{CHIP}","health":true,"custominfo":{{"NetworkID":{network}}}}}]'
    with pytest.raises(AnnotationError, match="the number of a group of cards is expected") as caught:
        register.decode(text, B3)
    assert caught.value.path == "[0].custominfo.NetworkID"
    found, _ = read_node(node(annotations={names.node_register(CHIP): text}), DEFAULT_CHIPS)
    assert "NetworkID" in found.unsafe


def test_a6_hard_slices_account_the_ai_cores_and_ai_cpus_of_their_templates() -> None:
    document = pod(mode="template", info='[{"UUID":"U0","temp":"vir05_1c_16g"}]')
    assert held(document, DEFAULT_CHIPS) == {"U0": Use(1, 16384, 0, 5, 1, Mode.HARD)}


def test_a7_a_node_name_too_long_for_a_label_is_written_whole_and_found_again() -> None:
    home = node(card("U0"), name=".".join(["n" * 50] * 4))
    document = pod(container("app", count=1, memory=8192), node="")
    shares = (CardShare(Card("U0", 0, CHIP, 65536, 10), 8192, 0, None),)
    placement = Placement(
        pod_request(document, DEFAULT_CHIPS), home["metadata"]["name"], (ContainerPlacement("app", shares),)
    )
    document["metadata"]["annotations"] |= binding_annotations(placement, 1)
    assert api_rules.faults(document) == []
    found, _ = read_node(home, DEFAULT_CHIPS)
    ledger = book([found], [document], DEFAULT_CHIPS)
    assert (ledger.used, ledger.nodes[0].unsafe) == ({"U0": Use(1, 8192, 0, 0, 0, Mode.SOFT)}, "")


def test_plugin_b1_two_containers_on_one_card_keep_their_own_quotas() -> None:
    document = pod(
        container("a", count=1, memory=8192, core=20),
        container("b", count=1, memory=4096, core=10),
        text="U0,Ascend910B3,8192,20:;U0,Ascend910B3,4096,10:;",
        info='[{"UUID":"U0","memory":8192,"core":20},{"UUID":"U0","memory":4096,"core":10}]',
    )
    assert [env_of(document, name)["NPU_MEM_QUOTA"] for name in "ab"] == ["8192", "4096"]
    assert [env_of(document, name)["NPU_PRIORITY"] for name in "ab"] == ["20", "10"]


def test_plugin_b1_two_hard_containers_on_one_card_keep_their_own_templates() -> None:
    document = pod(
        container("a", count=1, memory=16384),
        container("b", count=1, memory=32768),
        mode="template",
        text="U0,Ascend910B3,16384,0:;U0,Ascend910B3,32768,0:;",
        info='[{"UUID":"U0","temp":"vir05_1c_16g"},{"UUID":"U0","temp":"vir10_3c_32g"}]',
    )
    found = [env_of(document, name, Mode.HARD)["ASCEND_VNPU_SPECS"] for name in "ab"]
    assert found == ["vir05_1c_16g", "vir10_3c_32g"]


def test_plugin_b2_a_soft_container_with_several_cards_sees_all_of_them_and_one_quota_for_each() -> None:
    text = "U0,Ascend910B3,8192,20:U1,Ascend910B3,8192,20:;"
    env = env_of(pod(container("a", count=2, memory=8192, core=20), text=text), "a")
    assert (env["ASCEND_VISIBLE_DEVICES"], env["NPU_MEM_QUOTA"]) == ("0,1", "8192")


def test_plugin_b2_quotas_that_differ_between_cards_are_not_answered_with_the_first() -> None:
    text = "U0,Ascend910B3,8192,20:U1,Ascend910B3,4096,20:;"
    with pytest.raises(RequestError, match="the same memory and core of each of its cards"):
        env_of(pod(container("a", count=2, memory=8192, core=20), text=text), "a")


def test_plugin_b8_the_index_of_a_card_is_what_the_node_registered_not_its_place_in_the_list() -> None:
    cards = register.decode('[{"id":"V","index":3,"type":"Ascend910C"}]', chip_named("Ascend910C"))
    assert [card.index for card in cards] == [3]


def test_plugin_b10_npu_smi_is_mounted_where_it_was_found() -> None:
    host = HostPaths(("/usr/local/Ascend/driver/tools/npu-smi",), HOST.core_dir)
    cards = cards_of([pod(text="U0,Ascend910B3,8192,0:;")], "uid-app", "app", B3)
    response = container_response(cards, {"U0": 0}, Mode.SOFT, pod_uid="u", container="app", host=host)
    paths = {mount.host_path for mount in response.mounts}
    assert "/usr/local/Ascend/driver/tools/npu-smi" in paths
    assert "/usr/local/bin/npu-smi" not in paths


def test_plugin_b12_the_cards_of_a_container_are_its_own_not_the_pods() -> None:
    document = pod(
        container("a", count=1, memory=1024),
        container("b", count=1, memory=1024),
        init=(container("init", count=1, memory=512),),
        text="U2,Ascend910B3,512,0:;U0,Ascend910B3,1024,0:;U1,Ascend910B3,1024,0:;",
    )
    found = [[card.uuid for card in cards_of([document], "uid-app", name, B3)] for name in ("init", "a", "b")]
    assert found == [["U2"], ["U0"], ["U1"]]


def test_volcano_b2_a_memory_that_overflowed_is_refused_and_not_wrapped() -> None:
    for memory in ("2147483648", "4294967297", "-2147483648"):
        with pytest.raises(AnnotationError, match="a whole number from 0 to 2147483647"):
            devices.decode(f"U0,Ascend310P,{memory},0:;")


def test_volcano_b4_the_second_container_keeps_its_card() -> None:
    slots = devices.decode("U0,Ascend310P,8192,30:;U1,Ascend310P,4096,10:;")
    assert slots == ((DeviceEntry("U0", "Ascend310P", 8192, 30),), (DeviceEntry("U1", "Ascend310P", 4096, 10),))
    document = pod(
        container("a", chip="Ascend310P", count=1),
        container("b", chip="Ascend310P", count=1),
        chip="Ascend310P",
        text="U0,Ascend310P,8192,30:;U1,Ascend310P,4096,10:;",
    )
    assert held(document, DEFAULT_CHIPS).keys() == {"U0", "U1"}


@pytest.mark.parametrize("text", ["U0,Ascend910B3,-43054,0:;", "U0,Ascend910B3,0,-200:;"])
def test_volcano_b5_negative_numbers_free_nothing(text: str) -> None:
    found, _ = read_node(node(card("U0")), DEFAULT_CHIPS)
    ledger = book([found], [pod(text=text), pod(name="b", text="U0,Ascend910B3,60000,90:;")], DEFAULT_CHIPS)
    assert ledger.used == {"U0": Use(1, 60000, 90, 0, 0, Mode.SOFT)}
    assert "from 0 to 2147483647" in ledger.nodes[0].unsafe


@pytest.mark.parametrize("info", ['[{"UUID":"U0","memory":-1}]', '[{"UUID":"U0","core":-1}]'])
def test_volcano_b5_negative_numbers_in_the_json_free_nothing(info: str) -> None:
    with pytest.raises(AnnotationError, match="from 0 to 2147483647"):
        runtime_info.decode(info)


def test_volcano_b5_an_allocation_on_a_pod_that_asks_for_nothing_frees_nothing() -> None:
    found, _ = read_node(node(card("U0")), DEFAULT_CHIPS)
    ledger = book([found], [pod(container("web"), text="U0,Ascend910B3,8192,0:;")], DEFAULT_CHIPS)
    assert "in no container" in ledger.nodes[0].unsafe


def test_volcano_b6_a_gang_meets_on_one_node_whatever_its_lock_says() -> None:
    # Volcano takes the lock for the first pod of the gang, fails at the second, and gives the lock back to nobody.
    held_lock = lock.encode(NodeLock(datetime(2026, 8, 21, 12, 0, tzinfo=UTC)))
    found, warnings = read_node(node(card("U0"), annotations={names.NODE_LOCK: held_lock}), DEFAULT_CHIPS)
    pods = tuple(pod_request(pod(name=name, node=""), DEFAULT_CHIPS) for name in ("worker-0", "worker-1"))
    planned = plan([Workload(pods, min_available=2)], [found], {}, NodePolicy.BINPACK, CardPolicy.SPREAD)
    assert (found.unsafe, warnings) == ("", ())
    assert [placement.node for placement in planned.placements] == ["n1", "n1"]


def test_volcano_b6_a_lock_that_names_no_pod_leads_to_none_and_ends_by_itself() -> None:
    bare = lock.decode("2026-08-21T12:00:00Z")
    assert (bare.namespace, bare.pod) == ("", "")
    assert bare.expired(bare.time + timedelta(minutes=5, seconds=1))


def test_volcano_b11_the_health_of_a_card_is_read() -> None:
    found, _ = read_node(node(card("U0", health=False), card("U1", 1)), DEFAULT_CHIPS)
    assert [known.healthy for known in found.cards] == [False, True]


def test_volcano_b15_a_terminating_pod_still_holds_its_card() -> None:
    document = pod(text="U0,Ascend910B3,8192,20:;")
    document["metadata"]["deletionTimestamp"] = "2026-08-21T12:00:00Z"
    assert held(document, DEFAULT_CHIPS) == {"U0": Use(1, 8192, 20, 0, 0, Mode.SOFT)}


def test_volcano_b16_a_slice_is_booked_from_the_allocation_on_and_not_from_the_binding_on() -> None:
    found, _ = read_node(node(card("U0", count=1)), DEFAULT_CHIPS)
    chosen = pod(name="chosen", node="", phase="Pending", text="U0,Ascend910B3,8192,20:;")
    chosen["metadata"]["annotations"][names.ASSIGNED_NODE] = "n1"
    ledger = book([found], [chosen], DEFAULT_CHIPS)
    assert ledger.used == {"U0": Use(1, 8192, 20, 0, 0, Mode.SOFT)}
    late = pod_request(pod(name="late", node=""), DEFAULT_CHIPS)
    planned = plan([Workload((late,))], ledger.nodes, ledger.used, NodePolicy.BINPACK, CardPolicy.SPREAD)
    assert [unplaced.pod.name for unplaced in planned.unplaced] == ["late"]


def test_volcano_b17_each_card_of_a_soft_container_is_booked_in_full() -> None:
    text = "U0,Ascend910B3,8192,20:U1,Ascend910B3,8192,20:;"
    document = pod(container("a", count=2, memory=8192, core=20), text=text)
    share = Use(1, 8192, 20, 0, 0, Mode.SOFT)
    assert held(document, DEFAULT_CHIPS) == {"U0": share, "U1": share}


def test_volcano_b18_the_slot_of_a_container_behind_sidecars_has_the_right_name() -> None:
    document = pod(
        container("proxy"),
        container("app", count=1, memory=8192),
        init=(container("mesh", restartPolicy="Always"),),
        text="U0,Ascend910B3,8192,0:;",
        info='[{"UUID":"U0","memory":8192}]',
    )
    assert cards_of([document], "uid-app", "mesh", B3) == ()
    assert cards_of([document], "uid-app", "proxy", B3) == ()
    assert env_of(document, "app")["NPU_MEM_QUOTA"] == "8192"


def test_volcano_b19_r41_the_pod_is_found_by_uid_and_not_by_being_first() -> None:
    pulling = pod(name="pulling", phase="Pending", text="U0,Ascend910B3,8192,20:;")
    starting = pod(name="starting", phase="Pending", text="U1,Ascend910B3,4096,10:;")
    (found,) = cards_of([pulling, starting], "uid-starting", "app", B3)
    assert (found.uuid, found.memory_mib) == ("U1", 4096)
    with pytest.raises(InputError, match="exactly one match"):
        cards_of([pulling, starting], "", "app", B3)


def test_volcano_b21_a_soft_container_never_starts_without_a_quota() -> None:
    # Volcano's hard JSON has neither memory nor core; a newer plugin would start this pod softly on a soft node.
    document = pod(container("app", count=1), mode=None, info='[{"UUID":"U0","temp":"vir05_1c_16g"}]')
    with pytest.raises(RequestError, match="a soft slice needs its MiB"):
        env_of(document, "app", Mode.SOFT)
    assert held(document, DEFAULT_CHIPS)["U0"].mode is Mode.HARD


def test_the_quota_keys_of_hami_are_not_those_of_kubernetes() -> None:
    hard = {"limits.huawei.com/Ascend910B3-memory": "8192", "requests.huawei.com/Ascend910B3-memory": "4096"}
    found = {budget.enforcer: budget.amount for budget in quotas.budgets(hard, DEFAULT_CHIPS)}
    assert found == {quotas.Enforcer.HAMI: 8192, quotas.Enforcer.KUBERNETES: 4096}
