"""Settings and chip table from the files of an administrator: webhook, preview and planner judge by the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vnpu import device_config, documents
from vnpu.admission.settings import Settings, parse_settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from vnpu.chips import ChipTable
    from vnpu.documents import Document


def read_settings(path: Path | None) -> Settings:
    """The settings in a file; the defaults without one.

    Raises:
        VnpuError: the file cannot be read, or holds a key or value that is not allowed; the message names it.
    """
    if path is None:
        return Settings()
    with _only_document(path) as document:
        return parse_settings(document.value)


def read_chips(path: Path | None) -> tuple[ChipTable, tuple[str, ...]]:
    """The chip table in a device config, and what its administrator should know; the default table without a file.

    Raises:
        VnpuError: the file cannot be read, or holds a field that cannot be used; the message names it.
    """
    if path is None:
        return DEFAULT_CHIPS, ()
    with _only_document(path) as document:
        config = device_config.parse(document.value)
    return config.table, tuple(f"{document.place}: {warning}" for warning in config.warnings)


def _only_document(path: Path) -> Document:
    found = list(documents.read(path))
    if len(found) > 1:
        raise InputError(str(path), f"{len(found)} documents", "one document is expected")
    return found[0] if found else documents.Document(str(path), 1, "", {})
