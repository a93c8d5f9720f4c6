"""Reading YAML and JSON documents from disk: the one edge of vnpu that touches files.

PyYAML is imported when a file is read, so that ``import vnpu`` needs the standard library only.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LARGEST_FILE: Final = 256 * 2**20
"""Bytes; ``kubectl get pods -A -o json`` of a 5,000 node cluster stays below."""

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Half a character, which JSON can write and no text can hold, unless the other half follows."""
_MOST_VALUES: Final = 10_000_000
"""Values of one YAML document, counted as often as aliases repeat them; no honest file comes near."""
_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = ("null", "bool", "int", "float", "str")
"""What stands in JSON besides mappings and lists."""


def read_bytes(path: Path) -> bytes:
    """The content of a file, or of standard input for ``-``.

    Raises:
        InputError: the file cannot be read, or is larger than :data:`LARGEST_FILE`.
    """
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(LARGEST_FILE + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a readable file is expected") from error
    if len(content) > LARGEST_FILE:
        raise InputError(str(path), f"more than {LARGEST_FILE} bytes", "a smaller file is expected")
    return content


def parse_documents(content: bytes, source: str) -> Iterator[Any]:
    """The documents of a YAML or JSON text; empty documents are left out.

    Both give what JSON can hold: a date stays the text that it is, as it does for ``kubectl``, and so does a number
    or a truth value where it is a key. Tags for anything else are refused.

    Args:
        content: UTF-8, as read from a file.
        source: the file's name, for the error.

    Raises:
        InputError: not UTF-8, not YAML, a key that stands twice in a mapping, nested too deep, or PyYAML is needed and
            not installed.
    """
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip()[:1] in ("{", "["):
            try:
                document = json.loads(text, object_pairs_hook=_unique)
                if _SURROGATE.search(text):
                    json.dumps(document, ensure_ascii=False).encode()
            except ValueError:
                pass  # a flow mapping of YAML, several documents, or what YAML refuses with its place
            else:
                yield document
                return
        yield from _yaml_documents(text, source)
    except UnicodeDecodeError as error:
        raise InputError(source, f"byte {error.start}", "UTF-8 text is expected") from error
    except RecursionError as error:
        raise InputError(source, "nested too deep", "at most some hundred levels are allowed") from error
    except _DuplicateKeyError as error:
        raise InputError(source, error.args[0], "each key may stand once in a mapping") from error


def _yaml_documents(text: str, source: str) -> Iterator[Any]:
    try:
        import yaml  # noqa: PLC0415 - only where a file is read
    except ImportError as error:
        allowed = "YAML needs PyYAML: pip install 'ascend-vnpu[cli]', or give JSON"
        raise InputError(source, "not JSON", allowed) from error
    try:
        for document in yaml.load_all(text, _loader(yaml)):
            if document is not None:
                yield document
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(source, f"{where}{problem}", "YAML or JSON is expected") from error
    except TypeError as error:
        raise InputError(source, str(error), "keys of mappings are texts") from error
    except (ValueError, KeyError, IndexError) as error:  # "!!int text", or more digits than Python reads
        raise InputError(source, str(error), "numbers and truth values that can be read are expected") from error


def _loader(yaml: Any) -> Any:
    """A loader for what JSON can hold, loud about a key that stands twice and about aliases that explode."""
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_constructors: Final = {f"{_TAG}{kind}": base.yaml_constructors[f"{_TAG}{kind}"] for kind in _SCALARS} | {
            None: base.construct_undefined
        }
        yaml_implicit_resolvers: Final = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

        def flatten_mapping(self, node: Any) -> None:
            """Merge what ``<<`` names; only the keys that stand in the mapping itself must be unique."""
            if not hasattr(node, "own_keys"):
                node.own_keys = _unique(
                    [(self.key(name), name) for name, _ in node.value if name.tag != f"{_TAG}merge"]
                )
            super().flatten_mapping(node)
            node.value = list({self.key(pair[0]): pair for pair in node.value}.values())

        def key(self, node: Any) -> str:
            """A key as the text that it is in JSON."""
            name = self.construct_object(node, deep=True)
            if isinstance(name, bool):
                return str(name).lower()
            if not isinstance(name, str | int):
                raise TypeError(f"a key that is {shown(name)}")
            return str(name)

        def mapping(self, node: Any) -> dict[str, Any]:
            self.flatten_mapping(node)
            result = {self.key(name): self.construct_object(value, deep=True) for name, value in node.value}
            self.weigh(node, (value for _, value in node.value))
            return result

        def sequence(self, node: Any) -> list[Any]:
            items: list[Any] = self.construct_sequence(node, deep=True)
            self.weigh(node, node.value)
            return items

        def weigh(self, node: Any, children: Iterable[Any]) -> None:
            """Count the values below a node as often as aliases repeat them."""
            node.weight = 1 + sum(getattr(child, "weight", 1) for child in children)
            if node.weight > _MOST_VALUES:
                raise yaml.constructor.ConstructorError(
                    None, None, f"aliases repeat more than {_MOST_VALUES} values", node.start_mark
                )

    Loader.add_constructor(f"{_TAG}map", Loader.mapping)
    Loader.add_constructor(f"{_TAG}seq", Loader.sequence)
    return Loader


class _DuplicateKeyError(Exception):
    pass


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[Any] = set()
        for name, _ in pairs:
            if name in seen:
                raise _DuplicateKeyError(name)
            seen.add(name)
    return result
