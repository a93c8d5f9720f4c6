"""The node n1 of a stand-in API server, as tests of the node parts look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vnpu import kube

if TYPE_CHECKING:
    from tests.support.api_stand_in import ApiStandIn

NODE = "n1"


def node(api: ApiStandIn) -> dict[str, Any]:
    found = api.object(kube.NODES, NODE)
    assert found is not None
    return found


def annotations(api: ApiStandIn) -> dict[str, Any]:
    found: dict[str, Any] = node(api)["metadata"].get("annotations", {})
    return found


def annotate(api: ApiStandIn, **values: str) -> None:
    """As an administrator, or a scheduler."""
    found = node(api)
    metadata = found["metadata"] | {"annotations": annotations(api) | values}
    api.put(kube.NODES, found | {"metadata": metadata})


def capacity(api: ApiStandIn) -> dict[str, str]:
    found: dict[str, str] = node(api)["status"]["capacity"]
    return found


def events(api: ApiStandIn) -> dict[str, str]:
    """What was last said for each reason."""
    return {event["reason"]: event["message"] for event in api.objects(kube.EVENTS)}
