"""``python -m certs keep`` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from certs.folder import stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from certs.trust import KeyPair

DEADLINE_S = 60.0


@dataclass
class Keeper:
    """A process that keeps certificates, and what it said."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: list[dict[str, Any]] = field(default_factory=list)

    @property
    def served(self) -> KeyPair | None:
        return stored(self.folder)[0]

    def wait_until_it_says(self, text: str) -> dict[str, Any]:
        return wait_for(
            lambda: next((line for line in self.log if text in json.dumps(line)), None), f"{text}: {self.log}"
        )


def wait_for(found: Any, what: str) -> Any:
    """Look until it is there."""
    deadline = time.monotonic() + DEADLINE_S
    while not (result := found()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return result


@contextmanager
def keeping(arguments: Sequence[str], folder: Path) -> Iterator[Keeper]:
    command = [sys.executable, "-m", "certs", "keep", *arguments, "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    keeper = Keeper(process, folder)

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            keeper.log.append(json.loads(line))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield keeper
    finally:
        process.terminate()
        assert process.wait(DEADLINE_S) == 0, "a signal ends it in order"
        reader.join()
        assert process.stdout is not None
        process.stdout.close()
