"""What the API server makes of a pod that it takes: defaults, and its own spelling of quantities.

A webhook sees pods in this form, also the ones that it patched itself. A test compares it with what a real server
(1.36.2) recorded.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.support.api_rules import quantity

_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_SPEC = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "serviceAccount": "default",
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 30,
}
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def defaulted(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as the API server hands it to webhooks and stores it; the pod itself is left alone."""
    result: dict[str, Any] = _without_nulls(copy.deepcopy(pod))
    metadata = result.setdefault("metadata", {})
    for field in ("annotations", "labels"):
        if metadata.get(field) == {}:
            del metadata[field]
    spec = result["spec"]
    if spec.get("schedulerName") == "":
        del spec["schedulerName"]
    for field, value in _SPEC.items():
        spec.setdefault(field, copy.deepcopy(value))
    for section in ("initContainers", "containers"):
        for container in spec.get(section) or []:
            _default_container(container)
    return result


def canonical(value: Any) -> str:
    """A quantity as the API server spells it: the largest suffix of its family that leaves a whole number."""
    text, number = str(value), quantity(value)
    units, base = (_BINARY, 1024) if text.endswith("i") else (_DECIMAL, 1000)
    if number.denominator != 1:
        return f"{number * 1000}m"
    power = 0
    while number and power < len(units) - 1 and number % base == 0:
        number, power = number / base, power + 1
    if text[-1:].isdigit() and "e" in text.lower():
        return f"{number}e{3 * power}" if power else str(number)
    return f"{number}{units[power]}"


def _default_container(container: dict[str, Any]) -> None:
    for field, value in _CONTAINER.items():
        container.setdefault(field, value)
    tag = str(container.get("image", "")).rpartition("/")[2].partition(":")[2]
    container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
    _default_resources(container.setdefault("resources", {}))
    if container.get("env") == []:
        del container["env"]
    for entry in container.get("env", []):
        if "fieldRef" in entry.get("valueFrom", {}):
            entry["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")
    for handler in container.get("lifecycle", {}).values():
        if isinstance(handler, dict) and "httpGet" in handler:
            handler["httpGet"] = {"scheme": "HTTP", "path": "/"} | handler["httpGet"]


def _default_resources(resources: dict[str, Any]) -> None:
    for section in ("limits", "requests"):
        if resources.get(section) == {}:
            del resources[section]
        for name, value in resources.get(section, {}).items():
            resources[section][name] = canonical(value)
    if "limits" in resources:
        resources["requests"] = resources["limits"] | resources.get("requests", {})


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_nulls(entry) for entry in value]
    return value
