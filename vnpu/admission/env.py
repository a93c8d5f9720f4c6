"""The environment of the containers of an NPU pod: what admission writes, and what nobody else may write.

Admission writes literally: a literal value beats what ``envFrom`` or the image bring. Kubernetes also lets the pod's
environment beat that of the device plugin, which is why the names are reserved in every container of the pod: in one
without an NPU, ``ASCEND_VISIBLE_DEVICES: "0"`` would bring the card of another in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vnpu import names
from vnpu.admission.outcome import APPEND, Set
from vnpu.admission.settings import OnTimeout, Share
from vnpu.errors import AnnotationError, FieldError, InputError, RequestError
from vnpu.objects import annotation_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.admission.settings import Settings
    from vnpu.containers import Container
    from vnpu.request import SliceRequest


def share_of(annotations: Mapping[str, Any], settings: Settings) -> Share:
    """How the pod shares the time of its cards: as its annotation says, else as the setting does.

    Raises:
        AnnotationError: the annotation holds another word.
    """
    if names.SHARE not in annotations:
        return settings.share
    value = annotations[names.SHARE]
    for share in Share:
        if value == share.value:
            return share
    raise AnnotationError(
        annotation_path(names.SHARE), value, f"allowed are {Share.WEIGHTED.value} and {Share.CEILING.value}"
    )


def wanted(request: SliceRequest, share: Share, settings: Settings) -> dict[str, str]:
    """The environment that a soft container gets."""
    env = {names.ENV_MEMORY: str(request.memory_mib)}
    if request.core_percent > 0:
        env[names.ENV_PRIORITY] = str(request.core_percent)
    if share is Share.CEILING:
        env[names.ENV_CEILING] = "1"
    if settings.on_timeout is not OnTimeout.EXIT:
        env[names.ENV_ON_TIMEOUT] = settings.on_timeout.value
    return env


def is_reserved(name: str) -> bool:
    """Whether only admission and the device plugin set this name."""
    return name.startswith(names.RESERVED_ENV_PREFIXES) or name in names.RESERVED_ENV


def review(
    container: Container, ours: Mapping[str, str], *, asks: bool, allow_reserved: bool
) -> tuple[list[Set], list[FieldError]]:
    """What is to be appended to a container's environment, and what must not stand there.

    Args:
        container: a container of an NPU pod.
        ours: what admission writes; empty for hard slices and containers without an NPU.
        asks: whether the container asks for an NPU.
        allow_reserved: the setting ``allowReservedEnv``: what the user wrote counts, and is not written once more.
    """
    path = f"{container.path}.env"
    entries = container.raw.get("env")
    if entries is None:
        entries = ()
    elif not isinstance(entries, list):
        return [], [InputError(path, entries, "a list of names and values is expected")]
    present: set[str] = set()
    faults: list[FieldError] = []
    for index, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not is_reserved(name):
            continue
        if not allow_reserved and not (_is_ours(entry, name, ours) or (not asks and _hides_cards(entry, name))):
            faults.append(_reserved(f"{path}[{index}]", name, ours))
        elif name in present and not allow_reserved:
            faults.append(RequestError(f"{path}[{index}]", name, "this name stands twice; remove one of them"))
        present.add(name)
    keys = (*container.keys, "env", APPEND)
    return [Set(keys, {"name": name, "value": ours[name]}) for name in ours if name not in present], faults


def _is_ours(entry: Mapping[str, Any], name: str, ours: Mapping[str, str]) -> bool:
    return name in ours and entry.get("value") == ours[name] and entry.get("valueFrom") is None


def _hides_cards(entry: Mapping[str, Any], name: str) -> bool:
    """HAMi writes an empty list into containers without an NPU, so that they see no card."""
    return name == names.ENV_VISIBLE_DEVICES and not entry.get("value") and entry.get("valueFrom") is None


def _reserved(path: str, name: str, ours: Mapping[str, str]) -> RequestError:
    # The message shows the name and never the value: values of env may be secret.
    if name in ours:
        allowed = f"admission writes this variable itself, and its value here is {ours[name]}; remove it"
    else:
        allowed = (
            "this variable is reserved for admission and the device plugin in a pod that asks for an NPU; remove it"
        )
    return RequestError(path, name, f"{allowed}, or let an administrator set allowReservedEnv")
