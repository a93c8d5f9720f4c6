"""Reading YAML and JSON documents from disk: the one edge of vnpu that touches files.

PyYAML is imported when a file is read, so that ``import vnpu`` needs the standard library only.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST_FILE: Final = 256 * 2**20
"""Bytes; ``kubectl get pods -A -o json`` of a 5,000 node cluster stays below."""


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

    Args:
        content: UTF-8, as read from a file.
        source: the file's name, for the error.

    Raises:
        InputError: not UTF-8, not YAML, a key that stands twice in a mapping, or nested too deep.
    """
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip()[:1] in ("{", "["):
            try:
                yield json.loads(text, object_pairs_hook=_unique)
            except json.JSONDecodeError:
                pass  # a flow mapping of YAML, or several documents
            else:
                return
        yield from _yaml_documents(text, source)
    except UnicodeDecodeError as error:
        raise InputError(source, f"byte {error.start}", "UTF-8 text is expected") from error
    except RecursionError as error:
        raise InputError(source, "nested too deep", "at most some hundred levels are allowed") from error
    except _DuplicateKeyError as error:
        raise InputError(source, error.args[0], "each key may stand once in a mapping") from error


def _yaml_documents(text: str, source: str) -> Iterator[Any]:
    import yaml  # noqa: PLC0415 - only where a file is read

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """Safe, and loud about a key that stands twice."""

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        loader.flatten_mapping(node)
        pairs = [(loader.construct_object(k, deep=True), loader.construct_object(v, deep=True)) for k, v in node.value]
        return _unique(pairs)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        for document in yaml.load_all(text, Loader):
            if document is not None:
                yield document
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(source, f"{where}{problem}", "YAML or JSON is expected") from error
    except TypeError as error:  # an unhashable key, such as a mapping
        raise InputError(source, str(error), "keys of mappings are texts") from error


class _DuplicateKeyError(ValueError):
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
