"""A container whose processes get the library as a node's device plugin brings it: named in /etc/ld.so.preload."""

from __future__ import annotations

import os
import shlex
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from tests.support import native
from vnpu import names

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.containers import Container


@cache
def mount_namespace() -> tuple[str, ...]:
    """What runs a command in a mount namespace of its own; nothing where that cannot be had."""
    user = () if os.geteuid() == 0 else ("--map-root-user",)
    command = ("unshare", *user, "--mount")
    probe = [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return command if subprocess.run(probe, capture_output=True, check=False).returncode == 0 else ()


def plugged(container: Container, quota: Path) -> tuple[str, ...]:
    """What runs a command behind the mounts that a device plugin makes, beside a limiter, and with no environment but
    what says where the simulated NPU is.
    """
    etc = shlex.quote(str(container.own))
    seeds = [f"{name}={value}" for name, value in container.env.items() if name != names.ENV_REGION]
    script = f"""
mount -t tmpfs tmpfs {etc}
cp -a /etc/. {etc}
mkdir {etc}/vnpu
touch {etc}{names.QUOTA_FILE.removeprefix("/etc")}
echo {native.library()} > {etc}/ld.so.preload
mount --bind {etc} /etc
mount --bind {quota} {names.QUOTA_FILE}
mount -o remount,bind,ro {names.QUOTA_FILE}
mount -t tmpfs tmpfs /dev/shm
env -i {shlex.join(seeds)} {native.limiter()} start
env -i NPU_SIM_STATE="$NPU_SIM_STATE" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" NPU_CLIENT="$NPU_CLIENT" "$@"
env -i {native.limiter()} stop
"""
    return *mount_namespace(), "sh", "-ec", script, "sh"
