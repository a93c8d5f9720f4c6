"""Soft slices of Huawei Ascend NPUs: the knowledge.

Chips and templates, exact quantities, modes, requests, the rules of admission, annotation codecs, fit and plans, and
what a container gets. Standard library only, no clock, no files, no network in the core.

What others build on::

    from vnpu import Card, Chip, ChipTable, Node, PodRequest, SliceRequest, Template, container_response, pod_request
    from vnpu.fit import Policy, Workload, explain, fit, place, plan
    from vnpu.admission import Settings, mutate_pod, parse_settings, validate_pod
    from vnpu.annotations import devices, handshake, lock, quotas, register, runtime_info
    from vnpu.ledger import book, held, read_node

The names of this package are loaded when they are first asked for: ``import vnpu`` alone costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from vnpu.allocation import ContainerResponse, container_response
    from vnpu.cards import Card, Node, Use
    from vnpu.chips import DEFAULT_CHIPS, Chip, ChipTable, Template
    from vnpu.errors import FieldError, VnpuError
    from vnpu.mode import Mode
    from vnpu.request import PodRequest, SliceRequest, pod_request

__all__ = [
    "DEFAULT_CHIPS",
    "Card",
    "Chip",
    "ChipTable",
    "ContainerResponse",
    "FieldError",
    "Mode",
    "Node",
    "PodRequest",
    "SliceRequest",
    "Template",
    "Use",
    "VnpuError",
    "container_response",
    "pod_request",
]

_HOMES: Final = {
    "vnpu.allocation": ("ContainerResponse", "container_response"),
    "vnpu.cards": ("Card", "Node", "Use"),
    "vnpu.chips": ("DEFAULT_CHIPS", "Chip", "ChipTable", "Template"),
    "vnpu.errors": ("FieldError", "VnpuError"),
    "vnpu.mode": ("Mode",),
    "vnpu.request": ("PodRequest", "SliceRequest", "pod_request"),
}
_HOME_OF: Final = {name: module for module, exported in _HOMES.items() for name in exported}


if not TYPE_CHECKING:  # a type checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
