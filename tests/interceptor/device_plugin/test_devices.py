"""The driver, asked through the simulated NPU's libdcmi and npu-smi, and files that stand in for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from interceptor import devices
from interceptor.devices import Device, DevicesError, Machine
from interceptor.npu_smi import NpuSmi
from tests.support import native
from tests.support.native import TOP
from vnpu.errors import ConfigError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.simulated_npu import Machine as Simulated

UUIDS = [f"5349000{card}-42C711D4-20B03704-4A10C8D4-00000001" for card in range(2)]


def asked(npu: Simulated, expression: str, **env: str) -> Any:
    """What a fresh process finds, which loads the simulated libdcmi or runs the simulated npu-smi."""
    program = (
        "import dataclasses, json, sys\n"
        "from interceptor import dcmi\n"
        "from interceptor.npu_smi import NpuSmi\n"
        "from vnpu.errors import VnpuError\n"
        f"try: print(json.dumps(dataclasses.asdict({expression})))\n"
        "except VnpuError as error: print(json.dumps(str(error)))\n"
    )
    own = {"NPU_SIM_STATE": str(npu.state), "LD_LIBRARY_PATH": str(native.simulator("nested"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **own, **env},
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


DCMI = 'dcmi.source(("/nowhere/libdcmi.so", "libdcmi.so")).machine()'


def through_npu_smi() -> str:
    return f"NpuSmi(({str(native.simulator('nested') / 'npu-smi')!r},)).machine()"


def test_both_ways_tell_the_same_chips(npu: Simulated) -> None:
    npu.tool("set", "sick=2")
    library, command = asked(npu, DCMI), asked(npu, through_npu_smi())
    assert [
        (one["uuid"], one["chip_name"], one["card"], one["device"], one["physical"]) for one in library["devices"]
    ] == [
        (UUIDS[0], "910B3", 0, 0, 0),
        (UUIDS[1], "910B3", 1, 0, 1),
    ]
    assert [one | {"fault": bool(one["fault"])} for one in library["devices"]] == [
        one | {"fault": bool(one["fault"])} for one in command["devices"]
    ]
    assert (library["source"], command["source"]) == ("dcmi", "npu-smi")
    assert library["driver"] == command["driver"] == "25.5.0"
    assert "health 2" in library["devices"][1]["fault"]
    assert "Alarm" in command["devices"][1]["fault"]


def test_a_library_that_is_not_there_or_of_another_machine_gives_the_reason(npu: Simulated) -> None:
    other = native.simulator("aarch64/nested") / "libdcmi.so"
    reason = asked(npu, f'dcmi.source(("/nowhere/libdcmi.so", {str(other)!r}))')
    assert reason.startswith(f"libdcmi is at none of /nowhere/libdcmi.so; {other}: ")
    assert "Additionally" not in reason


def test_a_driver_that_is_nowhere_is_told_in_a_short_line(npu: Simulated) -> None:
    reason = asked(npu, 'dcmi.source(("/nowhere/libdcmi.so", "libdcmi.so"))', LD_LIBRARY_PATH="/nowhere")
    assert reason == "libdcmi is at none of /nowhere/libdcmi.so, libdcmi.so"


def test_a_library_that_lacks_another_names_that_one(npu: Simulated, tmp_path: Path) -> None:
    library = tmp_path / "libdcmi.so"
    source = ["-x", "c", "/dev/null", "-shared", "-o"]
    subprocess.run(["cc", *source, str(tmp_path / "libvnpu_other.so")], check=True)
    subprocess.run(["cc", *source, str(library), "-Wl,--no-as-needed", f"-L{tmp_path}", "-lvnpu_other"], check=True)
    (tmp_path / "libvnpu_other.so").unlink()
    reason = asked(npu, f"dcmi.source(({str(library)!r},))")
    assert reason.startswith(f"{library}: libvnpu_other.so: cannot open shared object file")


def test_a_library_that_lacks_a_function_gives_its_name(npu: Simulated) -> None:
    assert "has no dcmi_init" in asked(npu, 'dcmi.source(("libc.so.6",))')


def test_npu_smi_is_answered_by_nobody() -> None:
    with pytest.raises(DevicesError, match="npu-smi info -m"):
        NpuSmi(("/nowhere/npu-smi",)).machine()


def fake(tmp_path: Path, script: str) -> NpuSmi:
    """An npu-smi of another version, as a script."""
    path = tmp_path / "npu-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return NpuSmi((str(path),))


TWO_CHIPS = r"""
case "$*" in
"info -m")
  printf 'NPU ID   Chip ID   Chip Logic ID   Chip Phy-ID   Chip Name\n'
  printf '8        0         0               14            Ascend910\n'
  printf '8        1         1               15            Ascend910\n'
  printf '8        2         -               -             Mcu\n' ;;
