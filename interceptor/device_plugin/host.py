"""The files of the host: an edge. Everything is looked up below a root, and told to kubelet by the host's own paths."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interceptor import elf
from interceptor.host_root import loadable, named, seen
from vnpu import names
from vnpu.allocation import HostPaths
from vnpu.errors import few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_DRIVER_ROOT: Final = "/usr/local/Ascend"
_INSTALL_INFO: Final = "/etc/ascend_install.info"
_DRIVER_PARAMETER: Final = "Driver_Install_Path_Param="
_PROGRAMS: Final = (names.LIBRARY_NAME, names.LIMITER_NAME)
_OPEN_MODE: Final = 0o777
_QUOTA_MODE: Final = 0o444


class Host:
    """The host below a root, with one version of the libraries that containers get."""

    def __init__(self, root: Path, version: str, machine: str) -> None:
        """Take the host at ``root``.

        Args:
            root: where the host's ``/`` is seen from here.
            version: of libvnpu.so and limiter, a directory below :data:`vnpu.names.CORE_DIR`.
            machine: what this machine is, for example ``aarch64``.
        """
        self._root = root
        self._core_dir = f"{names.CORE_DIR}/{version}"
        self._machine = machine

    def library_fault(self) -> str:
        """What is wrong with the installed library and limiter, ``""`` for nothing."""
        preload = f"{self._core_dir}/{names.PRELOAD_FILE_NAME}"
        try:
            for program in _PROGRAMS:
                path = f"{self._core_dir}/{program}"
                with self._seen(path).open("rb") as file:
                    fault = elf.fault(file.read(elf.HEAD), self._machine)
                if fault:
                    return f"{path}: {fault}"
            with self._seen(preload).open("rb"):
                return ""
        except OSError as error:
            return f"{self._core_dir}: {error.strerror}: the installer puts library, limiter and {preload} there"

    def npu_smi(self) -> tuple[str, ...]:
        """The command that runs the host's npu-smi, ``()`` where there is none."""
        path = next(self._existing(self._npu_smis()), None)
        if path is None:
            return ()
        return (path,) if self._root == Path("/") else ("chroot", str(self._root), path)

    def dcmi(self) -> tuple[str, ...]:
        """Where the driver's management library may be, as this process loads it."""
        return loadable(self._root, names.DCMI_HOST)

    def paths(self, pod_uid: str, container: str) -> HostPaths:
        """What a soft container gets of the host, as it is there now."""
        driver = [path.replace(_DRIVER_ROOT, self._driver_root(), 1) for path in names.DRIVER_FILES_HOST]
        found = [*self._existing(driver), *list(self._existing(self._npu_smis()))[:1]]
        return HostPaths(tuple(found), self._core_dir, names.quota_host(pod_uid, container))

    def prepare(self, pod_uid: str, container: str, quota: str) -> None:
        """Make the directories and the quota file of a soft container.

        Raises:
            OSError: the host's file system refuses; the error names the path.
        """
        self._directory(names.SHARED_REGION_HOST, names.SHARED_REGION_MODE)
        self._directory(names.local_shm_host(pod_uid, container), _OPEN_MODE)
        path = self._seen(names.quota_host(pod_uid, container))
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        try:
            new.write_text(quota, encoding="ascii")
            new.chmod(_QUOTA_MODE)
            new.replace(path)
        except OSError as error:
            with suppress(OSError):
                new.unlink()
            raise named(error, new) from error

    def pod_uids(self) -> set[str]:
        """UIDs of the pods that have files here."""
        return {
            entry.partition("_")[0]
            for directory in (names.CONTAINERS_HOST, names.QUOTAS_HOST)
            for entry in self._listed(directory)
            if "_" in entry
        }

    def forget(self, pod_uids: Collection[str]) -> None:
        """Remove the files of these pods, as far as that can be done.

        Raises:
            OSError: some of them stay; the error says which, and why.
        """
        paths = [
            self._seen(directory) / entry
            for directory in (names.CONTAINERS_HOST, names.QUOTAS_HOST)
            for entry in self._listed(directory)
            if entry.partition("_")[0] in pod_uids
        ]
        if kept := [why for path in paths if (why := _remove(path))]:
            raise OSError(few(kept))

    def _listed(self, directory: str) -> list[str]:
        try:
            return [entry.name for entry in self._seen(directory).iterdir()]
        except FileNotFoundError:
            return []

    def _directory(self, path: str, mode: int) -> None:
        made = self._seen(path)
        made.mkdir(parents=True, exist_ok=True)
        if made.stat().st_mode & 0o7777 != mode:
            made.chmod(mode)  # mkdir's mode is cut by the umask

    def _npu_smis(self) -> list[str]:
        return [path.replace(_DRIVER_ROOT, self._driver_root(), 1) for path in names.NPU_SMI_HOST]

    def _driver_root(self) -> str:
        """Where the driver's installer says that it put it."""
        try:
            lines = self._seen(_INSTALL_INFO).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return _DRIVER_ROOT
        told = [line.removeprefix(_DRIVER_PARAMETER).strip() for line in lines if line.startswith(_DRIVER_PARAMETER)]
        return told[-1].rstrip("/") if told and told[-1].startswith("/") else _DRIVER_ROOT

    def _existing(self, paths: Collection[str]) -> Iterator[str]:
        return (path for path in paths if self._seen(path).exists())

    def _seen(self, path: str) -> Path:
        return seen(self._root, path)


def _remove(path: Path) -> str:
    """Why the path is still there, ``""`` where it is gone.

    A tenant may have made trees deeper than Python follows, and longer than a path can be; rm takes them.
    """
    command = ["rm", "-rf", "--one-file-system", "--", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - no shell, and the path is ours
    return done.stderr.strip().partition("\n")[0] or f"{path}: exit code {done.returncode}" if done.returncode else ""
