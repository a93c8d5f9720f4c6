"""The annotations that record an allocation: which they are, and who may write them.

Schedulers and device plugins believe these annotations: a pod that brings its own books capacity, or with negative
numbers frees it, whether it asks for an NPU or not. So nobody writes them when a pod is created, and later only the
accounts in the setting ``allocators`` change them. The mode is under the same guard: the device plugin reads it once
more when the container starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.errors import ABSENT, AnnotationError, InputError, same, shown
from vnpu.objects import annotation_path, annotations_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vnpu.chips import ChipTable

_SIGNS: Final = (names.DEVICE_TEXT_PREFIX, names.RUNTIME_INFO_PREFIX, names.PREDICATE_TIME)
_ASCEND: Final = names.RESOURCE_PREFIX.removeprefix(names.RUNTIME_INFO_PREFIX)


def records_allocation(name: str, chips: ChipTable) -> bool:
    """Whether the annotation is one that only a scheduler or a device plugin writes.

    Device texts count for every Ascend chip, also one that this device config does not know: the scheduler's may.
    ``huawei.com/Ascend...`` of other chips are left alone, since Huawei's own device plugin has such annotations.
    """
    if not name.startswith(_SIGNS):
        return False
    if name.startswith(names.RUNTIME_INFO_PREFIX):
        return chips.get(name.removeprefix(names.RUNTIME_INFO_PREFIX)) is not None
    if name == names.PREDICATE_TIME or name.startswith(names.ALLOCATION_PREFIXES):
        return True
    word, mark, _ = name.removeprefix(names.DEVICE_TEXT_PREFIX).partition(names.DEVICE_TEXT_MARK)
    return bool(mark) and (word.startswith(_ASCEND) or chips.get(word) is not None)


def forged(annotations: Mapping[str, Any], chips: ChipTable) -> Iterator[AnnotationError]:
    """What a pod brings along when it is created, though only an allocation writes it."""
    for name, value in annotations.items():
        if records_allocation(name, chips):
            allowed = "only schedulers and device plugins write this, and not before the pod is there"
            remedy = "remove it (a copy of a running pod carries it)"
            yield AnnotationError(annotation_path(name), value, f"{allowed}; {remedy}")


def tampered(new: Any, old: Any, username: str, chips: ChipTable) -> Iterator[AnnotationError]:
    """What differs between two states of a pod, though the user may not change it.

    Args:
        new: the pod as it shall become.
        old: the pod as it is.
        username: who changes it, for the message.
        chips: the chip table.
    """
    after, before = _stored(new), _stored(old)
    for name in dict.fromkeys((*after, *before)):
        value = after.get(name, ABSENT)
        if same(value, before.get(name, ABSENT)):
            continue
        if name == names.MODE or records_allocation(name, chips):
            what = "the mode of a pod is fixed when it is created" if name == names.MODE else "it records an allocation"
            allowed = f"{what}: only schedulers and device plugins change it, and {shown(username)} is not among them"
            remedy = "leave it as it is, or name the account in the setting allocators"
            yield AnnotationError(annotation_path(name), value, f"{allowed}; {remedy}")


def _stored(document: Any) -> Mapping[str, Any]:
    """The annotations of an object, empty where it has none or none that Kubernetes would store."""
    try:
        return annotations_of(document) if isinstance(document, dict) else {}
    except InputError:
        return {}
