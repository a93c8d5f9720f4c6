"""What Kubernetes' Pod Security Standards say of a pod: the level "restricted" (as of 1.36).

Written after the published standard, field by field; a field that the standard does not know is not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_SECCOMP: Final = ("RuntimeDefault", "Localhost")
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
_SELINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")


def restricted_faults(spec: Mapping[str, Any]) -> list[str]:
    """Why a pod with this spec would be refused in a namespace that enforces "restricted"; empty for a good one."""
    return [*_pod(spec), *(fault for entry in _containers(spec) for fault in _container(entry, spec))]


def _containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [entry for key in ("initContainers", "containers", "ephemeralContainers") for entry in spec.get(key) or []]


def _pod(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"spec.{key}" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key))
    for volume in spec.get("volumes") or []:
        kinds = set(volume) - {"name"}
        if not kinds <= _VOLUMES:
            yield f"volume {volume['name']}: {', '.join(sorted(kinds))}"
    context = spec.get("securityContext") or {}
    for sysctl in context.get("sysctls") or []:
        if sysctl["name"] not in _SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    yield from _either("spec", context)


def _either(place: str, context: Mapping[str, Any]) -> Iterator[str]:
    """What may stand on the pod or on a container and must be right wherever it stands."""
    selinux = context.get("seLinuxOptions") or {}
    if selinux.get("type", "") not in _SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield f"{place}: seLinuxOptions"
    if context.get("runAsNonRoot") is False:
        yield f"{place}: runAsNonRoot false"
    if context.get("runAsUser") == 0:
        yield f"{place}: runAsUser 0"
    seccomp = context.get("seccompProfile")
    if seccomp is not None and seccomp.get("type") not in _SECCOMP:
        yield f"{place}: seccompProfile"
    apparmor = context.get("appArmorProfile")
    if apparmor is not None and apparmor.get("type") not in _SECCOMP:
        yield f"{place}: appArmorProfile"


def _container(container: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    place = container["name"]
    context = container.get("securityContext") or {}
    of_pod = spec.get("securityContext") or {}
    yield from _either(place, context)
    if context.get("privileged"):
        yield f"{place}: privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{place}: allowPrivilegeEscalation"
    if context.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
        yield f"{place}: runAsNonRoot"
    if "seccompProfile" not in context and "seccompProfile" not in of_pod:
        yield f"{place}: no seccompProfile"
    if context.get("procMount", "Default") != "Default":
        yield f"{place}: procMount"
    yield from _reach(place, container)


def _reach(place: str, container: Mapping[str, Any]) -> Iterator[str]:
    """Capabilities, ports of the host, and probes that kubelet would send elsewhere."""
    capabilities = (container.get("securityContext") or {}).get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []):
        yield f"{place}: capabilities not dropped"
    if not set(capabilities.get("add") or []) <= {"NET_BIND_SERVICE"}:
        yield f"{place}: capabilities added"
    for port in container.get("ports") or []:
        if port.get("hostPort"):
            yield f"{place}: hostPort"
    for handler in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(handler) or {}
        if any((probe.get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
            yield f"{place}: {handler} names a host"
