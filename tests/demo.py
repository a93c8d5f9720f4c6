"""``python -m tests.demo FOLDER``: two containers share one simulated card, shown on one machine without an NPU.

The pods of shared-card.yaml go the whole way: the webhook admits them, they are placed and bound, the device plugin
answers kubelet, and a container each has the environment, mounts and hook that came out of it. Exit 0 when each is held
to its slice and the exporter tells of it what the card counts itself, 1 otherwise.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support import native, node
from tests.support.containers import eventually
from tests.support.namespaces import BareContainer, execute, isolated, start
from tests.support.node import NPU_SMI, TOOLS
from tests.support.npu_client import MIB, OUT_OF_MEMORY, Machine
from vnpu import files, names
from vnpu.names import ENV_MEMORY, ENV_PRIORITY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping

    from tests.support.namespaces import Running
    from tests.support.node import Allocated, Node

_SAMPLE: Final = "shared-card.yaml"
_KERNEL_US: Final = "1000"
_SECONDS: Final = 4.0
_POINTS: Final = 10.0
_EXCESS_MIB: Final = 1024
_LIMIT: Final = "hami_vgpu_memory_limit_bytes"
_USED: Final = "hami_vgpu_memory_used_bytes"
_RECEIVED: Final = "vnpu_core_received_ratio"


def main(folder: Path, points: float = _POINTS) -> int:
    """Run the demonstration with the samples of a folder; returns the exit code.

    Args:
        folder: where the samples are.
        points: percent of the card's work that a share may be away from what was asked.
    """
    if platform.machine() != "x86_64":
        _say("Two containers on one simulated card: not shown, the simulated NPU's clients are built for x86_64")
        return 0
    _build()
    with tempfile.TemporaryDirectory(prefix="vnpu-demo.") as directory, ExitStack() as stack:
        machine = Machine(Path(directory) / "npu")
        there = stack.enter_context(node.running(Path(directory) / "node", machine))
        pods = files.parse_documents(files.read_bytes(folder / _SAMPLE), _SAMPLE)
        specs = [there.run(pod) for pod in pods]
        _say(f"The pods of {_SAMPLE} run on one simulated {node.CHIP}, given out by the device plugin")
        containers = [stack.enter_context(_running(spec, Path(directory))) for spec in specs]
        held = [_show(spec, container) for spec, container in zip(specs, containers, strict=True)]
        shared = _share(specs, containers, there, points)
    right = all(held) and shared
    _say(
        "Both pods were admitted, placed, served by the device plugin and held to their slices"
        if right
        else "Something is not as it should be: see above"
    )
    _tell("All of it lay in a temporary folder. README.md tells how to put it on a cluster.")
    return 0 if right else 1


def _build() -> None:
    if not (native.BUILD / "clients" / "load").exists():
        _say("Building the limiter, libvnpu.so and the simulated NPU; the first time this takes a minute or two")
    native.simulator("nested")
    native.library()
    native.limiter()


@contextmanager
def _running(spec: Allocated, directory: Path) -> Iterator[Running]:
    with isolated(spec, directory / f"root-{spec.pod}") as container:
        if container is not None:
            _tell(f"{spec.pod} is a container with a root, mounts and process ids of its own")
            yield container
            return
    _tell(f"{spec.pod} runs without namespaces, which this machine does not allow; {names.ENV_REGION} stands in")
    with BareContainer(spec, directory / f"own-{spec.pod}").running() as bare:
        yield bare


def _show(spec: Allocated, container: Running) -> bool:
    """Start the limiter as kubelet does, look at the card, ask for too much; whether all went as it should."""
    quota_mib = int(spec.env[ENV_MEMORY])
    _say(f"{spec.pod}: card {spec.placed}, {ENV_MEMORY}={quota_mib} {ENV_PRIORITY}={spec.env[ENV_PRIORITY]}")
    _tell(f"postStart: {' '.join(spec.hook)}")
    hook = execute(container, *spec.hook)
    _tell(hook.stderr or "limiter ready")
    _tell("$ npu-smi info")
    seen = execute(container, NPU_SMI, "info")
    _tell(seen.stdout + seen.stderr)
    wanted_mib = quota_mib + _EXCESS_MIB
    calls = f"call aclrtSetDevice 0\ncall aclrtMalloc &a {wanted_mib * MIB} 0\ncall aclrtMalloc &a {MIB} 0\n"
    answers = execute(container, f"{TOOLS}/client", text=calls).stdout.split()
    refused = answers == ["0", str(OUT_OF_MEMORY), "0"]
    what = "refused, out of memory" if refused else f"answered {answers}, which is wrong"
    _tell(f"aclrtMalloc of {wanted_mib} MiB: {what}; of 1 MiB afterwards: {'granted' if refused else 'see above'}")
    return hook.returncode == 0 and f" 0 / {quota_mib} " in seen.stdout and refused


def _share(specs: list[Allocated], containers: list[Running], there: Node, points: float) -> bool:
    """Let both launch kernels as fast as they can; whether each gets the part of the card that it asked for.

    The exporter is asked meanwhile, and must tell what the card counts itself.
    """
    machine = there.machine
    _say(f"Both launch kernels of {_KERNEL_US} us for {_SECONDS:g} seconds; the card says how long it worked for each")
    with ExitStack() as stack:
        loads = [stack.enter_context(_load(container)) for container in containers]
        for load in loads:
            _begin(load)
        time.sleep(0.5)
        before, started = _busy_ns(machine), time.monotonic_ns()
        time.sleep(_SECONDS)
        after, ended = _busy_ns(machine), time.monotonic_ns()
        busy = {spec.pod: after[spec.pod] - before[spec.pod] for spec in specs}
        told = [_told(spec, there, 100 * busy[spec.pod] / (ended - started), points) for spec in specs]
    weights = [int(spec.env[ENV_PRIORITY]) for spec in specs]
    right = True
    _tell(f"{'pod':10}{'core asked':>12}{'its part':>12}{'it got':>12}{'the exporter says':>20}")
    for spec, weight, (received, agrees) in zip(specs, weights, told, strict=True):
        due, part = 100 * weight / sum(weights), 100 * busy[spec.pod] / max(sum(busy.values()), 1)
        right = right and agrees and abs(part - due) <= points
        _tell(f"{spec.pod:10}{weight:>10} %{due:>10.1f} %{part:>10.1f} %{received:>18.1f} %")
    for spec in specs:
        for name in (_LIMIT, _USED):
            _tell(f'{name}{{pod="{spec.pod}"}} {there.exporter.value(name, pod=spec.pod)!r}')
    return right


def _told(spec: Allocated, there: Node, busy: float, points: float) -> tuple[float, bool]:
    """The share that the exporter tells of a pod in percent, and whether all that it tells is what the card counts.

    Args:
        spec: the pod.
        there: its node.
        busy: percent of the time that the card worked for it.
        points: how far the share may be away from that.
    """
    received = 0.0

    def agrees() -> bool:
        nonlocal received
        told = there.exporter.value(_RECEIVED, pod=spec.pod)
        received = 100 * (told or 0.0)
        (tag,) = (tag for tag in there.machine.status()["tags"] if tag["name"] == spec.pod)
        held = tag["cards"][0]["app"] + tag["cards"][0]["overhead"]
        return (
            there.exporter.value(_LIMIT, pod=spec.pod) == int(spec.env[ENV_MEMORY]) * MIB
            and there.exporter.value(_USED, pod=spec.pod) == held
            and abs(received - busy) <= points
        )

    right = eventually(agrees)
    return received, right


@contextmanager
def _load(container: Running) -> Iterator[subprocess.Popen[str]]:
    process = start(container, f"{TOOLS}/load", _KERNEL_US)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def _begin(load: subprocess.Popen[str]) -> None:
    assert load.stdin is not None
    load.stdin.write("go\n")
    load.stdin.flush()


def _busy_ns(machine: Machine) -> Mapping[str, int]:
    return {tag["name"]: tag["cards"][0]["busy_ns"] for tag in machine.status()["tags"]}


def _say(title: str) -> None:
    sys.stdout.write(f"\n== {title}\n\n")
    sys.stdout.flush()


def _tell(text: str) -> None:
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
