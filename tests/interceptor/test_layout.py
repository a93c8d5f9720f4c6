from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from interceptor import region
from tests.support import native
from vnpu import names

if TYPE_CHECKING:
    from pathlib import Path

INCLUDE = native.TOP / "interceptor" / "include" / "vnpu"


def layout_of_python() -> dict[str, int]:
    layouts = region.ffi()
    numbers = {}
    for name in re.findall(r"^struct (\w+) \{", region.HEADER.read_text(), re.MULTILINE):
        numbers[name] = layouts.sizeof(f"struct {name}")
        fields = layouts.typeof(f"struct {name}").fields
        numbers |= {f"{name}.{field}": description.offset for field, description in fields}
    return numbers


@pytest.mark.parametrize("arch", native.ARCHES)
def test_c_and_python_see_the_same_layout(arch: str) -> None:
    printed = subprocess.run(native.unit("layout", arch), capture_output=True, text=True, check=True).stdout
    numbers = dict(line.split() for line in printed.splitlines())

    assert {name: int(number) for name, number in numbers.items()} == layout_of_python()


def test_every_field_is_pinned() -> None:
    text = (INCLUDE / "layout.h").read_text()
    sizes = re.findall(r"^VNPU_SIZE\((\w+), (\d+)\)$", text, re.MULTILINE)
    offsets = re.findall(r"^VNPU_OFFSET\((\w+), (\w+), (\d+)\)$", text, re.MULTILINE)
    pinned = {name: int(size) for name, size in sizes}
    pinned |= {f"{name}.{field}": int(offset) for name, field, offset in offsets}

    assert pinned == layout_of_python()


def test_the_upstream_part_of_the_mirror_is_upstreams() -> None:
    layouts = region.ffi()
    offsets = {
        "memory_limit": 0,
        "memory_used": 8,
        "priority": 16,
        "state": 24,
        "batch": 32,
        "tokens": 40,
        "active_workers": 48,
        "reported": 52,
        "reports": 56,
        "processes": 1080,
        "magic": 6200,
    }

    assert {name: layouts.offsetof("struct vnpu_mirror", name) for name in offsets} == offsets
    assert layouts.sizeof("struct vnpu_upstream_report") == 32
    assert layouts.sizeof("struct vnpu_upstream_process") == 80
    assert layouts.offsetof("struct vnpu_upstream_process", "active") == 72


def defines(path: Path) -> dict[str, str | int]:
    found = re.findall(r'^#define VNPU_(\w+) +(?:"(.*)"|(\d+))$', path.read_text(), re.MULTILINE)
    return {name: int(number) if number else text for name, text, number in found}


def test_names_of_c_are_those_of_python() -> None:
    of_c = defines(INCLUDE / "names.h")

    assert len(of_c) > 15
    assert {name: getattr(names, name, None) for name in of_c} == of_c


def test_reserved_env_covers_what_the_c_side_reads() -> None:
    for name, value in defines(INCLUDE / "names.h").items():
        if name.startswith("ENV_") and name != "ENV_RT_VISIBLE_DEVICES":
            assert str(value).startswith(names.RESERVED_ENV_PREFIXES) or value in names.RESERVED_ENV
