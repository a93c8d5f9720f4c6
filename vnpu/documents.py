"""The documents of the files that people give, each with the place it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from vnpu import files
from vnpu.errors import FieldError, InputError, VnpuError, item

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD_INPUT: Final = Path("-")
_LIST: Final = "List"


class DocumentError(VnpuError):
    """A document that cannot be used.

    Attributes:
        source: the file's name.
        number: the document in the file, from 1.
        error: the field and what is wrong with it.
    """

    def __init__(self, source: str, number: int, error: FieldError) -> None:
        super().__init__(source, number, error)
        self.source = source
        self.number = number
        self.error = error

    def __str__(self) -> str:
        return f"{self.source}, document {self.number}: {self.error}"


@dataclass(frozen=True, slots=True)
class Document:
    """A value and the place where it stands.

    Attributes:
        source: the file's name.
        number: the document in the file, from 1.
        path: where the value stands in the document: ``""``, or ``items[3]`` in a List.
        value: the JSON value.
    """

    source: str
    number: int
    path: str
    value: Any

    @property
    def place(self) -> str:
        """The place as people write it."""
        return f"{self.source}, document {self.number}" + (f", {self.path}" if self.path else "")

    def __enter__(self) -> Self:
        """Name this document in every field error of the block.

        Raises:
            DocumentError: in place of the field error, and where the value is nested too deep.
        """
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, RecursionError):
            error = InputError("", "nested too deep", "at most some hundred levels are allowed")
        if isinstance(error, FieldError):
            raise DocumentError(self.source, self.number, error.under(self.path)) from error


def read(path: Path) -> Iterator[Document]:
    """The documents of a file, or of standard input for ``-``; a Kubernetes List gives its items one by one.

    Raises:
        InputError: the file cannot be read.
        DocumentError: a document is no YAML or JSON, or a List has no list of items.
    """
    content = files.read_bytes(path)
    source = "standard input" if path == STANDARD_INPUT else str(path)
    number = 0
    documents = files.parse_documents(content, "")
    while True:
        number += 1
        try:
            value = next(documents, None)
        except FieldError as error:
            raise DocumentError(source, number, error) from error
        if value is None:
            return
        yield from _items(Document(source, number, "", value))


def _items(document: Document) -> Iterator[Document]:
    value = document.value
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind.endswith(_LIST):
        yield document
        return
    items = value.get("items")
    if items is None:
        return
    with document:
        if not isinstance(items, list):
            raise InputError("items", items, "a list is expected")
    # The API server leaves the kind out of the items of a PodList; kubectl's own List has it in each of them.
    typed = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix(_LIST)} if kind != _LIST else {}
    for index, entry in enumerate(items):
        whole = typed | entry if isinstance(entry, dict) else entry
        yield Document(document.source, document.number, item("items", index), whole)
