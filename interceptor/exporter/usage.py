"""What is seen of containers and chips at one moment: the edge to mirrors, processes and the driver."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from interceptor import host_root, region
from vnpu import names
from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from interceptor.devices import Usage
    from interceptor.exporter.tenants import Tenant
    from interceptor.region import Mirror

_LIBRARY: Final = names.LIBRARY_NAME.encode()
_MIRROR: Final = names.LOCAL_SHM.rpartition("/")[2]
# As kubelet's two cgroup drivers and every container engine spell it: ...pod<uid>.../...<64 hex digits>...
_CGROUP: Final = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}).*?([0-9a-f]{64})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a container's own files say.

    Attributes:
        mirror: what its limiter wrote, None where there is none that can be read.
        upstream: bytes used of each card, where the file is that of upstream's library instead.
        fault: why neither can be read, ``""`` for no fault.
    """

    mirror: Mirror | None = None
    upstream: tuple[int, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a chip.

    Attributes:
        uid: of its pod.
        runtime_id: of its container.
        managed: whether it has the library loaded; None where that cannot be seen.
    """

    uid: str
    runtime_id: str
    managed: bool | None


def directory(root: Path) -> Path:
    """Where the containers' directories are, links of the host followed."""
    return host_root.seen(root, names.CONTAINERS_HOST)


def seen(containers: Path, tenant: Tenant) -> Seen:
    """What a container's files say now; ``containers`` is that :func:`directory`."""
    # The file is the tenant's to replace, by a link to another tenant's too: it is not followed.
    path = containers / PurePosixPath(names.local_shm_host(tenant.uid, tenant.container)).name / _MIRROR
    try:
        return Seen(mirror=region.read_mirror(path))
    except FileNotFoundError:
        return Seen()
    except OSError as error:
        return Seen(fault=f"{path}: {error.strerror}")
    except InputError as error:
        try:
            return Seen(upstream=region.read_upstream(path))
        except (InputError, OSError):
            return Seen(fault=str(error))


def holders(root: Path, usages: Iterable[Usage]) -> dict[int, Holder]:
    """The processes of pods that hold a chip, by their pids on the host."""
    proc = host_root.seen(root, "/proc")
    pids = {pid for usage in usages for pid in usage.processes}
    found = {pid: _holder(proc / str(pid)) for pid in pids}
    return {pid: holder for pid, holder in found.items() if holder is not None}


def _holder(process: Path) -> Holder | None:
    try:
        match = _CGROUP.search((process / "cgroup").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None  # it ended meanwhile
    if match is None:
        return None
    try:
        managed = _LIBRARY in (process / "maps").read_bytes()
    except OSError:
        managed = None
    return Holder(match[1].replace("_", "-"), match[2], managed)


def held(tenant: Tenant, usage: Usage, known: Mapping[int, Holder]) -> int:
    """Bytes that the driver counts for a container on a chip."""
    return sum(size for pid, size in usage.processes.items() if _is_of(known.get(pid), tenant))


def unmanaged(tenant: Tenant, known: Mapping[int, Holder]) -> int:
    """Processes of a container that hold a chip and have no library that would hold them to the quota."""
    return sum(holder.managed is False and _is_of(holder, tenant) for holder in known.values())


def _is_of(holder: Holder | None, tenant: Tenant) -> bool:
    return holder is not None and bool(tenant.runtime_id) and holder.runtime_id == tenant.runtime_id
