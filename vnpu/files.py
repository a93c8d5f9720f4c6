"""Reading YAML and JSON documents from disk: the one edge of vnpu that touches files.

PyYAML is imported when a file is read, so that ``import vnpu`` needs the standard library only.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from vnpu import scalars
from vnpu.errors import InputError
from vnpu.objects import unique
from vnpu.yaml_loader import loader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST_FILE: Final = 256 * 2**20
"""Bytes; ``kubectl get pods -A -o json`` of a 5,000 node cluster stays below."""

LARGEST_YAML: Final = 128 * 2**20
"""Bytes; some 50 seconds and 2 GiB of memory for one list of that size, where JSON takes a tenth."""

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Half a character, which JSON can write and no text can hold, unless the other half follows."""


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

    Both give what JSON can hold, as ``kubectl`` reads it (:mod:`vnpu.scalars`): a date stays the text that it is, and
    so does a number or a truth value where it is a key. Tags for anything else are refused.

    Args:
        content: UTF-8, as read from a file.
        source: the file's name, for the error.

    Raises:
        InputError: not UTF-8, not YAML, a key that stands twice in a mapping, nested too deep, or PyYAML is needed and
            not installed.
    """
    try:
        yield from _documents(content)
    except InputError as error:
        raise error.under(source) from error
    except RecursionError as error:
        raise InputError(source, "nested too deep", "at most some hundred levels are allowed") from error


def _documents(content: bytes) -> Iterator[Any]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("", f"byte {error.start}", "UTF-8 text is expected") from error
    if text.lstrip()[:1] in ("{", "["):
        try:
            document = json.loads(
                text, object_pairs_hook=unique, parse_float=scalars.number, parse_constant=scalars.number
            )
            if _SURROGATE.search(text):
                json.dumps(document, ensure_ascii=False).encode()
        except ValueError:
            pass  # a flow mapping of YAML, several documents, or what YAML refuses with its place
        else:
            yield document
            return
    if len(content) > LARGEST_YAML:
        allowed = f"YAML of at most {LARGEST_YAML} bytes is read: give JSON, such as kubectl -o json prints"
        raise InputError("", f"{len(content)} bytes", allowed)
    yield from _yaml_documents(text)


def _yaml_documents(text: str) -> Iterator[Any]:
    try:
        import yaml  # noqa: PLC0415 - only where a file is read
    except ImportError as error:
        allowed = "YAML needs PyYAML: pip install 'ascend-vnpu[cli]', or give JSON"
        raise InputError("", "not JSON", allowed) from error
    try:
        for document in yaml.load_all(text, loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader))):
            if document is not None:
                yield document
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError("", f"{where}{problem}", "YAML or JSON is expected") from error
    except TypeError as error:
        raise InputError("", str(error), "keys of mappings are texts") from error
    except InputError:
        raise
    except (ValueError, KeyError, IndexError) as error:  # "!!int text", or more than JSON holds
        raise InputError("", str(error), "numbers and truth values that can be read are expected") from error
