"""Assignments in, JSON Patch (RFC 6902) out.

Admission names single keys (:class:`vnpu.admission.outcome.Set`). This module adds what the wire format asks for:
parents that are absent or null are created, once for all assignments below them, and pointers are escaped. A patch
never carries an object that was there before, so it cannot undo what another webhook wrote meanwhile.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypedDict

from vnpu.admission.outcome import APPEND
from vnpu.errors import ABSENT, InputError, item, key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vnpu.admission.outcome import Set

    _Path = tuple[str | int, ...]


class Operation(TypedDict):
    """One operation of a patch: ``add`` or ``replace``."""

    op: str
    path: str
    value: Any


class _Changes:
    """What is assigned below one container: per key a value or further changes, and the elements to append."""

    __slots__ = ("appended", "below", "is_list", "values")

    def __init__(self, first: str | int) -> None:
        self.is_list = _in_list(first)
        self.below: dict[str | int, _Changes] = {}
        self.values: dict[str | int, Any] = {}
        self.appended: list[Any] = []


def operations(document: Any, sets: Iterable[Set]) -> list[Operation]:
    """The patch that makes all assignments; empty when the document says everything already.

    Args:
        document: the JSON object that the patch is for; it is not changed.
        sets: assignments, with paths of at least one element. Whole numbers in a path and ``"-"`` mean lists, other
            texts mean objects. Where two name the same path, the later one counts.

    Raises:
        InputError: the document has another shape than a path supposes: a text where an object is expected, or a list
            without the element.
        ValueError: two assignments contradict each other: one writes into the value of the other, or they differ in
            whether a container is a list.
    """
    changes: _Changes | None = None
    for assignment in sets:
        changes = changes or _Changes(assignment.path[0])
        _insert(changes, assignment.path, assignment.value)
    patch: list[Operation] = []
    if changes is not None:
        _compare(document, changes, (), patch)
    return patch


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path."""
    # In this order: the other way round, the "~" of a fresh "~1" would be escaped once more.
    return "".join([f"/{str(name).replace('~', '~0').replace('/', '~1')}" for name in path])


def _in_list(name: str | int) -> bool:
    return isinstance(name, int) or name == APPEND


def _insert(changes: _Changes, path: _Path, value: Any) -> None:
    for depth, name in enumerate(path, start=1):
        if changes.is_list is not _in_list(name):
            raise ValueError(f"{pointer(path[: depth - 1])} is a list to one assignment and an object to another")
        if depth == len(path):
            break
        below = changes.below.get(name)
        if below is None:
            if name == APPEND or name in changes.values:
                raise ValueError(f"{pointer(path)} lies below a value that another assignment writes")
            below = changes.below[name] = _Changes(path[depth])
        changes = below
    if name == APPEND:
        changes.appended.append(value)
    elif name in changes.below:
        raise ValueError(f"{pointer(path)} would overwrite what another assignment writes below it")
    else:
        changes.values[name] = value


def _compare(container: Any, changes: _Changes, path: _Path, patch: list[Operation]) -> None:
    """Operations for changes below a container that is there."""
    if not isinstance(container, list if changes.is_list else dict):
        raise InputError(_place(path), container, f"{'a list' if changes.is_list else 'an object'} is expected")
    for name, further in changes.below.items():
        found = _child(container, name, path)
        if found is None or found is ABSENT:
            patch.append(_write(found, name, path, _built(further, (*path, name))))
        else:
            _compare(found, further, (*path, name), patch)
    for name, value in changes.values.items():
        found = _child(container, name, path)
        if not _same(found, value):
            patch.append(_write(found, name, path, value))
    if changes.appended:
        end = pointer((*path, APPEND))
        patch.extend([{"op": "add", "path": end, "value": value} for value in changes.appended])


def _child(container: Any, name: str | int, path: _Path) -> Any:
    if isinstance(name, str):
        return container.get(name, ABSENT)
    if not 0 <= name < len(container):
        allowed = f"an element is expected, and the list has {len(container)}"
        raise InputError(_place((*path, name)), ABSENT, allowed)
    return container[name]


def _write(found: Any, name: str | int, path: _Path, value: Any) -> Operation:
    # "add" to a list would insert. In an object it also replaces a null, which the API server may have dropped from
    # its own copy of the document, and then "replace" would fail.
    there = isinstance(name, int) or (found is not None and found is not ABSENT)
    return {"op": "replace" if there else "add", "path": pointer((*path, name)), "value": value}


def _built(changes: _Changes, path: _Path) -> Any:
    """The container that the changes make where there was none."""
    made = {name: _built(further, (*path, name)) for name, further in changes.below.items()} | changes.values
    if not changes.is_list:
        return made
    if made:
        missing = (*path, next(iter(made)))
        raise InputError(_place(missing), ABSENT, "an element is expected, and there is no list")
    return list(changes.appended)


def _same(found: Any, value: Any) -> bool:
    """Equality of JSON: to Python ``1``, ``1.0`` and ``true`` are equal as well."""
    return bool(found == value) and json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)


def _place(path: _Path) -> str:
    """The path as people read it."""
    place = ""
    for name in path:
        place = item(place, name) if isinstance(name, int) else key(place, name)
    return place
