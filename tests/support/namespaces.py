"""Containers out of the kernel's own parts: a root, mounts and process ids of their own, and nothing of an engine.

Where the machine does not let a process have namespaces, :class:`BareContainer` runs the same programs beside each
other: the region has a name of its own, the library comes by the variable, and paths lead to the files of the node.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.support.containers import PATIENCE_S
from vnpu import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.node import Allocated

_FROM_HOST = ("/bin", "/sbin", "/lib", "/lib64", "/usr")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


class Running(Protocol):
    """A container in which commands can be run."""

    def command(self, *command: str) -> tuple[list[str], Mapping[str, str]]:
        """What runs ``command`` in the container, and with which environment."""


def execute(container: Running, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """As ``kubectl exec``: a command in the container, with ``text`` on its standard input."""
    line, env = container.command(*command)
    return subprocess.run(
        line, env=env, input=text, capture_output=True, text=True, check=False, timeout=PATIENCE_S * 2
    )


def start(container: Running, *command: str) -> subprocess.Popen[str]:
    line, env = container.command(*command)
    return subprocess.Popen(line, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def isolated(spec: Allocated, root: Path) -> Iterator[Running | None]:
    """A container with namespaces of its own, whose root is put together at ``root``; None where that is not allowed.

    Its first process reads its input: when that ends, the kernel ends all others with it.
    """
    root.mkdir()
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", *own_user, "--mount", "--pid", "--fork", "sh", "-ec", "\n".join(_steps(spec, root))]
    try:
        first = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except FileNotFoundError:
        yield None
        return
    assert first.stdin is not None
    assert first.stdout is not None
    try:
        if first.stdout.readline() != "ready\n":
            yield None
            return
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text()
        yield _Isolated(spec, int(children), own_user=bool(own_user))
    finally:
        first.stdin.close()
        first.wait(PATIENCE_S)
        first.stdout.close()


class _Isolated:
    """A container by the id of its first process."""

    def __init__(self, spec: Allocated, pid: int, *, own_user: bool) -> None:
        self.spec = spec
        user = ["--user", "--preserve-credentials"] if own_user else []
        self.enter = ["nsenter", f"--target={pid}", *user, "--mount", "--pid", "--root", "--wd"]

    def command(self, *command: str) -> tuple[list[str], Mapping[str, str]]:
        # nsenter itself is found by the path of this machine, what it becomes by that of the container.
        variables = [f"{name}={value}" for name, value in self.spec.env.items()]
        return [*self.enter, "env", "-i", *variables, *command], os.environ


def _steps(spec: Allocated, root: Path) -> Iterator[str]:
    """The shell commands that make the root: programs and libraries of this machine, all else from the mounts."""
    yield f"mount -t tmpfs tmpfs {shlex.quote(str(root))}"
    yield f"cd {shlex.quote(str(root))}"
    yield "mkdir -p proc dev/shm etc tmp"
    for name in _FROM_HOST:
        here = Path(name)
        if here.is_symlink():
            yield f"ln -s {shlex.quote(str(here.readlink()))} .{name}"
        elif here.is_dir():
            yield f"mkdir .{name} && mount --rbind {name} .{name}"
    yield "mount -t tmpfs tmpfs usr/local"
    yield "mount -t tmpfs tmpfs dev/shm"
    yield "mount -t proc proc proc"
    for name in _DEVICES:
        yield f"touch .{name} && mount --bind {name} .{name}"
    # A mount below another one comes after it.
    for mount in sorted(spec.mounts, key=lambda mount: mount.container_path):
        source, target = shlex.quote(mount.host_path), shlex.quote(f".{mount.container_path}")
        parent = shlex.quote(f".{Path(mount.container_path).parent}")
        make = f"mkdir -p {target}" if Path(mount.host_path).is_dir() else f"mkdir -p {parent} && touch {target}"
        yield f"{make} && mount --bind {source} {target}"
        if mount.read_only:
            yield f"mount -o remount,bind,ro {target}"
    yield "exec chroot . /bin/sh -c 'echo ready; exec cat'"


class BareContainer:
    """The same without namespaces."""

    def __init__(self, spec: Allocated, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.spec = spec
        own = {names.ENV_REGION: str(folder / "region"), names.ENV_LOG: str(folder / "limiter.log")}
        self.env = {name: self._here(value) for name, value in spec.env.items()} | own
        self.env["LD_PRELOAD"] = self._here(f"{names.CORE_DIR}/libvnpu.so")

    def _here(self, path: str) -> str:
        """The file of this machine that a path in the container means; anything else stays as it is."""
        for mount in sorted(self.spec.mounts, key=lambda mount: len(mount.container_path), reverse=True):
            if path == mount.container_path or path.startswith(f"{mount.container_path}/"):
                return mount.host_path + path.removeprefix(mount.container_path)
        return path

    def command(self, *command: str) -> tuple[list[str], Mapping[str, str]]:
        return [self._here(command[0]), *command[1:]], self.env

    @contextmanager
    def running(self) -> Iterator[BareContainer]:
        """Until the limiter, which nothing else would end, is stopped."""
        try:
            yield self
        finally:
            execute(self, names.LIMITER, "stop")
