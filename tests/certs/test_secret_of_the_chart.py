"""The chart makes the Secret, empty and of a type that may be: it is filled, and keeps type and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certs.__main__ import main
from certs.trust import BUNDLE, SERVING_CERTIFICATE, SERVING_KEY, SIGNING_KEY
from vnpu.kube import SECRETS
from vnpu.names import CERTIFICATES_OWNER, OWNER_LABEL

if TYPE_CHECKING:
    from tests.support.clusters import AnyCluster


def test_an_empty_secret_that_is_marked_as_ours_is_filled(any_cluster: AnyCluster) -> None:
    labels = {OWNER_LABEL: CERTIFICATES_OWNER, "app.kubernetes.io/managed-by": "Helm"}
    empty = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "labels": labels}, "type": "Opaque"}
    any_cluster.cluster.create(SECRETS, empty, any_cluster.namespace)
    place = ["--kubeconfig", any_cluster.kubeconfig, "--namespace", any_cluster.namespace, "--service", "webhook"]
    assert main(["ensure", *place, "--secret", "tls", "--webhook-configurations", any_cluster.prefix]) == 0
    filled = any_cluster.cluster.get(SECRETS, "tls", any_cluster.namespace)
    assert {SERVING_CERTIFICATE, SERVING_KEY, BUNDLE, SIGNING_KEY} <= set(filled["data"])
    assert filled["type"] == "Opaque"
    assert filled["metadata"]["labels"] == labels
