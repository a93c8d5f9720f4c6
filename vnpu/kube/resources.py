"""The kinds of objects that are read and written, and where the API serves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

Object = dict[str, Any]
"""A Kubernetes object as JSON."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object and where the API serves it.

    Attributes:
        group: ``""`` for the core group.
        version: for example ``v1``.
        plural: as in paths, for example ``pods``.
        kind: as in objects, for example ``Pod``.
        namespaced: whether its objects stand in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, name: str = "", namespace: str | None = None, subresource: str = "") -> str:
        """The path below the server's address; without a name that of the collection.

        Raises:
            ValueError: a namespace for a resource that has none, or one object without its namespace.
        """
        if (namespace is not None and not self.namespaced) or (namespace is None and self.namespaced and name):
            raise ValueError(f"{self.kind} {name}: namespace {namespace}")
        parts = ["apis" if self.group else "api", self.api_version]
        parts += ["namespaces", quote(namespace, safe="")] if namespace is not None else []
        parts += [self.plural, quote(name, safe=""), subresource]
        return "/" + "/".join(part for part in parts if part)


_ADMISSION: Final = "admissionregistration.k8s.io"
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS: Final = Resource("", "v1", "pods", "Pod")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
SERVICES: Final = Resource("", "v1", "services", "Service")
EVENTS: Final = Resource("", "v1", "events", "Event")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
MUTATING: Final = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING: Final = Resource(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
CUSTOM_RESOURCES: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
