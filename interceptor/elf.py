"""Which machine a program or library is for: the loader passes over one of another machine without a word."""

from __future__ import annotations

import platform
from typing import Final

HEAD: Final = 20
"""Bytes of a file that tell."""

_MAGIC: Final = b"\x7fELF"
_LITTLE: Final = 1
_MACHINES: Final = {62: "x86_64", 183: "aarch64"}
_SPELLINGS: Final = {"amd64": "x86_64", "arm64": "aarch64"}


def fault(head: bytes, machine: str) -> str:
    """Why a file that begins with ``head`` cannot run on ``machine``, ``""`` where it can."""
    if len(head) < HEAD or not head.startswith(_MAGIC):
        return "it is no ELF file"
    number = int.from_bytes(head[18:20], "little")
    known = _MACHINES.get(number, f"machine number {number}")
    made_for = known if head[5] == _LITTLE else "a big-endian machine"
    return "" if made_for == machine else f"it is made for {made_for}, and this machine is {machine}"


def this_machine() -> str:
    """The machine that this program runs on, as Linux and Kubernetes' ``kubernetes.io/arch`` both may spell it."""
    name = platform.machine()
    return _SPELLINGS.get(name, name)
