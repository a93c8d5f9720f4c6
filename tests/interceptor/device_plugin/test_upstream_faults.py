"""The faults of HAMi's device plugin 1.4, one by one: what it does wrong, and that ours is right."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from interceptor.device_plugin import __main__ as command_line
from interceptor.device_plugin import inventory as offers
from interceptor.device_plugin.host import Host
from interceptor.device_plugin.plugin import Plugin, Setup
from interceptor.device_plugin.service import Board
from interceptor.device_plugin.settings import NodeSettings, parse
from interceptor.devices import machine_of
from tests.support import native
from tests.support.containers import eventually
from tests.support.device_plugin import B3, Bench, asking, device, inventory, waiting
from tests.support.node_object import annotations, capacity, events
from tests.support.objects import CHIP
from tests.support.simulated_npu import MIB, flag
from vnpu import device_config, kube, names
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.api_stand_in import ApiStandIn
    from tests.support.kubelet import Kubelet, PluginProcess, PluginThread
    from tests.support.simulated_npu import Machine

ONE = f"U0,{CHIP},8192,20:;"
DEVICE_CONFIG = """
vnpus:
  hamiVnpuCore: {}
  configs:
  - commonWord: Ascend910B3
    chipName: 910B3
    resourceName: huawei.com/Ascend910B3
    memoryAllocatable: 65536
    memoryCapacity: 65536
