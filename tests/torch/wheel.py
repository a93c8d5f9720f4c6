"""A process that uses the wheel of torch_npu as an application does; run by the Python that has it, step by step.

Each line of its input names a step and its argument; each line of its output is the JSON of what came of it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from typing import TYPE_CHECKING

import torch
import torch_npu

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

MIB = 1 << 20
PADDING = 64
"""What torch_npu adds to an allocation; left out of each, so that blocks are of the size that is asked for."""
HELD: list[torch.Tensor] = []
SPAWNED: list[tuple[multiprocessing.context.SpawnProcess, Connection]] = []


def take(size: int) -> list[str] | None:
    """One more block of the card; the kind and the words of the refusal, or nothing."""
    try:
        HELD.append(torch.empty(size - PADDING, dtype=torch.uint8, device="npu"))
    except RuntimeError as error:
        return [type(error).__name__, str(error).partition(".If ")[0]]
    return None


def info(_: int) -> object:
    return torch.npu.mem_get_info()


def device(_: int) -> object:
    return [torch.__version__, torch_npu.__version__, torch.npu.device_count(), torch.npu.get_device_name(0)]


def hold(mib: int) -> object:
    return take(mib * MIB)


def fill(mib: int) -> object:
    """Blocks of so many MiB and then small ones, until each is refused; the last refusal."""
    refusal = None
    for size in (mib * MIB, MIB):
        while (refusal := take(size)) is None:
            pass
    return refusal


def pin(mib: int) -> object:
    """Page-locked memory of the host."""
    HELD.append(torch.empty(mib * MIB, dtype=torch.uint8, pin_memory=True))
    return HELD[-1].is_pinned()


def free(_: int) -> object:
    HELD.clear()
    torch.npu.empty_cache()
    return torch.npu.memory_reserved()


def copy(_: int) -> object:
    """To the card and back; whether it is what it was."""
    there = torch.arange(1 << 16)
    return torch.equal(there, there.npu().cpu())


def launch(count: int) -> object:
    """Operators and a wait; nothing is computed there, so the result says nothing."""
    numbers = torch.ones(64, device="npu")
    for _ in range(count):
        numbers = numbers + numbers
    torch.npu.synchronize()
    return None


def graph(replays: int) -> object:
    """A captured graph, replayed."""
    numbers = torch.ones(64, device="npu")
    torch.npu.synchronize()
    captured = torch.npu.NPUGraph()
    with torch.npu.graph(captured):
        for _ in range(3):
            numbers = numbers + numbers
    for _ in range(replays):
        captured.replay()
    torch.npu.synchronize()
    return None


def spawned(end: Connection, mib: int) -> None:
    end.send(fill(mib))
    end.recv()


def spawn(mib: int) -> object:
    """A second process fills what is left, and stays; the refusal that it ended with."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=spawned, args=(its, mib), daemon=True)
    process.start()
    SPAWNED.append((process, mine))
    return mine.recv()


def kill(_: int) -> object:
    process, _end = SPAWNED.pop()
    process.kill()
    process.join()
    return process.exitcode


STEPS = {step.__name__: step for step in (info, device, hold, fill, pin, free, copy, launch, graph, spawn, kill)}


def lines() -> Iterator[tuple[str, int]]:
    for line in sys.stdin:
        name, _, number = line.partition(" ")
        yield name.strip(), int(number or 0)


def main() -> None:
    # What libraries print goes to standard error: standard output is for the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.npu.set_device(0)
    for name, number in lines():
        answers.write(json.dumps(STEPS[name](number)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
