"""Which installed versions of the library containers still use: what may not be removed from the host."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_MARK: Final = f"/{PurePosixPath(names.CORE_DIR).name}/"
"""In every path of a version's directory, wherever the file system that holds it is mounted."""


def used(versions: Iterable[str], proc: Path, checkpoint: Path) -> set[str]:
    """Those of the versions that a container has mounted, or that kubelet will mount when one restarts.

    Args:
        versions: names of directories below :data:`vnpu.names.CORE_DIR`.
        proc: the host's ``/proc``.
        checkpoint: kubelet's :data:`vnpu.names.KUBELET_CHECKPOINT`, as seen from here. A kubelet that has one of our
            plugins has it, so where there is none it is another's path.

    Raises:
        InputError: it cannot be told, so every version may be used.
    """
    mounted = _mounted(proc)
    answered = _answered(checkpoint)
    return {
        version
        for version in versions
        if any(f"{_MARK}{version}/" in f"{root}/" for root in mounted)
        or any(f"{_MARK}{version}".encode() in answer for answer in answered)
    }


def _mounted(proc: Path) -> set[str]:
    """Directories and files that processes of the host have mounted, by their paths in their own file systems."""
    seen_namespaces: set[str] = set()
    roots: set[str] = set()
    try:
        processes = [entry for entry in proc.iterdir() if entry.name.isdecimal()]
    except OSError as error:
        raise InputError(str(proc), error.strerror, "the processes of the host must be readable") from error
    if not any(process.name == "1" for process in processes):
        raise InputError(str(proc), "no process 1", "the processes of the host must be readable")
    for process in processes:
        try:
            namespace = str((process / "ns" / "mnt").readlink())
            if namespace in seen_namespaces:
                continue
            lines = (process / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except PermissionError as error:
            raise InputError(str(process), error.strerror, "the mounts of every process must be readable") from error
        except OSError:
            continue  # it ended meanwhile
        seen_namespaces.add(namespace)
        # Fields as in proc_pid_mountinfo(5): the fourth is the mounted part of its file system.
        roots.update(fields[3] for line in lines if _MARK in line and len(fields := line.split(" ")) > 3)
    return roots


def _answered(checkpoint: Path) -> list[bytes]:
    """What device plugins answered for containers that kubelet may start again."""
    try:
        document: Any = json.loads(checkpoint.read_bytes())
        entries = document["Data"]["PodDeviceEntries"] or []
        return [base64.b64decode(entry["AllocResp"] or "") for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise InputError(str(checkpoint), str(error), "kubelet's note of its devices must be readable") from error
