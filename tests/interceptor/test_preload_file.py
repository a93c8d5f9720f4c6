"""The library as a node's device plugin brings it: named in /etc/ld.so.preload, or preloaded by the loader itself.

A process then has nothing in its environment that tells of slices, as a login shell has not (R49): the region is found
by the mount namespace, the quota in the file that is mounted with the library.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import native
from tests.support.containers import Container
from tests.support.npu_client import MIB, OUT_OF_MEMORY, Client, Machine, client
from tests.support.preload_file import mount_namespace, plugged
from vnpu import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Preloaded = AbstractContextManager[tuple[Container, Client]]

QUOTA_MIB = 1024
MOST = 600 * MIB
LOADER = "/lib64/ld-linux-x86-64.so.2"


@dataclass
class Inside(Container):
    """A container in a mount namespace of its own, as it is seen from outside through one of its processes."""

    process: int = 0

    @property
    def region_path(self) -> Path:
        inside = Path(f"/proc/{self.process}")
        return Path(f"{inside}/root{names.REGION_PREFIX}{(inside / 'ns' / 'mnt').stat().st_ino}")


@contextmanager
def by_file(container: Container, machine: Machine, way: str) -> Iterator[tuple[Container, Client]]:
    """A client that the library reaches through /etc/ld.so.preload. Its quota is the file's, whatever the environment
    of the limiter says.
    """
    if not mount_namespace():
        pytest.skip("no mount namespace can be had here")
    quota = container.shared / "quota.json"
    quota.write_text(json.dumps({"memory_mib": QUOTA_MIB, "priority": 20}))
    container.memory = str(4 * QUOTA_MIB)
    with client(container, machine, way=way, preload=False, through=plugged(container, quota)) as npu:
        try:
            yield Inside(container.own, container.shared, process=int(npu.ask("pid"))), npu
        finally:
            assert npu.end() == 0


@contextmanager
def by_loader(container: Container, machine: Machine, way: str) -> Iterator[tuple[Container, Client]]:
    """A client that the loader was told to preload the library into."""
    through = (LOADER, "--preload", str(native.library()))
    with container.running(), client(container, machine, way=way, preload=False, through=through) as npu:
        assert "LD_PRELOAD" not in Path(f"/proc/{npu.ask('pid')}/environ").read_text()
        yield container, npu


@pytest.fixture(params=["nested", "fused"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path / "npu", request.param)


preloads = pytest.mark.parametrize("preloaded", [by_file, by_loader])
ways = pytest.mark.parametrize("way", ["linked", "global", "local"])


@preloads
@ways
def test_memory_is_counted_once_and_refused(
    container: Container, machine: Machine, preloaded: Callable[..., Preloaded], way: str
) -> None:
    with preloaded(container, machine, way) as (inside, npu):
        for allocate, free in (("aclrtMallocAlign32 &a {} 0", "aclrtFree $a"), ("rtMalloc &a {} 0 33", "rtFree $a")):
            before = inside.read().cards[0].used
            words = allocate.format(MOST).split()
            assert npu.call(*words) == 0
            card = inside.read().cards[0]
            assert MOST <= card.used - before <= MOST + 2 * MIB
            assert card.used + card.overhead == machine.status()["cards"][0]["used"]
            assert npu.memory_info() == (QUOTA_MIB * MIB - card.used - card.overhead, QUOTA_MIB * MIB)
            assert npu.call(words[0], "&b", *words[2:]) == OUT_OF_MEMORY
            assert npu.get("b") == 0
            assert npu.call(*free.split()) == 0
            assert inside.read().cards[0].used == before


@preloads
@ways
def test_a_launch_takes_the_turn(
    container: Container, machine: Machine, preloaded: Callable[..., Preloaded], way: str
) -> None:
    with preloaded(container, machine, way) as (inside, npu):
        pid = int(npu.ask("pid"))
        npu.kernel(100)
        assert not inside.has_work(pid)
        assert npu.launch() == 0
        assert inside.has_work(pid)
        assert inside.holder() == inside.read().cards[0].tenant


@preloads
@ways
def test_a_graph_replay_takes_the_turn(
    container: Container, machine: Machine, preloaded: Callable[..., Preloaded], way: str
) -> None:
    with preloaded(container, machine, way) as (inside, npu):
        pid = int(npu.ask("pid"))
        npu.kernel(100)
        assert npu.call("aclrtCreateStream", "&s") == 0
        assert npu.call("rtStreamBeginCapture", "$s", 0) == 0
        for _ in range(10):
            assert npu.launch("$s") == 0
        assert npu.call("rtStreamEndCapture", "$s", "&g") == 0
        assert not inside.has_work(pid)
        assert npu.call("aclmdlRIExecuteAsync", "$g", "$s") == 0
        assert inside.has_work(pid)
        assert inside.holder() == inside.read().cards[0].tenant
        assert npu.call("aclrtSynchronizeStream", "$s") == 0
        assert machine.status()["cards"][0]["busy_ns"] == 10 * 100_000
