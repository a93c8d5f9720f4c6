"""Standard output and error as commands meet them: closed, full, shown to less than Unicode, read to the half."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TextIO

from vnpu.errors import InputError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_OUTPUT: Final = "standard output"
_EXPECTED: Final = "a file, pipe or terminal that takes the report is expected"


@contextmanager
def output() -> Iterator[TextIO]:
    """Standard output for a report; what is written is out when the block ends.

    A character that the terminal cannot show becomes a question mark. Where the reader goes away, the block ends
    quietly, and what is written later goes nowhere.

    Raises:
        InputError: standard output is closed, or cannot take the report.
    """
    stream = sys.stdout
    if stream is None:  # as Python has it where a process starts with its standard output closed
        raise InputError(_OUTPUT, "closed", _EXPECTED)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        raise InputError(_OUTPUT, error.strerror or str(error), _EXPECTED) from error


def complain(message: str) -> None:
    """One line on standard error, as far as that takes any."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(printable(message) + "\n")


def _discard(stream: TextIO) -> None:
    """Send what is still to be written nowhere: Python would complain once more when it closes standard output."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
