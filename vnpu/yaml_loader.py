"""The loader of YAML documents: what JSON can hold, loud about keys that stand twice and aliases that explode.

It is made from one of PyYAML's own, which :mod:`vnpu.files` imports when there is YAML to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu import scalars
from vnpu.errors import InputError, shown
from vnpu.objects import unique

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_VALUES: Final = 10_000_000
"""Values of one YAML document, counted as often as aliases repeat them; no honest file comes near."""
_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TAG}str"
_MERGE: Final = f"{_TAG}merge"
_SCALARS: Final[dict[type, str]] = {
    type(None): f"{_TAG}null",
    bool: f"{_TAG}bool",
    int: f"{_TAG}int",
    float: f"{_TAG}float",
    str: _TEXT,
}
"""The tags of what stands in JSON besides mappings and lists."""


def loader(base: Any) -> Any:
    """A loader for what JSON can hold, as ``kubectl`` reads it.

    Args:
        base: one of PyYAML's safe loaders.
    """
    text = base.yaml_constructors[_TEXT]
    made: Any = type("Loader", (_Json, base), {"yaml_constructors": {_TEXT: text, None: base.construct_undefined}})
    for tag in _SCALARS.values():
        if tag != _TEXT:
            made.add_constructor(tag, _Json.scalar)
    made.add_constructor(f"{_TAG}map", _Json.mapping)
    made.add_constructor(f"{_TAG}seq", _Json.sequence)
    return made


class _Json:
    """What differs from PyYAML's loaders."""

    construct_object: Any
    construct_scalar: Any
    construct_sequence: Any

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a node that has none."""
        if kind.id != "scalar":
            return super().resolve(kind, value, implicit)  # type: ignore[misc]
        if not implicit[0]:
            return _TEXT
        return _MERGE if value == "<<" else _SCALARS[type(scalars.read(value))]

    def scalar(self, node: Any) -> Any:
        """What a scalar means; a tag that stands there must be right, but a whole number is a float too."""
        value = scalars.read(self.construct_scalar(node))
        kind = _SCALARS[type(value)]
        if kind != node.tag and (kind, node.tag) != (_SCALARS[int], _SCALARS[float]):
            raise ValueError(f"{shown(node.value)} is no {node.tag.removeprefix(_TAG)}")
        return value

    def flatten_mapping(self, node: Any) -> None:
        """Merge what ``<<`` names; only the keys that stand in the mapping itself must be unique."""
        if not hasattr(node, "own_keys"):
            node.own_keys = unique([(self.key(name), name) for name, _ in node.value if name.tag != _MERGE])
        super().flatten_mapping(node)  # type: ignore[misc]
        node.value = list({self.key(pair[0]): pair for pair in node.value}.values())

    def key(self, node: Any) -> str:
        """A key as the text that it is in JSON."""
        name = self.construct_object(node, deep=True)
        if isinstance(name, bool):
            return str(name).lower()
        if not isinstance(name, str | int | float):
            raise TypeError(f"a key that is {shown(name)}")
        return str(name)

    def mapping(self, node: Any) -> dict[str, Any]:
        """A mapping, with all that it merges."""
        self.flatten_mapping(node)
        result = {self.key(name): self.construct_object(value, deep=True) for name, value in node.value}
        self.weigh(node, (value for _, value in node.value))
        return result

    def sequence(self, node: Any) -> list[Any]:
        """A list."""
        items: list[Any] = self.construct_sequence(node, deep=True)
        self.weigh(node, node.value)
        return items

    def weigh(self, node: Any, children: Iterable[Any]) -> None:
        """Count the values below a node as often as aliases repeat them."""
        node.weight = 1 + sum(getattr(child, "weight", 1) for child in children)
        if node.weight > _MOST_VALUES:
            place = f"line {node.start_mark.line + 1}"
            raise InputError("", place, f"aliases repeat more than {_MOST_VALUES} values here; write fewer of them")
