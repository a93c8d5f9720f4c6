"""What the webhook judges by, from files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vnpu import configuration
from webhook.review import Context

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Loaded:
    """What to judge by, and what the administrator should know about the files."""

    context: Context
    warnings: tuple[str, ...]


def load(settings_file: Path | None, device_config_file: Path | None) -> Loaded:
    """Read both files; without one, its defaults hold.

    Raises:
        VnpuError: a file cannot be read, or holds what cannot be used; the message names file and field.
    """
    settings, notes = configuration.read_settings(settings_file)
    chips, warnings = configuration.read_chips(device_config_file)
    return Loaded(Context(settings, chips), (*notes, *warnings))