"""
RESOURCE_MEMORY = f"huawei.com/{CHIP}-memory"


def test_plugin_b1_two_containers_on_one_card_keep_their_own_quotas(bench: Bench) -> None:
    text = f"U0,{CHIP},8192,20:;U0,{CHIP},4096,10:;"
    info = '[{"UUID":"U0","memory":8192,"core":20},{"UUID":"U0","memory":4096,"core":10}]'
    bench.put(waiting("app", text, asking("first"), asking("second"), info=info))
    quotas = [bench.allocate().env for _ in range(2)]
    assert [(env[names.ENV_MEMORY], env[names.ENV_PRIORITY]) for env in quotas] == [("8192", "20"), ("4096", "10")]
    files = [
        json.loads(bench.tree.at(names.quota_host(bench.uid("app"), name)).read_text()) for name in ("first", "second")
    ]
    assert [file["memory_mib"] for file in files] == [8192, 4096]


def test_plugin_b1_two_hard_slices_of_one_card_keep_their_own_templates(bench: Bench) -> None:
    text = f"U0,{CHIP},16384,0:;U0,{CHIP},32768,0:;"
    info = '[{"UUID":"U0","temp":"vir05_1c_16g"},{"UUID":"U0","temp":"vir10_3c_32g"}]'
    bench.put(waiting("app", text, asking("first"), asking("second"), mode="template", info=info))
    specs = [bench.allocate().env[names.ENV_VNPU_SPECS] for _ in range(2)]
    assert specs == ["vir05_1c_16g", "vir10_3c_32g"]


def test_plugin_b2_a_container_with_two_cards_has_its_quota_on_each_and_both_registries(bench: Bench) -> None:
    bench.put(waiting("app", f"U1,{CHIP},8192,20:U0,{CHIP},8192,20:;", asking(count=2)))
    response = bench.allocate(2)
    assert response.env[names.ENV_VISIBLE_DEVICES] == "1,0"
    assert response.env[names.ENV_MEMORY] == "8192"
    assert response.env[names.ENV_PRIORITY] == "20"
    shared = [mount for mount in response.mounts if mount.container_path == names.SHARED_REGION]
    assert [(mount.host_path, mount.read_only) for mount in shared] == [(names.SHARED_REGION_HOST, False)]
    assert response.env[names.ENV_GLOBAL_SHM] == f"{names.SHARED_REGION}/1_global_registry"


def test_plugin_b2_cards_with_different_shares_are_refused_rather_than_the_first_taken_for_all(bench: Bench) -> None:
    bench.put(waiting("app", f"U0,{CHIP},8192,20:U1,{CHIP},4096,20:;", asking(count=2)))
    assert "same memory and core of each" in bench.refused(2)


def setup_by(tmp_path: Path, config: str, *arguments: str, soft_by_default: bool = True) -> Setup:
    """What the command line makes of a node config and a device config."""
    for name, text in (("node-config.yaml", config), ("device-config.yaml", DEVICE_CONFIG.format(soft_by_default))):
        (tmp_path / name).write_text(text)
    files = ["--config", str(tmp_path / "node-config.yaml"), "--device-config", str(tmp_path / "device-config.yaml")]
    options = command_line._parser().parse_args(["--node", "n1", *files, *arguments])
    return command_line._setup(options, Host(tmp_path, "1", "x86_64"))


def test_plugin_b3_the_node_config_that_is_given_takes_effect(tmp_path: Path) -> None:
    config = "nodes: [{name: n1, hami-vnpu-core: true, vDeviceCount: 3}, {name: n2, vDeviceCount: 5}]\n"
    setup = setup_by(tmp_path, config, soft_by_default=False)
    assert (setup.settings.slots, setup.soft) == (3, True)


def test_plugin_b4_an_entry_that_says_nothing_of_the_mode_leaves_the_global_one() -> None:
    silent = parse({"nodes": [{"name": "n1", "vDeviceCount": 3}]}, "n1")
    said = parse({"nodes": [{"name": "n1", "hami-vnpu-core": False}]}, "n1")
    assert (silent.soft, said.soft) == (None, False)


def test_plugin_b4_such_a_node_has_the_mode_of_the_device_config_unless_it_says_another(tmp_path: Path) -> None:
    silent, hard = "nodes: [{name: n1, vDeviceCount: 3}]\n", "nodes: [{name: n1, hami-vnpu-core: false}]\n"
    assert [setup_by(tmp_path, config).soft for config in (silent, hard)] == [True, False]
    assert setup_by(tmp_path, hard, "--mode", "soft").soft


@pytest.mark.parametrize(
    ("text", "info", "env"),
    [
        (ONE, '[{"UUID":"U0","memory":8192,"core":20}]', {names.ENV_MEMORY: "8192", names.ENV_PRIORITY: "20"}),
        (f"U0,{CHIP},8192,0:;", '[{"UUID":"U0","memory":8192}]', {names.ENV_MEMORY: "8192"}),
        (f"U0,{CHIP},8192,0:;", '[{"UUID":"U0"}]', {names.ENV_MEMORY: "8192"}),
        (f"U0,{CHIP},16384,0:;", '[{"UUID":"U0","temp":"vir05_1c_16g"}]', {names.ENV_VNPU_SPECS: "vir05_1c_16g"}),
        (f"U0,{CHIP},65536,0:;", '[{"UUID":"U0"}]', {}),
    ],
)
def test_plugin_b5_a_pod_without_a_mark_gets_what_was_booked_for_it(
    bench: Bench, text: str, info: str, env: dict[str, str]
) -> None:
    bench.put(waiting("app", text, mode=None, info=info))
    got = bench.allocate().env
    told = (names.ENV_MEMORY, names.ENV_PRIORITY, names.ENV_VNPU_SPECS)
    assert {name: got[name] for name in told if name in got} == env


def test_plugin_b6_a_card_that_recovers_is_healthy_again(thread: PluginThread, kubelet: Kubelet) -> None:
    with thread.running():
        stream = kubelet.channel(kubelet.registration()).stream()
        for fault in ("alarm", "", "alarm", ""):
            thread.machine = machine_of("test", "25.5.0", [device(0, fault=fault), device(1)])
            stream.until_sick({"U0"} if fault else set())


def test_plugin_b6_news_wait_for_no_stream() -> None:
    board = Board(inventory())
    showing = threading.Thread(
        target=lambda: [board.show(inventory(device(0, fault=str(turn)))) for turn in range(1000)]
    )
    showing.start()
    showing.join(10)
    assert not showing.is_alive()
    assert board.next(None, threading.Event()).cards[0].fault == "999"


def test_plugin_b7_a_pod_that_still_pulls_its_images_is_not_taken_for_the_next_one(bench: Bench) -> None:
    both = f"U0,{CHIP},8192,20:;U1,{CHIP},4096,40:;"
    bench.put(waiting("pulling", both, asking("first"), asking("second")))
    bench.lock_of("pulling")
    bench.allocate()
    assert (bench.phase("pulling"), bench.locked is None) == (None, False)
    assert bench.allocate().env[names.ENV_MEMORY] == "4096"
    assert (bench.phase("pulling"), bench.locked) == ("success", None)
    bench.put(waiting("next", f"U1,{CHIP},1024,10:;"))
    assert bench.allocate().env[names.ENV_MEMORY] == "1024"
    assert bench.phase("pulling") == "success"


def test_plugin_b8_a_hidden_card_moves_no_other() -> None:
    devices = [device(number, chip="Ascend910") for number in range(4)]
    offered = inventory(*devices, settings=NodeSettings(hidden_cards=frozenset({0}))).cards
    assert [(one.card.uuid, one.card.index, one.physical) for one in offered] == [
        ("U1", 1, 1),
        ("U2", 2, 2),
        ("U3", 3, 3),
    ]
    groups = inventory(*(device(n) for n in range(6)), settings=NodeSettings(hidden_uuids=frozenset({"U0"}))).cards
    assert [one.card.network_id for one in groups] == [0, 0, 0, 1, 1]


def test_plugin_b9_directory_and_mount_are_one_place_wherever_the_host_is_seen(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_PATH", "/somewhere/else")
    bench.put(waiting("app", ONE))
    mounts = {mount.container_path: mount.host_path for mount in bench.allocate().mounts}
    made = mounts[names.LOCAL_SHM_DIR]
    assert made == f"{names.CONTAINERS_HOST}/{bench.uid('app')}_app"
    assert bench.tree.at(made).is_dir()
    assert bench.tree.at(mounts[names.QUOTA_FILE]).is_file()


@pytest.mark.parametrize("place", [*names.NPU_SMI_HOST, ""])
def test_plugin_b10_npu_smi_is_mounted_where_it_is(bench: Bench, place: str) -> None:
    bench.tree.at("/usr/local/sbin/npu-smi").unlink()
    if place:
        bench.tree.write(place, "")
    bench.put(waiting("app", ONE))
    mounted = [mount.host_path for mount in bench.allocate().mounts if mount.host_path.endswith("npu-smi")]
    assert mounted == ([place] if place else [])


@pytest.fixture
def setup(kubelet: Kubelet) -> Callable[..., Setup]:
    def make(**changes: object) -> Setup:
        given = {"settings": NodeSettings(), "chips": DEFAULT_CHIPS, "soft": True, "sources": (), "npu_smi": None}
        where = {"node": "n1", "kubelet_dir": kubelet.plugins, "pod_resources": kubelet.pod_resources}
        return Setup(**{**given, **where, **changes})  # type: ignore[arg-type]  # a mixture of types

    return make


def test_plugin_b11_files_of_a_pod_go_only_when_the_api_server_surely_has_it_no_more(
    bench: Bench, setup: Callable[..., Setup]
) -> None:
    bench.put(waiting("here", ONE, phase="Running"))
    here = bench.uid("here")
    for uid in (here, "gone"):
        bench.host.prepare(uid, "app", "{}")
    plugin = Plugin(setup(), bench.host, bench.api.cluster(bench.folder, timeout_s=0.2))
    bench.api.away()
    plugin._sweep()
    assert bench.host.pod_uids() == {here, "gone"}
    bench.api.back()
    plugin._sweep()
    assert bench.host.pod_uids() == {here}


def test_plugin_b11_a_pod_whose_files_were_made_after_the_look_keeps_them(
    bench: Bench, setup: Callable[..., Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory is there before anyone could have listed the pod."""
    plugin = Plugin(setup(), bench.host, bench.api.cluster(bench.folder))
    looked = bench.host.pod_uids

    def look_and_then_prepare() -> set[str]:
        before = looked()
        bench.host.prepare("late", "app", "{}")
        return before

    bench.host.prepare("gone", "app", "{}")
    monkeypatch.setattr(bench.host, "pod_uids", look_and_then_prepare)
    plugin._sweep()
    assert looked() == {"late"}


