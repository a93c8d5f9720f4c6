"""The host's files seen from a container that has the host's ``/`` mounted somewhere."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_LINKS: Final = 40


def loadable(root: Path, libraries: Iterable[str]) -> tuple[str, ...]:
    """Libraries of the host, as this process loads them; a name without a directory asks the loader."""
    return tuple(str(seen(root, library)) if library.startswith("/") else library for library in libraries)


def seen(root: Path, path: str) -> Path:
    """Where a path of the host is seen from here, its links followed as the host follows them.

    Args:
        root: where the host's ``/`` is.
        path: an absolute path of the host; it need not exist.
    """
    if root == Path("/"):
        return Path(path)
    rest = list(PurePosixPath(path).parts[1:])
    place = root
    links = 0
    while rest:
        part = rest.pop(0)
        if part == "..":
            place = place.parent if place != root else place
            continue
        target = place / part
        if target.is_symlink() and links < _MOST_LINKS:
            links += 1
            steps = PurePosixPath(target.readlink()).parts
            if steps[:1] == ("/",):
                place, steps = root, steps[1:]
            rest = [*steps, *rest]
        else:
            place = target
    return place


def named(error: OSError, path: Path) -> OSError:
    """The error with the path that it is about: a write that fails knows none."""
    return error if error.filename else OSError(error.errno, error.strerror, str(path))