"info -t board -i 8") printf 'Software Version : 25.5.1\n' ;;
"info -t board -i 8 -c 0") printf 'Chip Name : Ascend910\nVDie ID : 1 2 3 4 ABCDEF01\n' ;;
"info -t board -i 8 -c 1") printf 'Chip Name : Ascend910\nVDie ID : NA\n' ;;
"info -t health -i 8 -c 0") printf 'Health : OK\n' ;;
*) exit 1 ;;
esac
"""


def test_modules_of_two_chips_have_physical_numbers_of_their_own(tmp_path: Path) -> None:
    machine = fake(tmp_path, TWO_CHIPS).machine()
    uuid = "00000001-00000002-00000003-00000004-ABCDEF01"
    assert machine.devices == (Device(uuid, "Ascend910", 8, 0, 14),)
    assert machine.driver == "25.5.1"
    (fault,) = machine.faults
    assert fault.startswith("chip 1 of card 8: the die is called NA")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "exit 3: nothing"),
        ("echo Status : FAIL", "it says Status : FAIL"),
        ("true", "it says nothing"),
        ("echo Device-share Status : OK", "it says Device-share"),
    ],
)
def test_sharing_is_on_only_where_npu_smi_says_so(tmp_path: Path, script: str, reason: str) -> None:
    with pytest.raises(DevicesError, match=reason):
        fake(tmp_path, script).share(4, 1)


@pytest.mark.parametrize(("told", "shared"), [("True", True), ("False", False)])
def test_a_chip_that_refuses_because_it_is_in_use_may_be_shared_already(
    tmp_path: Path, told: str, *, shared: bool
) -> None:
    script = fake(tmp_path, f'[ "$1" = info ] && echo "Device-share Status : {told}" || exit 1')
    if shared:
        script.share(4, 1)
    else:
        with pytest.raises(DevicesError, match="exit 1"):
            script.share(4, 1)


def test_sharing_is_asked_for_as_the_driver_expects_it(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    fake(tmp_path, f'read answer; echo "$@ $answer" > {seen}; echo "Status : OK"').share(4, 1)
    assert seen.read_text() == "set -t device-share -i 4 -c 1 -d 1 Y\n"


def test_the_first_source_that_answers_is_taken() -> None:
    def silent() -> Machine:
        raise DevicesError("no libdcmi")

    found = Machine("file", "25.5.0", ())
    assert devices.discover([silent, lambda: found]) is found
    with pytest.raises(DevicesError, match="no libdcmi; no libdcmi"):
        devices.discover([silent, silent])


def test_a_uuid_or_number_that_stands_twice_is_taken_once() -> None:
    one, again, same = Device("A", "x", 0, 0, 0), Device("A", "x", 1, 0, 1), Device("B", "x", 2, 0, 0)
    machine = devices.machine_of("test", "25.5.0", [one, again, same])
    assert [device.uuid for device in machine.devices] == ["A"]
    assert len(machine.faults) == 2


def test_a_file_stands_in_for_the_driver(tmp_path: Path) -> None:
    path = tmp_path / "devices.yaml"
    path.write_text("driver: 25.5.0\ndevices: [{uuid: A, chip: 910B3}, {uuid: B, chip: 910B3, healthy: false}]\n")
    machine = devices.read_file(path)
    assert [(one.uuid, one.card, one.physical, bool(one.fault)) for one in machine.devices] == [
        ("A", 0, 0, False),
        ("B", 1, 1, True),
    ]


@pytest.mark.parametrize(
    "text", ["devices: []", "driver: 25.5.0", "driver: 25.5.0\ndevices: [{uuid: 'a,b', chip: x}]", "a: 1\n---\nb: 2"]
)
def test_a_file_that_does_not_describe_a_machine_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "devices.yaml"
    path.write_text(text)
    with pytest.raises((ConfigError, InputError, ValueError)):
        devices.read_file(path)


@pytest.mark.parametrize(("text", "version"), [("25.5.0", (25, 5)), ("25.10.rc1", (25, 10)), ("24.1.RC3", (24, 1))])
def test_versions_are_compared_by_their_first_two_numbers(text: str, version: tuple[int, int]) -> None:
    assert devices.version_of(text) == version


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError):
        devices.version_of("unknown")
