"""libdcmi, the driver's management library, loaded at run time: one of the node's edges.

The prototypes are those of Huawei's public DCMI reference. A chip whose health or die cannot be read does not take the
others with it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import cffi

from interceptor.devices import Device, DevicesError, Machine, Usage, machine_of, uuid_of
from vnpu.quantity import MIB

_PROTOTYPES: Final = """
struct dcmi_chip_info {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
};
struct dcmi_die_id { unsigned int soc_die[5]; };
struct dcmi_hbm_info {
    unsigned long long memory_size;
    unsigned int freq;
    unsigned long long memory_usage;
    int temp;
    unsigned int bandwith_util_rate;
};
struct dcmi_get_memory_info_stru {
    unsigned long long memory_size;
    unsigned long long memory_available;
    unsigned int freq;
    unsigned long hugepagesize;
    unsigned long hugepages_total;
    unsigned long hugepages_free;
    unsigned int utiliza;
    unsigned char reserved[60];
};
struct dcmi_proc_mem_info { int proc_id; unsigned long proc_mem_usage; };
int dcmi_init(void);
int dcmi_get_driver_version(char *version, unsigned int length);
int dcmi_get_card_list(int *count, int *cards, int length);
int dcmi_get_device_id_in_card(int card, int *devices, int *mcu, int *cpu);
int dcmi_get_device_logic_id(int *logic, int card, int device);
int dcmi_get_device_phyid_from_logicid(unsigned int logic, unsigned int *physical);
int dcmi_get_device_chip_info(int card, int device, struct dcmi_chip_info *info);
int dcmi_get_device_health(int card, int device, unsigned int *health);
int dcmi_get_device_die_v2(int card, int device, int type, struct dcmi_die_id *die);
int dcmi_get_device_hbm_info(int card, int device, struct dcmi_hbm_info *info);
int dcmi_get_device_memory_info_v3(int card, int device, struct dcmi_get_memory_info_stru *info);
int dcmi_get_device_utilization_rate(int card, int device, int type, unsigned int *rate);
int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes, int *count);
"""
_MOST_CARDS: Final = 64
_VERSION_LENGTH: Final = 64
_VDIE: Final = 1
_HEALTHS: Final = {1: "a minor alarm", 2: "a major alarm", 3: "a critical alarm"}
_AI_CORES: Final = 2
_MOST_PROCESSES: Final = 1024
"""Room for more than any driver lists, for the call is not told how much there is."""
_GONE: Final = 0xFFFFFFFF
"""Health of a chip that the driver lost, or that has not started."""


@cache
def _ffi() -> cffi.FFI:
    ffi = cffi.FFI()
    ffi.cdef(_PROTOTYPES)
    return ffi


class _NotThereError(DevicesError):
    """A library that is not there; the message is its path."""


class _CallError(Exception):
    """A call of DCMI that did not answer 0."""


class Dcmi:
    """The library, ready to be asked."""

    def __init__(self, path: str) -> None:
        """Load and start the library at ``path``, or the one of that name that the loader finds.

        Raises:
            DevicesError: it is not there, is of another machine, lacks a function, or finds no driver.
        """
        try:
            self._library: Any = _ffi().dlopen(path)
        except OSError as error:
            raise _not_loaded(path, error) from error
        self._path = path
        try:
            self._call("dcmi_init")
        except _CallError as error:
            raise DevicesError(f"{path}: {error}") from error

    def machine(self) -> Machine:
        """The chips and their health, as they are now.

        Raises:
            DevicesError: neither version nor cards can be read.
        """
        try:
            version = _ffi().new("char[]", _VERSION_LENGTH)
            self._call("dcmi_get_driver_version", version, _VERSION_LENGTH)
            cards = _ffi().new("int[]", _MOST_CARDS)
            count = _ffi().new("int *")
            self._call("dcmi_get_card_list", count, cards, _MOST_CARDS)
        except _CallError as error:
            raise DevicesError(f"{self._path}: {error}") from error
        devices: list[Device] = []
        faults: list[str] = []
        for card in cards[0 : min(count[0], _MOST_CARDS)]:
            self._add_card(card, devices, faults)
        return machine_of("dcmi", _text(version), devices, faults)

    def usage(self, card: int, device: int) -> Usage:
        """What a chip is used for now.

        Raises:
            DevicesError: the driver does not tell.
        """
        rate = _ffi().new("unsigned int *")
        processes = _ffi().new("struct dcmi_proc_mem_info[]", _MOST_PROCESSES)
        count = _ffi().new("int *")
        try:
            total, used = self._memory(card, device)
            self._call("dcmi_get_device_utilization_rate", card, device, _AI_CORES, rate)
            self._call("dcmi_get_device_resource_info", card, device, processes, count)
        except _CallError as error:
            raise DevicesError(f"chip {device} of card {card}: {error}") from error
        listed = processes[0 : max(0, min(count[0], _MOST_PROCESSES))]
        held = {process.proc_id: process.proc_mem_usage for process in listed}
        return Usage(total, used, min(rate[0], 100), held)

    def _memory(self, card: int, device: int) -> tuple[int, int]:
        """Bytes of a chip, and those that are used: of its high-bandwidth memory where it has any."""
        high = _ffi().new("struct dcmi_hbm_info *")
        self._call("dcmi_get_device_hbm_info", card, device, high)
        if high.memory_size:
            return high.memory_size * MIB, high.memory_usage * MIB
        low = _ffi().new("struct dcmi_get_memory_info_stru *")
        self._call("dcmi_get_device_memory_info_v3", card, device, low)
        return low.memory_size * MIB, (low.memory_size - min(low.memory_available, low.memory_size)) * MIB

    def _add_card(self, card: int, devices: list[Device], faults: list[str]) -> None:
        numbers = _ffi().new("int[3]")
        try:
            self._call("dcmi_get_device_id_in_card", card, numbers, numbers + 1, numbers + 2)
        except _CallError as error:
            faults.append(f"card {card}: {error}")
            return
        for device in range(numbers[0]):
            try:
                devices.append(self._device(card, device))
            except _CallError as error:
                faults.append(f"chip {device} of card {card}: {error}")

    def _device(self, card: int, device: int) -> Device:
        logic = _ffi().new("int *")
        physical = _ffi().new("unsigned int *")
        info = _ffi().new("struct dcmi_chip_info *")
        die = _ffi().new("struct dcmi_die_id *")
        self._call("dcmi_get_device_logic_id", logic, card, device)
        self._call("dcmi_get_device_phyid_from_logicid", logic[0], physical)
        self._call("dcmi_get_device_chip_info", card, device, info)
        self._call("dcmi_get_device_die_v2", card, device, _VDIE, die)
        return Device(
            uuid_of(tuple(die.soc_die)),
            _text(info.chip_name),
            card,
            device,
            physical[0],
            self._fault(card, device),
        )

    def _fault(self, card: int, device: int) -> str:
        health = _ffi().new("unsigned int *")
        try:
            self._call("dcmi_get_device_health", card, device, health)
        except _CallError as error:
            return str(error)
        if health[0] == 0:
            return ""
        told = "it is gone or has not started" if health[0] == _GONE else _HEALTHS.get(health[0], "something unknown")
        return f"the driver reports {told} (health {health[0]})"

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise _CallError(f"the library has no {name}") from error
        code = function(*arguments)
        if code:
            raise _CallError(f"{name} answers {code}")


def _text(buffer: Any) -> str:
    return bytes(_ffi().buffer(buffer)).partition(b"\0")[0].decode("ascii", "replace").strip()


def source(paths: tuple[str, ...]) -> Dcmi:
    """The first library of these that can be asked.

    Raises:
        DevicesError: none of them can.
    """
    absent: list[str] = []
    reasons: list[str] = []
    for path in paths:
        try:
            return Dcmi(path)
        except _NotThereError as error:
            absent.append(str(error))
        except DevicesError as error:
            reasons.append(str(error))
    if absent:
        reasons.insert(0, f"libdcmi is at none of {', '.join(absent)}")
    raise DevicesError("; ".join(reasons))


def _not_loaded(path: str, error: OSError) -> DevicesError:
    """The loader's own words, out of what cffi says of them and of its further search."""
    said = str(error).removeprefix(f"cannot load library '{path}': ").partition(".  Additionally,")[0]
    # Of a library that is made for another machine the loader says that it is not there.
    missing = said == f"{path}: cannot open shared object file: No such file or directory"
    if missing and not Path(path).exists():
        return _NotThereError(path)
    return DevicesError(f"{path}: {said.removeprefix(f'{path}: ')}")
