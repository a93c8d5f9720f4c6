from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from tests.support import native

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOOKS = native.TOP / "interceptor" / "src" / "hooks.def"
MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}


@pytest.fixture(params=native.ARCHES)
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(path: Path) -> Iterator[ELFFile]:
    with path.open("rb") as file:
        yield ELFFile(file)


@pytest.fixture
def library(arch: str) -> Iterator[ELFFile]:
    yield from opened(native.library(arch))


@pytest.fixture
def limiter(arch: str) -> Iterator[ELFFile]:
    yield from opened(native.limiter(arch))


def tags(elf: ELFFile, name: str) -> list[object]:
    return [
        getattr(tag, "needed", tag.entry.d_val)
        for section in elf.iter_sections()
        if isinstance(section, DynamicSection)
        for tag in section.iter_tags(name)
    ]


def segment(elf: ELFFile, kind: str) -> object:
    return next(part for part in elf.iter_segments() if part.header.p_type == kind)


def hooked_names() -> list[str]:
    return re.findall(r"^VNPU_(?:ALLOCATE|FREE|LAUNCH|OWN)\(\w+, (\w+)", HOOKS.read_text(), re.MULTILINE)


def test_machine(arch: str, library: ELFFile, limiter: ELFFile) -> None:
    assert library.header.e_machine == limiter.header.e_machine == MACHINES[arch]


def test_the_library_needs_libc_alone(library: ELFFile) -> None:
    assert set(tags(library, "DT_NEEDED")) <= {"libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"} | {
        "ld-linux-aarch64.so.1",
        "ld-linux-x86-64.so.2",
    }


def test_the_library_asks_for_no_newer_glibc_than_2_17(library: ELFFile) -> None:
    versions = [
        version.name
        for section in library.iter_sections()
        if isinstance(section, GNUVerNeedSection)
        for _, versions in section.iter_versions()
        for version in versions
    ]

    assert versions
    assert all(re.fullmatch(r"GLIBC_2\.\d+(\.\d+)?", version) for version in versions)
    assert max(tuple(map(int, version.removeprefix("GLIBC_").split("."))) for version in versions) <= (2, 17)


def test_the_library_exports_the_hooks_and_dlsym(library: ELFFile) -> None:
    table = library.get_section_by_name(".dynsym")
    exported = {
        symbol.name
        for symbol in table.iter_symbols()
        if symbol.entry.st_shndx != "SHN_UNDEF" and symbol.entry.st_info.bind != "STB_LOCAL"
    }

    assert exported == {*hooked_names(), "dlsym"}


def test_no_strong_symbol_of_the_vendor_is_left_open(library: ELFFile) -> None:
    table = library.get_section_by_name(".dynsym")
    undefined = {symbol.name for symbol in table.iter_symbols() if symbol.entry.st_shndx == "SHN_UNDEF"}

    assert not [name for name in undefined if re.match(r"acl|rt[A-Z]|rts|hal|drv|dcmi|dsmi|hi_", name)]


def test_the_library_is_hardened(library: ELFFile) -> None:
    assert segment(library, "PT_GNU_RELRO") is not None
    assert tags(library, "DT_FLAGS_1")[0] & 1  # type: ignore[operator]  # DF_1_NOW
    assert segment(library, "PT_GNU_STACK").header.p_flags & 1 == 0  # type: ignore[attr-defined]
    assert not tags(library, "DT_TEXTREL")


def test_the_library_has_no_constructor(library: ELFFile) -> None:
    assert not tags(library, "DT_INIT")
    assert library.get_section_by_name(".init_array") is None


def test_the_limiter_is_static(limiter: ELFFile) -> None:
    assert not tags(limiter, "DT_NEEDED")
    assert not [part for part in limiter.iter_segments() if part.header.p_type == "PT_INTERP"]
    assert segment(limiter, "PT_GNU_STACK").header.p_flags & 1 == 0  # type: ignore[attr-defined]


def test_hooks_are_named_once() -> None:
    names = hooked_names()

    assert len(names) == len(set(names)) > 60
