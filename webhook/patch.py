"""Assignments in, JSON Patch (RFC 6902) out.

Admission names single keys (:class:`vnpu.admission.outcome.Set`). This module adds what the wire format asks for:
parents that are absent or null are created, once for all assignments below them, and pointers are escaped. A patch
never carries an object that was there before, so it cannot undo what another webhook wrote meanwhile.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypedDict

from vnpu.admission.outcome import APPEND
from vnpu.errors import ABSENT, InputError, path_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vnpu.admission.outcome import Set

    _Path = tuple[str | int, ...]


class Operation(TypedDict):
    """One operation of a patch: ``add`` or ``replace``."""

    op: str
    path: str
    value: Any


def operations(document: Any, sets: Iterable[Set]) -> list[Operation]:
    """The patch that makes all assignments; empty when the document says everything already.

    Args:
        document: the JSON object that the patch is for; it is not changed.
        sets: assignments, with paths of at least one element. Whole numbers in a path and ``"-"`` mean lists, other
            texts mean objects.

    Raises:
        InputError: the document has another shape than a path supposes: a text where an object is expected, or a list
            without the element.
        ValueError: two assignments contradict each other: both write the same place, one writes into the value of the
            other, or they differ in whether a container is a list.
    """
    draft = _Draft(document)
    for assignment in sets:
        draft.assign(assignment.path, assignment.value)
    return draft.patch


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path."""
    return "".join([_step(name) for name in path])


def _step(name: str | int) -> str:
    # In this order: the other way round, the "~" of a fresh "~1" would be escaped once more.
    return f"/{name}" if isinstance(name, int) else "/" + name.replace("~", "~0").replace("/", "~1")


class _Container:
    """An object or a list on the way to what is assigned.

    Attributes:
        value: as it stands in the document, or as the patch makes it.
        pointer: where it stands.
        made: whether the patch makes it: what is assigned below it goes into its value, without a further operation.
    """

    __slots__ = ("made", "pointer", "value")

    def __init__(self, value: Any, place: str, *, made: bool) -> None:
        self.value = value
        self.pointer = place
        self.made = made


class _Draft:
    """A patch while it is written."""

    def __init__(self, document: Any) -> None:
        self.patch: list[Operation] = []
        self._containers: dict[_Path, _Container] = {(): _Container(document, "", made=False)}
        self._assigned: set[_Path] = set()

    def assign(self, path: _Path, value: Any) -> None:
        """Write one assignment down."""
        name = path[-1]
        container = self._container(path[:-1], _in_list(name))
        if name == APPEND:
            if container.made:
                container.value.append(value)
            else:
                self.patch.append({"op": "add", "path": container.pointer + "/-", "value": value})
            return
        if path in self._assigned or path in self._containers:
            raise ValueError(f"{pointer(path)} is written, or written into, by another assignment")
        self._assigned.add(path)
        found = _child(container, path)
        if not _same(found, value):
            self._write(container, name, found, value)

    def _container(self, path: _Path, in_list: bool) -> _Container:  # noqa: FBT001 - called for each assignment
        """The container at a path; it is made where it is not there."""
        container = self._containers.get(path)
        if container is None:
            name = path[-1]
            parent = self._container(path[:-1], _in_list(name))
            if path in self._assigned or name == APPEND:
                raise ValueError(f"{pointer(path)} is the value of another assignment, and cannot be written into")
            value = _child(parent, path)
            made = value is None or value is ABSENT
            if made:
                new: Any = [] if in_list else {}
                self._write(parent, name, value, new)
                value = new
            container = self._containers[path] = _Container(value, parent.pointer + _step(name), made=made)
        if not isinstance(container.value, list if in_list else dict):
            expected = "a list is expected" if in_list else "an object is expected"
            if container.made:
                raise ValueError(f"{pointer(path)}: {expected} by another assignment")
            raise InputError(path_of(path), container.value, expected)
        return container

    def _write(self, container: _Container, name: str | int, found: Any, value: Any) -> None:
        if container.made:
            container.value[name] = value
            return
        # "add" to a list would insert. In an object it also replaces a null, which the API server may have dropped
        # from its own copy of the document, and then "replace" would fail.
        there = isinstance(name, int) or (found is not None and found is not ABSENT)
        self.patch.append(
            {"op": "replace" if there else "add", "path": container.pointer + _step(name), "value": value}
        )


def _in_list(name: str | int) -> bool:
    return isinstance(name, int) or name == APPEND


def _child(container: _Container, path: _Path) -> Any:
    name, value = path[-1], container.value
    if isinstance(name, str):
        return value.get(name, ABSENT)
    if not 0 <= name < len(value):
        raise InputError(path_of(path), ABSENT, f"an element is expected, and the list has {len(value)}")
    return value[name]


def _same(found: Any, value: Any) -> bool:
    """Equality of JSON: to Python ``1``, ``1.0`` and ``true`` are equal as well."""
    return bool(found == value) and json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)