def test_plugin_b12_each_container_is_told_its_own_cards_init_containers_too(bench: Bench) -> None:
    text = f"U0,{CHIP},1024,0:;U0,{CHIP},2048,0:;U1,{CHIP},4096,0:;"
    bench.put(waiting("app", text, asking("first"), asking("second"), init=(asking("prepare"),)))
    told = [(env[names.ENV_VISIBLE_DEVICES], env[names.ENV_MEMORY]) for env in (bench.allocate().env for _ in range(3))]
    assert told == [("0", "1024"), ("0", "2048"), ("1", "4096")]
    made = {path.name for path in bench.tree.at(names.CONTAINERS_HOST).iterdir()}
    assert made == {f"{bench.uid('app')}_{name}" for name in ("prepare", "first", "second")}


def test_plugin_b13_what_a_node_states_does_not_depend_on_what_is_used(
    plugin: PluginProcess, kubelet: Kubelet, npu: Machine, api: ApiStandIn
) -> None:
    """Upstream's figures of a host turn into the sum of its pods; what we state of it is what it has."""
    with npu.client() as tenant, plugin.running():
        tenant.do("halMemAlloc", "&p", 512 * MIB, flag())
        kubelet.registration()
        assert eventually(lambda: RESOURCE_MEMORY in capacity(api))
        assert capacity(api)[RESOURCE_MEMORY] == "131072"
        cards = json.loads(annotations(api)[names.node_register(CHIP)])
        assert [card["devmem"] for card in cards] == [65536, 65536]


