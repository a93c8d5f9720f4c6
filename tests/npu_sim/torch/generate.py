"""Reads the wheel of torch_npu and writes C for the names that it wants and nobody simulates.

    generate.py LIBTORCH_NPU FOLDER stubs|operators|symbols

``stubs``: functions that the wheel links to (or insists on) and that no library in FOLDER has. They do nothing
and answer 0, or something that is not NULL where the name says that it makes a thing. ``operators``: those of
libopapi, in two calls each, of which the second is one launch. ``symbols``: all names that FOLDER lacks, one a
line, and how the wheel gets them: what it only looks up may be missing, and is then a feature that it does
without.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile

CANN = re.compile(r"(acl|rt|hal|Hccl|hccl|Msprof|msprof|adx|prof)[A-Z_]\w*|acl(rt|op|mdl|prof|tdt)\w+")
MAKES = re.compile(r"(acl|aclop|aclmdl|aclprof)Create\w+")
OPERATOR = re.compile(rb"aclnn\w+?GetWorkspaceSize")
LOOKED_UP = re.compile(rb"\0(acl(?:rt|mdl|op|prof|Get|Set|Create|Destroy)\w+)(?=\0)")
INSISTS = [
    "aclrtSetDeviceSatMode",
    "aclrtSetOpExecuteTimeOut",
    "aclrtSetOpWaitTimeout",
    "aclrtSetStreamFailureMode",
    "aclrtGetLastError",
    "aclrtPeekAtLastError",
    "aclrtCtxSetSysParamOpt",
]
"""Names that the wheel looks up and cannot do without, though it could."""
HANDLES = [
    "aclCreateTensor",
    "aclCreateScalar",
    "aclCreateIntArray",
    "aclCreateFloatArray",
    "aclCreateBoolArray",
    "aclCreateTensorList",
    "aclCreateScalarList",
]
"""Things of which operators are made; libopapi makes them."""
FREES = [name.replace("Create", "Destroy") for name in HANDLES]


def symbols(path: Path, *, defined: bool) -> set[str]:
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        return {s.name for s in table.iter_symbols() if s.name and (s["st_shndx"] != "SHN_UNDEF") == defined}


def wanted(wheel: Path) -> dict[str, str]:
    """Names of CANN in the wheel, and how it gets them."""
    own = symbols(wheel, defined=True)
    looked_up = {name.decode() for name in LOOKED_UP.findall(wheel.read_bytes())}
    linked = {name for name in symbols(wheel, defined=False) if CANN.fullmatch(name)}
    return {name: "linked" if name in linked else "looked up" for name in sorted((linked | looked_up) - own)}


def missing(wheel: Path, folder: Path) -> dict[str, str]:
    there = {name for path in folder.glob("lib*.so") for name in symbols(path, defined=True)}
    return {name: how for name, how in wanted(wheel).items() if name not in there}


def stub(name: str) -> str:
    if MAKES.fullmatch(name):
        return f"STUB void *{name}(void) {{ static char it; return &it; }}"
    return f"STUB long {name}(void) {{ return 0; }}"


def operators(wheel: Path) -> list[str]:
    return sorted({name.decode().removesuffix("GetWorkspaceSize") for name in OPERATOR.findall(wheel.read_bytes())})


def main() -> None:
    wheel, folder, what = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if what == "symbols":
        lines = [f"{name} {how}" for name, how in missing(wheel, folder).items()]
    elif what == "stubs":
        linked = [name for name, how in missing(wheel, folder).items() if how == "linked" or name in INSISTS]
        lines = ['#include "stub.h"', *map(stub, linked)]
    else:
        lines = ['#include "stub.h"', *map(stub, HANDLES + FREES), *(f"OPERATOR({name})" for name in operators(wheel))]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
