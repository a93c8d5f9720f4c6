"""What management tools see."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.simulated_npu import MIB, Machine, flag

DCMI = ("dcmi", "drvdsmi_host")
HBM_SIZE, HBM_USED = 0, 16
"""Offsets in struct dcmi_hbm_info."""


def words(machine: Machine, name: str, *arguments: int, offsets: tuple[int, ...]) -> tuple[int, ...]:
    """64-bit words of the structure that a call of DCMI or DSMI fills."""
    with machine.client(*DCMI, device=None) as client:
        client.do("dcmi_init")
        client.do(name, *arguments, "&info")
        return tuple(client.word("info", offset) for offset in offsets)


def test_hbm_is_told_in_mb_by_dcmi_and_in_kb_by_dsmi(machine: Machine) -> None:
    with machine.client() as holder:
        holder.do("halMemAlloc", "&p", 5 * MIB, flag())
        for name, arguments, unit in (
            ("dcmi_get_device_hbm_info", (0, 0), MIB),
            ("dcmi_get_hbm_info", (0, 0), MIB),
            ("dcmiv2_get_device_hbm_info", (0,), MIB),
            ("dsmi_get_hbm_info", (0,), 1024),
        ):
            size, used = words(machine, name, *arguments, offsets=(HBM_SIZE, HBM_USED))
            assert (name, size * unit, used * unit) == (name, 1024 * MIB, 5 * MIB)


def test_ddr_is_not_there_on_910_and_hbm_not_on_310p(machine: Machine) -> None:
    assert words(machine, "dcmi_get_device_memory_info_v3", 0, 0, offsets=(0, 8)) == (0, 0)
    machine.state.unlink()
    machine.tool("create", "memory_mib=1024", "chip=Ascend310P3", "context_mib=0", "stream_kib=0")
    with machine.client() as holder:
        holder.do("halMemAlloc", "&p", 5 * MIB, flag())
        assert words(machine, "dcmi_get_device_memory_info_v3", 0, 0, offsets=(0, 8)) == (1024, 1019)
        assert words(machine, "dcmi_get_device_hbm_info", 0, 0, offsets=(HBM_SIZE, HBM_USED)) == (0, 0)


@pytest.mark.parametrize(
    ("total", "told", "used"),
    [(7168, 8192, 1024), (7680, 8192, 512), (14336, 16384, 2048), (15360, 16384, 1024), (30720, 32768, 2048)],
)
def test_some_totals_are_rounded_up_on_910b(machine: Machine, total: int, told: int, used: int) -> None:
    machine.tool("set", f"memory_mib={total}")
    assert words(machine, "dcmi_get_device_hbm_info", 0, 0, offsets=(HBM_SIZE, HBM_USED)) == (told, used)


def test_cards_have_physical_ids(machine: Machine) -> None:
    machine.state.unlink()
    machine.tool("create", "cards=4", "memory_mib=1024")
    with machine.client(*DCMI, device=None, ASCEND_VISIBLE_DEVICES="2,3") as client:
        assert client.do("dcmi_get_card_list", "&n", "&cards", 8)["cards"] == 2 | 3 << 32
        assert client.do("dcmi_get_device_logic_id", "&l", 3, 0)["l"] == 1
        assert client.do("dcmi_get_device_phyid_from_logicid", 0, "&p")["p"] == 2
        assert client.do("dcmi_get_device_logicid_from_phyid", 3, "&l")["l"] == 1
        assert client.call("dcmi_get_device_hbm_info", 0, 0, "&info").code == -8012
        assert client.call("dcmi_get_device_hbm_info", 2, 1, "&info").code == -8012


def test_rates(machine: Machine) -> None:
    with machine.client() as client:
        client.do("halMemAlloc", "&p", 256 * MIB, flag())
        assert client.do("dcmi_get_device_utilization_rate", 0, 0, 6, "&rate")["rate"] == 25
        assert client.do("dcmi_get_device_utilization_rate", 0, 0, 2, "&rate")["rate"] == 0
        client.kernel("k", 60_000_000)
        client.launch("k")
        assert client.do("dcmi_get_device_utilization_rate", 0, 0, 2, "&rate")["rate"] == 100
        assert client.call("dcmi_get_device_utilization_rate", 0, 0, 3, "&rate").code == -8255


def test_npu_smi_prints_what_dcmi_says(machine: Machine) -> None:
    with machine.client() as client:
        client.do("halMemAlloc", "&p", 5 * MIB, flag())
        result = machine.run("npu-smi", "info")
        assert result.returncode == 0
        assert "5 / 1024" in result.stdout
        assert f"| {client.process.pid} " in result.stdout
    assert "0 / 1024" in machine.run("npu-smi").stdout
    assert machine.run("npu-smi", "set").returncode == 2


def test_npu_smi_names_chips_and_their_driver(machine: Machine) -> None:
    machine.state.unlink()
    machine.tool("create", "cards=2", "driver=24.1.0", "sick=2")
    rows = [line.split() for line in machine.run("npu-smi", "info", "-m").stdout.splitlines()]
    assert [row[:3] for row in rows[1:]] == [["0", "0", "0"], ["0", "1", "-"], ["1", "0", "1"], ["1", "1", "-"]]
    assert "Software Version               : 24.1.0" in machine.run("npu-smi", "info", "-t", "board", "-i", "1").stdout
    dies = [machine.run("npu-smi", "info", "-t", "board", "-c", "0", "-i", card).stdout.split(":")[-1] for card in "01"]
    assert len(dies[0].split()) == len(dies[1].split()) == 5
    assert dies[0] != dies[1]
    healths = [
        machine.run("npu-smi", "info", "-t", "health", "-c", "0", "-i", card).stdout.split()[-1] for card in "01"
    ]
    assert healths == ["OK", "Alarm"]


def test_device_share_is_switched_by_who_says_yes_and_where_the_card_can(machine: Machine) -> None:
    machine.state.unlink()
    machine.tool("create", "cards=2", "unshareable=2")

    def share(card: int, answer: str) -> tuple[int, str]:
        command = [
            str(machine.folder / "npu-smi"),
            *["set", "-t", "device-share", "-c", "0", "-d", "1", "-i"],
            str(card),
        ]
        done = subprocess.run(
            command, env=machine.environment(), input=answer, capture_output=True, text=True, check=False
        )
        told = machine.run("npu-smi", "info", "-t", "device-share", "-c", "0", "-i", str(card)).stdout
        return done.returncode, told.split()[-1]

    assert share(0, "N\n") == (1, "False")
    assert share(0, "") == (1, "False")
    assert share(0, "Y\n") == (0, "True")
    assert share(1, "Y\n") == (1, "False")


def test_tools_take_no_slot_of_the_machine(machine: Machine) -> None:
    machine.run("npu-smi", "info")
    assert machine.status()["processes"] == []
