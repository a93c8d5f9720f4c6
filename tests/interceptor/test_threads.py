"""The whole library under ThreadSanitizer: threads of an application, and the helper, in one process.

What processes do to each other it cannot see; test_books.py and test_turns.py let threads play processes for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import native
from tests.support.npu_client import Machine, client

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.containers import Container

REPORT = "exitcode=66"


def test_threads_of_a_process_do_not_race(container: Container, neighbour: Container, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "npu", preload=native.sanitized("thread"))
    with (
        container.running(),
        neighbour.running(),
        client(container, machine, TSAN_OPTIONS=REPORT) as npu,
        client(neighbour, machine, TSAN_OPTIONS=REPORT) as other,
    ):
        for one in (npu, other):
            one.kernel(100)
        assert npu.call("aclrtCreateStream", "&s") == 0
        # The neighbour takes turns with it, so that helpers close, drain and pass.
        other.start("stress 1 1500 64")
        assert npu.ask("burst 400 rtKernelLaunch 0 1 @k 32 0 $s") == "800"
        assert npu.ask("burst 400 rtMalloc &a 4096 0 33") == "800"
        assert npu.ask("stress 2 1000 64") == other.answer() == "0"
        assert npu.call("aclrtDestroyStream", "$s") == 0
        assert [npu.end(), other.end()] == [0, 0]
