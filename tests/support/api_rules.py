"""What the API server would refuse in a pod, as far as a webhook could bring it about.

Written after the validation of Kubernetes 1.36 (and its answers on a real server), without anything of vnpu, so that a
patch is not judged by the code that made it.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_KEY_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NUMBER = re.compile(r"([+-]?[0-9]*\.?[0-9]*)(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)")
_SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
_SUFFIXES |= {suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}
_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_ANNOTATIONS_LIMIT = 256 * 1024


def faults(pod: Mapping[str, Any]) -> list[str]:
    """Every reason for which the API server would refuse to create the pod; empty for a good one."""
    spec = pod["spec"]
    return [*_metadata(pod.get("metadata") or {}), *_spec(spec)]


def quantity(value: Any) -> Fraction:
    """The value of a quantity."""
    match = None if isinstance(value, bool) else _NUMBER.fullmatch(str(value))
    if match is None or not any(character.isdigit() for character in match[1]):
        raise ValueError(value)
    number, suffix = Fraction(match[1]), match[2]
    return number * (Fraction(10) ** int(suffix[1:]) if suffix[:1] in ("e", "E") and suffix[1:] else _SUFFIXES[suffix])


def _metadata(metadata: Mapping[str, Any]) -> Iterator[str]:
    annotations = metadata.get("annotations") or {}
    for name, value in annotations.items():
        prefix, slash, rest = name.rpartition("/")
        if not _KEY_NAME.fullmatch(rest) or (slash and not _KEY_PREFIX.fullmatch(prefix.lower())):
            yield f"metadata.annotations: {name!r} is no qualified name"
        if not isinstance(value, str):
            yield f"metadata.annotations[{name}]: {value!r} is no text"
    for name, value in (metadata.get("labels") or {}).items():
        if not isinstance(value, str) or not (value == "" or _KEY_NAME.fullmatch(value)):
            yield f"metadata.labels[{name}]: {value!r} is no label value"
    if sum(len(name) + len(str(value)) for name, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        yield "metadata.annotations: too long"


def _spec(spec: Mapping[str, Any]) -> Iterator[str]:
    if not spec.get("containers"):
        yield "spec.containers: required"
    names: set[str] = set()
    for section in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(section) or []):
            path = f"spec.{section}[{index}]"
            if not _DNS_LABEL.fullmatch(container.get("name") or ""):
                yield f"{path}.name: {container.get('name')!r} is no DNS label"
            if container.get("name") in names:
                yield f"{path}.name: duplicate"
            names.add(container.get("name") or "")
            plain_init = section == "initContainers" and container.get("restartPolicy") != "Always"
            yield from _lifecycle(container.get("lifecycle"), f"{path}.lifecycle", plain_init=plain_init)
            yield from _resources(container.get("resources") or {}, f"{path}.resources")
            yield from _env(container.get("env") or [], f"{path}.env")
            mounts = [mount["mountPath"] for mount in container.get("volumeMounts") or []]
            if len(set(mounts)) != len(mounts):
                yield f"{path}.volumeMounts: mountPath must be unique"


def _lifecycle(lifecycle: Any, path: str, *, plain_init: bool) -> Iterator[str]:
    if lifecycle is None:
        return
    if plain_init:
        yield f"{path}: may not be set for init containers without restartPolicy=Always"
    for moment in ("postStart", "preStop"):
        handler = lifecycle.get(moment)
        if handler is None:
            continue
        set_ones = [name for name in _HANDLERS if handler.get(name) is not None]
        if len(set_ones) != 1:
            yield f"{path}.{moment}: must specify one handler, found {set_ones}"
        command = (handler.get("exec") or {}).get("command")
        if "exec" in set_ones and (
            not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command)
        ):
            yield f"{path}.{moment}.exec.command: required"
        if "httpGet" in set_ones and "port" not in handler["httpGet"]:
            yield f"{path}.{moment}.httpGet.port: required"


def _resources(resources: Mapping[str, Any], path: str) -> Iterator[str]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for section, entries in (("limits", limits), ("requests", requests)):
        for name, value in entries.items():
            try:
                number = quantity(value)
            except ValueError:
                yield f"{path}.{section}[{name}]: {value!r} is no quantity"
                continue
            if number < 0:
                yield f"{path}.{section}[{name}]: must be greater than or equal to 0"
            if _is_extended(name) and number.denominator != 1:
                yield f"{path}.{section}[{name}]: must be an integer"
    for name, value in requests.items():
        if not _is_extended(name):
            continue
        if name not in limits:
            yield f"{path}.limits[{name}]: limit must be set for non overcommitable resources"
        elif quantity(limits[name]) != quantity(value):
            yield f"{path}.requests[{name}]: must be equal to {name} limit"


def _is_extended(name: str) -> bool:
    prefix, slash, _ = name.partition("/")
    return bool(slash) and prefix != "kubernetes.io" and not prefix.endswith(".kubernetes.io")


def _env(env: list[Mapping[str, Any]], path: str) -> Iterator[str]:
    for index, entry in enumerate(env):
        if not entry.get("name"):
            yield f"{path}[{index}].name: required"
        if entry.get("value") and entry.get("valueFrom"):
            yield f"{path}[{index}]: may not have both value and valueFrom"
        if not isinstance(entry.get("value", ""), str):
            yield f"{path}[{index}].value: {entry['value']!r} is no text"
    # The API server takes a name twice; the last one wins, which is never what a webhook means.
    named = [entry.get("name") for entry in env]
    for name in {name for name in named if named.count(name) > 1}:
        yield f"{path}: {name} stands twice"
