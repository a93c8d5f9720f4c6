from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.native import system_compiler
from tests.support.simulated_npu import WIRINGS, Machine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def state() -> Iterator[Path]:
    """Where a machine may be made: in memory, so that first touches of its file cost little."""
    with tempfile.TemporaryDirectory(prefix="npu_sim.", dir="/dev/shm") as folder:
        yield Path(folder) / "machine"


@pytest.fixture
def machine(state: Path) -> Machine:
    """One card of 1 GiB whose contexts and streams cost nothing, so that figures in tests are round."""
    machine = Machine(state)
    machine.tool("create", "memory_mib=1024", "context_mib=0", "stream_kib=0", "kernel_us=0")
    return machine


@pytest.fixture(params=[*WIRINGS, "sanitize/nested"])
def wired(request: pytest.FixtureRequest, machine: Machine) -> Machine:
    """The same under each wiring, and once under AddressSanitizer and UndefinedBehaviorSanitizer."""
    if request.param.startswith("sanitize/"):
        system_compiler()
    machine.wiring = request.param
    return machine
