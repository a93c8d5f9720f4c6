"""Settings and chip table from the files of an administrator: webhook, preview and planner judge by the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu import device_config, documents, files, names
from vnpu.admission.settings import Settings, parse_settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import ABSENT, InputError, key
from vnpu.objects import mapping_at

if TYPE_CHECKING:
    from pathlib import Path

    from vnpu.chips import ChipTable
    from vnpu.documents import Document

_CONFIG_MAP: Final = "ConfigMap"


def read_settings(path: Path | None) -> tuple[Settings, tuple[str, ...]]:
    """The settings in a file, and what its administrator should know; the defaults without one.

    Raises:
        VnpuError: the file cannot be read, or holds a key or value that is not allowed; the message names it.
    """
    if path is None:
        return Settings(), ()
    with _only_document(path) as document:
        settings = parse_settings(document.value)
    return settings, tuple(f"{document.place}: {warning}" for warning in settings.warnings)


def read_chips(path: Path | None) -> tuple[ChipTable, tuple[str, ...]]:
    """The chip table in a device config, and what its administrator should know; the default table without a file.

    The ConfigMap that holds the device config is read too, as ``kubectl get configmap -o yaml`` prints it.

    Raises:
        VnpuError: the file cannot be read, or holds a field that cannot be used; the message names it.
    """
    if path is None:
        return DEFAULT_CHIPS, ()
    with _only_document(path) as document:
        config = device_config.parse(_unwrapped(document.value))
    return config.table, tuple(f"{document.place}: {warning}" for warning in config.warnings)


def _unwrapped(value: Any) -> Any:
    """The document that a ConfigMap holds under the key of HAMi's chart; any other value as it is."""
    if not isinstance(value, dict) or value.get("kind") != _CONFIG_MAP:
        return value
    data = mapping_at(value, "data")
    path, text = key("data", names.DEVICE_CONFIG_KEY), data.get(names.DEVICE_CONFIG_KEY, ABSENT)
    if not isinstance(text, str):
        raise InputError(path, text, "the device config is expected there, as a text")
    found = list(files.parse_documents(text.encode(), path))
    if len(found) != 1:
        raise InputError(path, f"{len(found)} documents", "one document is expected")
    return found[0]


def _only_document(path: Path) -> Document:
    found = list(documents.read(path))
    if len(found) > 1:
        raise InputError(str(path), f"{len(found)} documents", "one document is expected")
    return found[0] if found else documents.Document(str(path), 1, "", {})
