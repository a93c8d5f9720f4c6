"""What a container sees of its cards through DCMI, DSMI and npu-smi."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import native
from tests.support.npu_client import MIB, Machine, client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.containers import Container

QUOTA = 1024
CARD_MIB = 65536


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "npu")


@pytest.fixture
def kept(container: Container) -> Iterator[Container]:
    with container.running():
        yield container


def npu_smi(container: Container, machine: Machine, *, preload: bool = True) -> str:
    env = {**os.environ, **container.env, **machine.env}
    if preload:
        env["LD_PRELOAD"] = str(native.library())
    command = [str(native.simulator("nested") / "npu-smi"), "info"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_npu_smi_shows_quota_and_own_use(kept: Container, neighbour: Container, machine: Machine) -> None:
    machine.tool("create")
    assert f"0 / {QUOTA}" in npu_smi(kept, machine)
    with neighbour.running(), client(neighbour, machine) as other, client(kept, machine) as npu:
        assert other.call("aclrtMalloc", "&a", 500 * MIB, 0) == 0
        assert npu.call("halMemAlloc", "&a", 100 * MIB, 33 << 56 | 1 << 14 | 1 << 10) == 0
        card = kept.read().cards[0]
        used = -(-(card.used + card.overhead) // MIB)

        shown = npu_smi(kept, machine)
        assert f"{used} / {QUOTA}" in shown
        assert str(npu.process.pid) in shown
        assert str(other.process.pid) not in shown
        assert f" / {CARD_MIB}" in npu_smi(kept, machine, preload=False)


# For each name: arguments, and where in its buffer total and use stand (offset, bits), in which unit.
VIEWS = {
    "dcmi_get_device_hbm_info": ("0 0 @i", (0, 64), (16, 64), MIB),
    "dcmi_get_hbm_info": ("0 0 @i", (0, 64), (16, 64), MIB),
    "dcmiv2_get_device_hbm_info": ("0 @i", (0, 64), (16, 64), MIB),
    "dsmi_get_hbm_info": ("0 @i", (0, 64), (16, 64), 1024),
}


@pytest.mark.parametrize("name", VIEWS)
def test_memory_of_the_card_is_the_quota(kept: Container, machine: Machine, name: str) -> None:
    arguments, total, used, unit = VIEWS[name]
    with client(kept, machine) as npu:
        assert npu.call("dcmi_init") == 0
        assert npu.call("halMemAlloc", "&a", 100 * MIB, 33 << 56 | 1 << 14 | 1 << 10) == 0
        card = kept.read().cards[0]
        if npu.call(name, *arguments.split()) is None:
            pytest.skip("not simulated")
        assert int(npu.ask(f"peek i {total[0]} {total[1]}")) == QUOTA * MIB // unit
        assert int(npu.ask(f"peek i {used[0]} {used[1]}")) == -(-(card.used + card.overhead) // unit)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("dcmi_get_device_utilization_rate", "0 0 6 @i"), ("dcmiv2_get_device_utilization_rate", "0 6 @i")],
)
def test_utilisation_is_of_the_quota(kept: Container, machine: Machine, name: str, arguments: str) -> None:
    with client(kept, machine) as npu:
        assert npu.call("dcmi_init") == 0
        assert npu.call("halMemAlloc", "&a", 512 * MIB, 33 << 56 | 1 << 14 | 1 << 10) == 0
        if npu.call(name, *arguments.split()) is None:
            pytest.skip("not simulated")
        card = kept.read().cards[0]
        assert int(npu.ask("peek i 0 32")) == (card.used + card.overhead) * 100 // (QUOTA * MIB)


def test_a_chip_with_ddr_shows_it_in_the_older_call(kept: Container, machine: Machine) -> None:
    machine.tool("create", "chip=Ascend310P3")
    with client(kept, machine) as npu:
        assert npu.call("dcmi_init") == 0
        assert npu.call("dcmi_get_device_memory_info_v3", 0, 0, "@i") == 0
        card = kept.read().cards[0]
        used = -(-(card.used + card.overhead) // MIB)
        assert int(npu.ask("peek i 0 64")) == QUOTA
        assert int(npu.ask("peek i 8 64")) == QUOTA - used


def test_a_card_that_is_not_there_is_answered_by_dcmi(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        assert npu.call("dcmi_init") == 0
        assert npu.call("dcmi_get_device_hbm_info", 7, 0, "@i") != 0