def test_plugin_b14_no_slice_of_the_driver_is_ever_destroyed(plugin: PluginProcess, kubelet: Kubelet) -> None:
    """All that is asked of the driver, from the start to Allocate: what it has, and that chips may be shared."""
    seen = plugin.folder / "seen"
    script = plugin.folder / "npu-smi"
    real = native.simulator("nested") / "npu-smi"
    script.write_text(f'#!/bin/sh\necho "$@" >> {seen}\nexec {real} "$@"\n')
    script.chmod(0o755)
    plugin.arguments = ["--mode", "soft", "--npu-smi", str(script)]
    uuid = "53490000-42C711D4-20B03704-4A10C8D4-00000001"
    plugin.api.put(kube.PODS, waiting("app", f"{uuid},{CHIP},8192,20:;"))
    with plugin.running():
        kubelet.channel(kubelet.registration()).allocate([f"{uuid}-0"])
    assert sorted(seen.read_text().splitlines()) == [f"set -t device-share -i {card} -c 0 -d 1" for card in range(2)]
    functions = subprocess.run(
        [
            "grep",
            "-ohE",
            r"dcmi_(destroy|create|set|reset)\w*",
            "-r",
            str(native.TOP / "interceptor"),
            "--include=*.py",
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert functions.stdout == ""


def test_plugin_b15_one_chip_that_cannot_be_shared_is_unhealthy_and_the_node_goes_on(
    plugin: PluginProcess, kubelet: Kubelet, npu: Machine, api: ApiStandIn
) -> None:
    npu.tool("set", "unshareable=1")
    refusing = "53490000-42C711D4-20B03704-4A10C8D4-00000001"
    with plugin.running():
        stream = kubelet.channel(kubelet.registration()).stream()
        slices = stream.next()
        assert slices.sick_cards() == {refusing}
        assert len(slices.healthy()) == 10
        assert npu.run("npu-smi", "info", "-t", "device-share", "-i", "1", "-c", "0").stdout.split()[-1] == "True"
        assert eventually(lambda: any("cannot be shared" in event["message"] for event in api.objects(kube.EVENTS)))
        stream.close()
    assert f"card 0 ({refusing}): it cannot be shared" in plugin.log()


def test_plugin_b15_a_library_that_is_missing_stops_soft_slices_and_not_the_node(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    thread.host.at(f"{names.CORE_DIR}/{thread.host.version}/libvnpu.so").unlink()
    with thread.running():
        assert len(kubelet.channel(kubelet.registration()).stream().next().healthy()) == 2 * B3.hard_slots
        assert eventually(lambda: "the installer puts" in events(api).get("SoftSlicesRefused", ""))


def test_plugin_b16_a_template_of_nothing_is_refused_and_a_chip_without_templates_has_its_slots() -> None:
    entry = {
        "commonWord": "X",
        "chipName": "x",
        "resourceName": "huawei.com/X",
        "memoryAllocatable": 1024,
        "memoryCapacity": 1024,
    }
    with pytest.raises(ConfigError, match="templates"):
        device_config.parse({"vnpus": {"configs": [entry | {"templates": [{"name": "t", "memory": 0}]}]}})
    chips = device_config.parse({"vnpus": {"configs": [entry]}}).table
    machine = machine_of("test", "25.5.0", [device(0, chip="x")])
    slots = [offers.build(machine, chips, NodeSettings(), soft=soft).cards[0].card.slots for soft in (True, False)]
    assert slots == [names.SOFT_SLOTS, 1]


def test_plugin_b17_a_card_takes_ten_soft_slices_whatever_its_templates() -> None:
    assert [one.card.slots for one in inventory(device(0), device(1, chip="310P3")).cards] == [10, 10]
    assert inventory(device(0), settings=NodeSettings(soft_slots=64)).cards[0].card.slots == 64
