"""The plugin between kubelet and the API server: what it keeps up, and what goes on when something is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from interceptor.devices import Machine, machine_of
from tests.support.api_stand_in import Fault
from tests.support.containers import eventually
from tests.support.device_plugin import B3, device, waiting
from tests.support.kubelet import elf_head
from tests.support.node_object import annotate, annotations, capacity, events, node
from tests.support.objects import CHIP
from vnpu import kube, names

if TYPE_CHECKING:
    from tests.support.api_stand_in import ApiStandIn
    from tests.support.kubelet import Kubelet, PluginThread

RESOURCE = f"huawei.com/{CHIP}"
SLOTS = {f"U{card}-{slot}" for card in range(2) for slot in range(10)}
ONE = f"U0,{CHIP},8192,20:;"
OTHER = f"U1,{CHIP},4096,40:;"
HARD_SLOTS = 2 * B3.hard_slots


# ---- kubelet


def test_the_plugin_registers_again_after_kubelet_started_again(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    with thread.running():
        stream = kubelet.channel(kubelet.registration()).stream()
        assert stream.next().healthy() == SLOTS
        kubelet.restart()
        stream.ended()
        again = kubelet.channel(kubelet.registration())
        assert again.stream().next().healthy() == SLOTS
        api.put(kube.PODS, waiting("app", ONE))
        (response,) = again.allocate(["U0-0"])
        assert response.envs[names.ENV_MEMORY] == "8192"


def test_a_socket_that_somebody_removed_is_made_again(thread: PluginThread, kubelet: Kubelet) -> None:
    with thread.running():
        request = kubelet.registration()
        (kubelet.plugins / request.endpoint).unlink()
        assert kubelet.channel(kubelet.registration()).stream().next().healthy() == SLOTS


def test_a_plugin_waits_for_a_kubelet_that_is_not_there_yet(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    kubelet.stop()
    (kubelet.plugins / names.KUBELET_SOCKET).unlink(missing_ok=True)
    with thread.running():
        assert eventually(lambda: "waiting for kubelet" in events(api).get("KubeletSilent", ""))
        kubelet.start()
        assert kubelet.channel(kubelet.registration()).stream().next().healthy() == SLOTS


def test_a_kubelet_that_refuses_is_asked_again(thread: PluginThread, kubelet: Kubelet, api: ApiStandIn) -> None:
    kubelet.refusals = 1
    with thread.running():
        assert kubelet.channel(kubelet.registration()).stream().next().healthy() == SLOTS
        assert eventually(lambda: "not now" in events(api).get("KubeletSilent", ""))


def test_kubelets_own_list_is_asked_whom_it_served(thread: PluginThread, kubelet: Kubelet, api: ApiStandIn) -> None:
    for pod in (waiting("a", ONE), waiting("b", OTHER)):
        api.put(kube.PODS, pod)
    with thread.running():
        endpoint = kubelet.channel(kubelet.registration())
        assert "team/a, team/b" in endpoint.refused(["x"])
        kubelet.served("team", "a", "app", RESOURCE, "U0-0")
        (response,) = endpoint.allocate(["x"])
        assert response.envs[names.ENV_MEMORY] == "4096"


def test_a_kubelet_without_that_list_is_served_by_annotations(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    kubelet.stop()
    kubelet.start(pod_resources=False)
    api.put(kube.PODS, waiting("app", ONE))
    with thread.running():
        (response,) = kubelet.channel(kubelet.registration()).allocate(["x"])
        assert response.envs[names.ENV_MEMORY] == "8192"


# ---- the node object


def test_cordon_and_health_reach_kubelet_and_the_node_object(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    with thread.running():
        stream = kubelet.channel(kubelet.registration()).stream()
        assert stream.next().sick_cards() == set()
        thread.machine = machine_of("test", "25.5.0", [device(0), device(1, fault="a major alarm")])
        stream.until_sick({"U1"})
        assert eventually(lambda: "a major alarm" in events(api).get("CardUnhealthy1", ""))
        annotate(api, **{names.CORDON: "U0"})
        stream.until_sick({"U0", "U1"})
        assert eventually(lambda: '"health":true' not in annotations(api)[names.node_register(CHIP)])
        annotate(api, **{names.CORDON: "a;b"})
        assert eventually(lambda: "cordoned before still is" in events(api).get("CordonNotRead", ""))
        thread.machine = machine_of("test", "25.5.0", [device(0), device(1)])
        stream.until_sick({"U0"})
        annotate(api, **{names.CORDON: ""})
        stream.until_sick(set())


def test_a_scheduler_that_asks_is_answered_and_what_kubelet_wiped_is_stated_again(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    talk = names.node_handshake(CHIP)
    with thread.running():
        kubelet.registration()
        assert eventually(lambda: f"{RESOURCE}-core" in capacity(api))
        annotate(api, **{talk: "Requesting_2026-08-21 10:00:00"})
        assert eventually(lambda: annotations(api)[talk].startswith("Reported_"))
        api.put(kube.NODES, node(api) | {"status": {"capacity": {"cpu": "8", f"{RESOURCE}-memory": "0"}}})
        assert eventually(lambda: capacity(api).get(f"{RESOURCE}-memory") == "131072")


def test_nothing_is_written_while_nothing_changes(thread: PluginThread, kubelet: Kubelet, api: ApiStandIn) -> None:
    with thread.running():
        kubelet.registration()
        assert eventually(lambda: f"{RESOURCE}-core" in capacity(api))
        version = node(api)["metadata"]["resourceVersion"]
        looks = sum(request.method == "GET" for request in api.requests)
        assert eventually(lambda: sum(request.method == "GET" for request in api.requests) >= looks + 3)
        assert node(api)["metadata"]["resourceVersion"] == version


# ---- what may be wrong on a node: a reason, and the rest goes on


def test_an_old_driver_refuses_soft_slices_and_hard_ones_go_on(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    thread.machine = replace(thread.machine, driver="24.1.0")
    with thread.running():
        endpoint = kubelet.channel(kubelet.registration())
        assert len(endpoint.stream().next().healthy()) == HARD_SLOTS
        assert eventually(lambda: annotations(api).get(names.SOFT_NODE) == "false")
        assert eventually(lambda: "24.1.0" in events(api).get("SoftSlicesRefused", ""))
        api.put(kube.PODS, waiting("soft", ONE))
        assert "the driver is 24.1.0, and 25.5 or newer is needed" in endpoint.refused(["x"])
        assert "24.1.0" in events(api)["NPUAllocationFailed"]
        info = '[{"UUID":"U1","temp":"vir05_1c_16g"}]'
        api.put(kube.PODS, waiting("hard", f"U1,{CHIP},16384,0:;", mode="template", info=info))
        (response,) = endpoint.allocate(["x"])
        assert response.envs == {names.ENV_VISIBLE_DEVICES: "1", names.ENV_VNPU_SPECS: "vir05_1c_16g"}


def test_a_library_of_another_machine_refuses_soft_slices_until_the_right_one_is_there(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    library = thread.host.at(f"{names.CORE_DIR}/{thread.host.version}/libvnpu.so")
    library.write_bytes(elf_head("aarch64"))
    with thread.running():
        stream = kubelet.channel(kubelet.registration()).stream()
        assert len(stream.next().healthy()) == HARD_SLOTS
        assert eventually(lambda: "made for aarch64" in events(api).get("SoftSlicesRefused", ""))
        library.write_bytes(elf_head("x86_64"))
        assert stream.next().healthy() == SLOTS
        assert eventually(lambda: annotations(api)[names.SOFT_NODE] == "true")


def test_npu_smi_that_is_missing_refuses_soft_slices_and_hard_ones_go_on(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    thread.npu_smi = ()
    with thread.running():
        assert len(kubelet.channel(kubelet.registration()).stream().next().healthy()) == HARD_SLOTS
        assert eventually(lambda: "npu-smi is not there" in events(api).get("SoftSlicesRefused", ""))


def test_a_driver_that_falls_silent_makes_its_cards_unhealthy_until_it_answers(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    there, silent = thread.machine, Machine("", "", ())
    thread.machine = silent
    with thread.running():
        assert eventually(lambda: "the driver is silent" in events(api).get("DriverSilent", ""))
        assert kubelet.registered.empty()
        thread.machine = there
        stream = kubelet.channel(kubelet.registration()).stream()
        stream.until_sick(set())
        thread.machine = silent
        stream.until_sick({"U0", "U1"})
        thread.machine = there
        stream.until_sick(set())


def test_an_api_server_that_is_away_keeps_health_from_nobody(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    with thread.running():
        endpoint = kubelet.channel(kubelet.registration())
        stream = endpoint.stream()
        stream.until_sick(set())
        api.away()
        thread.machine = machine_of("test", "25.5.0", [device(0), device(1, fault="a major alarm")])
        stream.until_sick({"U1"})
        assert "cannot be read" in endpoint.refused(["x"])
        api.back()
        assert eventually(lambda: "CardUnhealthy1" in events(api))


def test_a_node_object_that_is_missing_is_waited_for(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    api.remove(kube.NODES, "n1")
    with thread.running():
        assert kubelet.channel(kubelet.registration()).stream().next().healthy() == SLOTS
        assert eventually(lambda: "NodeObjectNotWritten" in caplog.text)
        api.put(kube.NODES, {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "8"}}})
        assert eventually(lambda: annotations(api).get(names.SOFT_NODE) == "true")
    assert caplog.text.count("NodeObjectNotWritten: node") == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_ours_ends_the_plugin_rather_than_half_of_it(
    thread: PluginThread, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with thread.running():
        stream = kubelet.channel(kubelet.registration()).stream()
        assert stream.next().healthy() == SLOTS

        def fail(*_: object) -> None:
            raise RuntimeError("a fault")

        monkeypatch.setattr(thread.cluster, "get", fail)
        stream.ended()


def test_an_event_that_the_server_does_not_take_hides_nothing(
    thread: PluginThread, kubelet: Kubelet, api: ApiStandIn
) -> None:
    api.fail(Fault("POST", "/events", status=403, reason="Forbidden", times=-1))
    api.put(kube.PODS, waiting("app", f"Unknown,{CHIP},8192,20:;"))
    with thread.running():
        assert "a card of this node is expected" in kubelet.channel(kubelet.registration()).refused(["x"])
        pod = api.object(kube.PODS, "app", "team")
        assert pod is not None
        assert pod["metadata"]["annotations"][names.BIND_PHASE] == "failed"
