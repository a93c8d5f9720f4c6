"""What the webhook judges by, read from files: settings and device config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from vnpu import device_config, files
from vnpu.admission.settings import parse_settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import ConfigError, FieldError, VnpuError
from webhook.review import Context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_Parsed = TypeVar("_Parsed")


class ConfigFileError(VnpuError):
    """A configuration file that cannot be used; the text names the file and the field."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What to judge by, and what the administrator should know about the files."""

    context: Context
    warnings: tuple[str, ...] = ()


def load(settings_file: Path | None, device_config_file: Path | None) -> Loaded:
    """Read both files; without one, the defaults hold.

    Raises:
        ConfigFileError: a file cannot be read, or holds what cannot be used.
    """
    settings = parse_settings(None) if settings_file is None else _parsed(settings_file, parse_settings)
    if device_config_file is None:
        return Loaded(Context(settings, DEFAULT_CHIPS))
    config = _parsed(device_config_file, device_config.parse)
    return Loaded(
        Context(settings, config.table), tuple(f"{device_config_file}: {warning}" for warning in config.warnings)
    )


def _parsed(path: Path, parse: Callable[[Any], _Parsed]) -> _Parsed:
    try:
        documents = list(files.parse_documents(files.read_bytes(path), ""))
        if len(documents) > 1:
            raise ConfigError("", f"{len(documents)} documents", "one document is expected")
        return parse(documents[0] if documents else None)
    except FieldError as error:
        raise ConfigFileError(f"{path}: {error}") from error
