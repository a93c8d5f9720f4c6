"""Command lines whose faults are one line, like those of every other input."""

from __future__ import annotations

import argparse
from typing import NoReturn

from vnpu.errors import VnpuError


class UsageError(VnpuError):
    """A command line that makes no sense."""


class Parser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        """Tell what is wrong.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{message} (see --help)")
