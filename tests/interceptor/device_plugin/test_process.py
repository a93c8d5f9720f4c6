"""The plugin as a process, against a kubelet of gRPC, an API server of HTTP and the simulated NPU's libdcmi."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.containers import eventually
from tests.support.objects import CHIP
from vnpu import kube, names

if TYPE_CHECKING:
    from tests.support.api_stand_in import ApiStandIn
    from tests.support.kubelet import Kubelet, PluginProcess

UUIDS = [f"5349000{card}-42C711D4-20B03704-4A10C8D4-00000001" for card in range(2)]
RESOURCE = f"huawei.com/{CHIP}"
SLOTS = {f"{uuid}-{slot}" for uuid in UUIDS for slot in range(10)}


def node_annotations(api: ApiStandIn) -> dict[str, Any]:
    node = api.object(kube.NODES, "n1")
    assert node is not None
    found: dict[str, Any] = node["metadata"].get("annotations", {})
    return found


def test_the_plugin_registers_and_lists_its_slots(plugin: PluginProcess, kubelet: Kubelet, api: ApiStandIn) -> None:
    with plugin.running():
        request = kubelet.registration()
        assert (request.version, request.endpoint, request.resource_name) == ("v1beta1", f"{CHIP}.sock", RESOURCE)
        assert request.options.get_preferred_allocation_available
        assert not request.options.pre_start_required
        endpoint = kubelet.channel(request)
        assert endpoint.options() == request.options
        stream = endpoint.stream()
        assert stream.next().healthy() == SLOTS
        assert eventually(lambda: names.SOFT_NODE in node_annotations(api))
        stream.close()
