"""Kubernetes objects as JSON: the mappings in them, and where annotations stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import InputError, key, path_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ANNOTATIONS: Final = ("metadata", "annotations")

ENDED_PHASES: Final = ("Succeeded", "Failed")
"""``status.phase`` of pods that run no more and hold nothing."""


def mapping_at(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The mapping at ``document[names[0]][names[1]]...``, empty where it or one on the way is absent.

    Raises:
        InputError: one of them is no mapping.
    """
    for depth, name in enumerate(names, start=1):
        value = document.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise InputError(path_of(names[:depth]), value, "a mapping is expected")
        document = value
    return document


def annotations_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of a pod or node, empty where there are none.

    Raises:
        InputError: the metadata or its annotations are no mappings.
    """
    return mapping_at(document, *_ANNOTATIONS)


def annotation_path(name: str) -> str:
    """Where the annotation ``name`` of a pod or node stands, for errors."""
    return key(path_of(_ANNOTATIONS), name)


def unique(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """The mapping of these keys and values.

    Raises:
        InputError: a key stands twice.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[Any] = set()
        for name, _ in pairs:
            if name in seen:
                raise InputError("", name, "each key may stand once in a mapping")
            seen.add(name)
    return result
