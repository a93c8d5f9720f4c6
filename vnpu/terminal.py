"""Standard output and error as commands meet them: closed, full, shown to less than Unicode, read to the half."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from vnpu.errors import VnpuError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator


class OutputError(VnpuError):
    """A report that standard output does not take."""


@contextmanager
def output() -> Iterator[TextIO]:
    """Standard output for a report; what is written is out when the block ends.

    A character that the terminal cannot show becomes a question mark. Where the reader goes away, the block ends
    quietly, and what is written later goes nowhere.

    Raises:
        OutputError: standard output is closed, or cannot take the report.
    """
    stream = sys.stdout
    if stream is None:  # as Python has it where a process starts with its standard output closed
        raise OutputError("standard output is closed")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        raise OutputError(f"standard output: {error.strerror or error}") from error


def complain(message: str) -> None:
    """One line on standard error, as far as that takes any."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(printable(message) + "\n")


def _discard(stream: TextIO) -> None:
    """Send what is still to be written nowhere: Python would complain once more when it closes standard output."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
