"""The plugin as a process, against a kubelet of gRPC, an API server of HTTP and the simulated NPU's libdcmi."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import grpc
import pytest

from interceptor.device_plugin import __main__ as command_line
from tests.support import native
from tests.support.api_stand_in import Fault
from tests.support.containers import eventually
from tests.support.device_plugin import asking, waiting
from tests.support.node_object import annotate, annotations, capacity, events
from tests.support.objects import CHIP
from vnpu import kube, names

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.api_stand_in import ApiStandIn
    from tests.support.kubelet import Kubelet, PluginProcess
    from tests.support.simulated_npu import Machine

UUIDS = [f"5349000{card}-42C711D4-20B03704-4A10C8D4-00000001" for card in range(2)]
RESOURCE = f"huawei.com/{CHIP}"
SLOTS = {f"{uuid}-{slot}" for uuid in UUIDS for slot in range(10)}
ONE = f"{UUIDS[0]},{CHIP},8192,20:;"
OTHER = f"{UUIDS[1]},{CHIP},4096,40:;"


def test_a_node_is_offered_described_and_served_from_the_start_to_sigterm(
    plugin: PluginProcess, kubelet: Kubelet, api: ApiStandIn
) -> None:
    api.put(kube.PODS, waiting("app", OTHER))
    with plugin.running():
        request = kubelet.registration()
        assert (request.version, request.endpoint, request.resource_name) == ("v1beta1", f"{CHIP}.sock", RESOURCE)
        assert request.options.get_preferred_allocation_available
        assert not request.options.pre_start_required
        endpoint = kubelet.channel(request)
        assert endpoint.options() == request.options
        stream = endpoint.stream()
        assert stream.next().healthy() == SLOTS

        assert eventually(lambda: f"{RESOURCE}-core" in capacity(api))
        assert capacity(api) == {"cpu": "8", f"{RESOURCE}-memory": "131072", f"{RESOURCE}-core": "200"}
        told = annotations(api)
        assert told[names.SOFT_NODE] == "true"
        assert [card["id"] for card in json.loads(told[names.node_register(CHIP)])] == UUIDS
        assert told[names.node_handshake(CHIP)].startswith("Reported_")

        assert endpoint.preferred(sorted(SLOTS), 1) == [f"{UUIDS[1]}-0"]
        (response,) = endpoint.allocate([f"{UUIDS[1]}-0"])
        assert (response.envs[names.ENV_VISIBLE_DEVICES], response.envs[names.ENV_MEMORY]) == ("1", "4096")
        assert "no pending pod" in endpoint.refused([f"{UUIDS[0]}-0"])

        assert plugin.end(signal.SIGTERM) == 0
        stream.ended()
        assert not (kubelet.plugins / request.endpoint).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_restart_goes_on_where_the_plugin_ended(
    plugin: PluginProcess, kubelet: Kubelet, api: ApiStandIn, number: signal.Signals
) -> None:
    api.put(kube.PODS, waiting("app", f"{ONE}{OTHER}", asking("first"), asking("second")))
    with plugin.running():
        stream = (endpoint := kubelet.channel(kubelet.registration())).stream()
        (first,) = endpoint.allocate([f"{UUIDS[0]}-0"])
        made = plugin.host.at(next(one.host_path for one in first.mounts if one.container_path == names.LOCAL_SHM_DIR))
        (made / "vnpu_local_shmem").write_text("what the limiter wrote")
        inode = made.stat().st_ino
        assert plugin.end(number) == (-number if number is signal.SIGKILL else 0)
        stream.ended()
        plugin.start()
        (second,) = kubelet.channel(kubelet.registration()).allocate([f"{UUIDS[1]}-0"])
        assert (first.envs[names.ENV_MEMORY], second.envs[names.ENV_MEMORY]) == ("8192", "4096")
        assert (made.stat().st_ino, (made / "vnpu_local_shmem").read_text()) == (inode, "what the limiter wrote")
        pod = api.object(kube.PODS, "app", "team")
        assert pod is not None
        assert pod["metadata"]["annotations"][names.BIND_PHASE] == "success"


def test_a_lock_that_an_end_between_booking_and_answer_left_is_taken_off_by_the_next_start(
    plugin: PluginProcess, kubelet: Kubelet, api: ApiStandIn
) -> None:
    api.put(kube.PODS, waiting("app", ONE))
    annotate(api, **{names.NODE_LOCK: "2026-08-21T10:00:00Z,team,app"})

    def kill() -> None:
        assert plugin.process is not None
        plugin.process.kill()

    with plugin.running():
        endpoint = kubelet.channel(kubelet.registration())
        assert eventually(lambda: f"{RESOURCE}-core" in capacity(api))
        api.fail(Fault("PATCH", "/nodes/n1", act=kill, cut="before"))
        with pytest.raises(grpc.RpcError):
            endpoint.allocate([f"{UUIDS[0]}-0"])
        plugin.end()
        assert names.NODE_LOCK in annotations(api)
        plugin.start()
        assert eventually(lambda: names.NODE_LOCK not in annotations(api))


def test_the_drivers_word_of_a_cards_health_reaches_kubelet(
    plugin: PluginProcess, kubelet: Kubelet, api: ApiStandIn, npu: Machine
) -> None:
    plugin.arguments += ["--health-seconds", "1"]
    annotate(api, **{names.CORDON: UUIDS[0]})
    with plugin.running():
        stream = kubelet.channel(kubelet.registration()).stream()
        assert stream.next().sick_cards() == {UUIDS[0]}, "a cordoned card is not offered for a moment either"
        npu.tool("set", "sick=2")
        stream.until_sick(set(UUIDS))
        assert eventually(lambda: "health 2" in events(api).get("CardUnhealthy1", ""))
        npu.tool("set", "sick=0")
        stream.until_sick({UUIDS[0]})


def test_without_libdcmi_npu_smi_tells_the_chips(plugin: PluginProcess, kubelet: Kubelet) -> None:
    script = plugin.folder / "npu-smi"
    simulator = native.simulator("nested")
    script.write_text(f'#!/bin/sh\nNPU_SIM_STATE={plugin.npu_sim} exec {simulator}/npu-smi "$@"\n')
    script.chmod(0o755)
    plugin.npu_sim = None
    plugin.arguments = ["--mode", "soft", "--npu-smi", str(script)]
    with plugin.running():
        assert kubelet.channel(kubelet.registration()).stream().next().healthy() == SLOTS


def test_a_file_may_stand_in_for_the_driver_and_each_chip_has_a_socket(plugin: PluginProcess, kubelet: Kubelet) -> None:
    devices = plugin.folder / "devices.yaml"
    devices.write_text("driver: 25.5.0\ndevices: [{uuid: A, chip: 310P3}, {uuid: B, chip: 910B3, physical: 7}]\n")
    plugin.npu_sim = None
    plugin.arguments = ["--mode", "soft", "--devices", str(devices)]
    with plugin.running():
        requests = sorted((kubelet.registration() for _ in range(2)), key=lambda request: request.endpoint)
        assert [request.resource_name for request in requests] == ["huawei.com/Ascend310P", RESOURCE]
        streams = [kubelet.channel(request).stream() for request in requests]
        assert [stream.next().healthy() for stream in streams] == [
            {f"{uuid}-{slot}" for slot in range(10)} for uuid in "AB"
        ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--config", "/nowhere"], "/nowhere"),
        (["--device-config", "/nowhere"], "/nowhere"),
        (["--kubeconfig", "/nowhere"], "/nowhere"),
        (["--mode", "both"], "invalid choice"),
        (["--health-seconds", "0"], "from 1 to 3600"),
        (["--node", ""], "NODE_NAME"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = command_line.main(["--node", "n1", "--host-root", str(tmp_path), *arguments])
    assert code == 2
    assert reason in capsys.readouterr().err.splitlines()[-1]
