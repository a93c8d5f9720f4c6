"""Standard output as commands meet it: a terminal that cannot show everything, a reader that has seen enough."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def output() -> Iterator[TextIO]:
    """Standard output for a report; what is written is out when the block ends.

    A character that the terminal cannot show becomes a question mark. Where the reader goes away, the block ends
    quietly, and what is written later goes nowhere.
    """
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        # Python would complain once more when it closes standard output.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
