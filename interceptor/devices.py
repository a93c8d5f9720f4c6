"""The NPUs of this node: what the driver says, by whichever way it can be asked.

libdcmi is asked first, then ``npu-smi``; a file stands in for both in tests and plans. Nothing is invented: a chip that
cannot be told is left out, and :attr:`Machine.faults` says why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu import documents
from vnpu.annotations.fields import UUID_ALLOWED, is_word
from vnpu.errors import ConfigError, VnpuError, item
from vnpu.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)
_HIGHEST_ID: Final = 1023
"""Of a card, as the limiter reads numbers of cards."""
_DEVICE_KEYS: Final = ("uuid", "chip", "card", "device", "physical", "healthy")


class DevicesError(VnpuError):
    """The driver cannot be asked for its chips; the message says in which ways that was tried."""


@dataclass(frozen=True, slots=True)
class Device:
    """One chip, as the driver knows it.

    Attributes:
        uuid: the number of its die, which it keeps wherever it is put.
        chip_name: the driver's name of the model, for example ``910B3``.
        card: the card that carries it, as ``npu-smi -i`` counts.
        device: its place on that card, as ``npu-smi -c`` counts.
        physical: its number on this machine, as ``ASCEND_VISIBLE_DEVICES`` counts.
        fault: why it cannot be used, ``""`` where it can.
    """

    uuid: str
    chip_name: str
    card: int
    device: int
    physical: int
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the driver says at one moment.

    Attributes:
        source: how it was asked: ``dcmi``, ``npu-smi`` or a file's name.
        driver: version of the driver, for example ``25.5.0``.
        devices: by physical number.
        faults: sentences about chips that are there but could not be told.
    """

    source: str
    driver: str
    devices: tuple[Device, ...]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What one chip is used for at one moment.

    Attributes:
        memory: bytes that it has.
        used: bytes that are used, by whomever.
        busy: percent of its AI cores' time.
        processes: bytes that each process holds, by its pid on the host.
    """

    memory: int
    used: int
    busy: int
    processes: Mapping[int, int]


def discover(sources: Sequence[Callable[[], Machine]]) -> Machine:
    """What the first source says that can be asked.

    Raises:
        DevicesError: none of them can.
    """
    reasons = []
    for source in sources:
        try:
            return source()
        except VnpuError as error:
            reasons.append(str(error))
    raise DevicesError("; ".join(reasons) or "no way to ask the driver is configured")


def version_of(text: str) -> tuple[int, int]:
    """The first two numbers of a driver's version, by which drivers are compared.

    Raises:
        ConfigError: the text does not begin with them.
    """
    match = _VERSION.match(text)
    if match is None:
        raise ConfigError("driver version", text, "a version such as 25.5.0 is expected")
    return int(match[1]), int(match[2])


def uuid_of(words: Sequence[int]) -> str:
    """The UUID of a chip from the words of its die, in the spelling of HAMi's device plugin."""
    return "-".join(f"{word:08X}" for word in words)


def machine_of(source: str, driver: str, devices: Sequence[Device], faults: Sequence[str] = ()) -> Machine:
    """A machine of these devices; of several that claim one UUID or one number, the first is taken."""
    taken: dict[str | int, Device] = {}
    kept, problems = [], list(faults)
    for device in sorted(devices, key=lambda one: one.physical):
        clash = next((key for key in (device.uuid, device.physical) if key in taken), None)
        if clash is not None:
            problems.append(f"chip {device.device} of card {device.card} claims {clash}, which another chip has")
            continue
        taken |= {device.uuid: device, device.physical: device}
        kept.append(device)
    return Machine(source, driver, tuple(kept), tuple(problems))


def read_file(path: Path) -> Machine:
    """The machine that a YAML or JSON file describes: ``{driver, devices: [{uuid, chip, card, ...}]}``.

    Of a device, ``uuid`` and ``chip`` (the driver's name) must be given; ``card`` and ``physical`` default to its place
    in the list, ``device`` to 0, ``healthy`` to true.

    Raises:
        VnpuError: the file cannot be read, or holds what it must not hold.
    """
    found = list(documents.read(path))
    if len(found) != 1:
        raise ConfigError(str(path), f"{len(found)} documents", "one document is expected")
    with found[0] as document:
        top = Fields(document.value)
        top.refuse_unknown(("driver", "devices"))
        entries = top.get("devices")
        if not isinstance(entries, list):
            raise ConfigError("devices", entries, "a list of devices is expected")
        devices = [_device(entry, index) for index, entry in enumerate(entries)]
        return machine_of(str(path), top.name("driver"), devices)


def _device(entry: Any, index: int) -> Device:
    fields = Fields(entry, item("devices", index))
    fields.refuse_unknown(_DEVICE_KEYS)
    uuid = fields.name("uuid")
    if not is_word(uuid):
        raise ConfigError(fields.key("uuid"), uuid, UUID_ALLOWED)
    return Device(
        uuid,
        fields.name("chip"),
        card=fields.number("card", low=0, high=_HIGHEST_ID, default=index),
        device=fields.number("device", low=0, high=_HIGHEST_ID, default=0),
        physical=fields.number("physical", low=0, high=_HIGHEST_ID, default=index),
        fault="" if fields.boolean("healthy", default=True) else "the file calls it unhealthy",
    )
