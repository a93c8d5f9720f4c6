"""Nodes and pods of a running cluster, as documents: the planner's one way to the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass

from vnpu.documents import Document


@dataclass(frozen=True, slots=True)
class Live:
    """What there is at one moment, as the API server tells it.

    Attributes:
        nodes: Node objects.
        pods: Pod objects of all namespaces, in any phase.
    """

    nodes: tuple[Document, ...]
    pods: tuple[Document, ...]


def read(kubeconfig: str | None, context: str | None) -> Live:
    """Reads the cluster of a kubeconfig and a context, or the current one; only lists are asked for.

    Raises:
        ConfigError: there is no kubeconfig, or not that context in it.
        KubeError: the server cannot be reached, or refuses.
    """
    from vnpu import kube  # noqa: PLC0415 - the planner needs no cluster, and the client takes long to load

    cluster = kube.connect(kubeconfig=kubeconfig, context=context)
    try:
        # Pods last: one that is bound in between may stand on a node that is not listed, never the other way round.
        lists = [(plural, cluster.list(kind).items) for plural, kind in (("nodes", kube.NODES), ("pods", kube.PODS))]
    finally:
        cluster.close()
    nodes, pods = (
        tuple(Document(f"the cluster's {plural}", number, "", value) for number, value in enumerate(items, start=1))
        for plural, items in lists
    )
    return Live(nodes, pods)
