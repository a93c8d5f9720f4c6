"""The one decision: is a pod soft (hami-core) or hard (template)?

======================  ==========================  =========================================
annotation vnpu-mode    other signs                 mode
======================  ==========================  =========================================
``hami-core``                                       soft
``template``                                        hard
any other value                                     refused, the message lists both values
absent                  a container asks for core   soft
absent                  no core                     the setting ``defaultMode``
======================  ==========================  =========================================

Mutation, validation, fit, extender and device plugin all call :func:`decide`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from vnpu import names
from vnpu.errors import AnnotationError
from vnpu.objects import annotation_path

if TYPE_CHECKING:
    from collections.abc import Mapping


class Mode(StrEnum):
    """The value of the annotation ``huawei.com/vnpu-mode``.

    To everyone but us ``template`` is simply "not hami-core".
    """

    SOFT = "hami-core"
    HARD = "template"


def decide(annotations: Mapping[str, Any], *, core_asked: bool, default: Mode) -> Mode:
    """The mode of an NPU pod.

    Args:
        annotations: the pod's annotations.
        core_asked: whether some container of the pod asks for ``<chip>-core``, whatever the value.
        default: the setting ``defaultMode``.

    Raises:
        AnnotationError: the annotation holds another value than the two modes.
    """
    if names.MODE not in annotations:
        return Mode.SOFT if core_asked else default
    value = annotations[names.MODE]
    for mode in Mode:
        if value == mode.value and isinstance(value, str):
            return mode
    allowed = f"allowed are {Mode.SOFT.value} (soft slice) and {Mode.HARD.value} (fixed template or whole card)"
    raise AnnotationError(annotation_path(names.MODE), value, allowed)
