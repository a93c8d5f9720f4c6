"""What this node offers: its chips as cards of the cluster, their slots, and why some of them take no slice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from interceptor import devices
from vnpu import names
from vnpu.cards import Card
from vnpu.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from interceptor.device_plugin.settings import NodeSettings
    from interceptor.devices import Device, Machine
    from vnpu.chips import Chip, ChipTable

_GROUP: Final = 4
"""Cards of one board that are connected directly."""
_WITH_GROUPS: Final = "Ascend910"


@dataclass(frozen=True, slots=True)
class Offered:
    """One chip as it is offered.

    Attributes:
        card: what the cluster is told of it.
        chip: its model.
        physical: its number for ``ASCEND_VISIBLE_DEVICES``.
        fault: why no container may get it, ``""`` where one may. A cordoned card has none: what was placed there before
            is still served.
    """

    card: Card
    chip: Chip
    physical: int
    fault: str = ""

    def slots(self) -> list[str]:
        """The ids by which kubelet knows its slots."""
        return [f"{self.card.uuid}-{slot}" for slot in range(self.card.slots)]


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a node offers.

    Attributes:
        soft: whether soft slices may live here.
        refused: why they may not, though they are wanted here; else ``""``.
        cards: by physical number.
        faults: sentences about chips that are there and not offered.
    """

    soft: bool
    refused: str = ""
    cards: tuple[Offered, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The models, in the order of their first card."""
        return tuple({offered.chip.common_word: offered.chip for offered in self.cards}.values())

    def of(self, chip: Chip) -> tuple[Offered, ...]:
        """The cards of one model."""
        return tuple(offered for offered in self.cards if offered.chip == chip)

    @property
    def physical_ids(self) -> dict[str, int]:
        """The number of each card, by UUID."""
        return {offered.card.uuid: offered.physical for offered in self.cards}

    def card(self, uuid: str) -> Offered | None:
        """The card of that UUID."""
        return next((offered for offered in self.cards if offered.card.uuid == uuid), None)


def soft_fault(driver: str, library_fault: str, share_fault: str) -> str:
    """Why soft slices cannot live on a node, ``""`` where they can.

    Args:
        driver: version of the driver.
        library_fault: what is wrong with the installed libvnpu.so, ``""`` for nothing.
        share_fault: why sharing of chips cannot be switched on, ``""`` where it can.
    """
    reasons = []
    try:
        if devices.version_of(driver) < devices.version_of(names.LEAST_DRIVER):
            reasons.append(f"the driver is {driver}, and {names.LEAST_DRIVER} or newer is needed")
    except ConfigError as error:
        reasons.append(str(error))
    return "; ".join([*reasons, *filter(None, (library_fault, share_fault))])


def build(
    machine: Machine,
    chips: ChipTable,
    settings: NodeSettings,
    *,
    soft: bool,
    refused: str = "",
    share_faults: Mapping[str, str] | None = None,
    cordoned: Collection[str] = (),
) -> Inventory:
    """What a node offers.

    Positions are physical numbers, whatever the settings hide, so that pairs and groups of cards stay what they are.

    Args:
        machine: what the driver says.
        chips: the chip table; a device belongs to the first chip of exactly its name.
        settings: what is configured for the node.
        soft: whether soft slices live here.
        refused: why they do not, though they are wanted.
        share_faults: why containers cannot share a chip, by UUID.
        cordoned: UUIDs that take no new slices.
    """
    offered, faults = [], list(machine.faults)
    for device in filter(settings.offers, machine.devices):
        chip = next((chip for chip in chips if chip.chip_name == device.chip_name), None)
        if chip is None:
            known = ", ".join(chip.chip_name for chip in chips)
            faults.append(f"chip {device.physical} is a {device.chip_name}, and the device config knows {known}")
            continue
        fault = device.fault or ((share_faults or {}).get(device.uuid, "") if soft else "")
        slots = settings.slots or (settings.soft_slots if soft else chip.hard_slots)
        healthy = not fault and device.uuid not in cordoned
        offered.append(Offered(_card(device, chip, slots, healthy=healthy), chip, device.physical, fault))
    return Inventory(soft, refused, tuple(offered), tuple(faults))


def _card(device: Device, chip: Chip, slots: int, *, healthy: bool) -> Card:
    return Card(
        device.uuid,
        device.physical,
        chip.common_word,
        chip.memory_allocatable_mib,
        slots,
        chip.ai_core,
        chip.ai_cpu,
        healthy,
        _network_id(device, chip),
    )


def _network_id(device: Device, chip: Chip) -> int | None:
    if not chip.common_word.startswith(_WITH_GROUPS):
        return None
    return 0 if chip.super_pod else device.physical // _GROUP


def remembered(before: Machine | None, now: Machine) -> Machine:
    """The machine now, with the chips that it had before and that the driver no longer names: they are lost, not gone.

    A card that simply vanished would make the books of its pods unreadable.
    """
    if before is None:
        return now
    there = {device.uuid for device in now.devices}
    return devices.machine_of(now.source, now.driver, [*now.devices, *lost(before.devices, there)], now.faults)


def lost(known: Iterable[Device], there: Collection[str] = (), reason: str = "") -> Sequence[Device]:
    """The known chips that are not there any more, each with the reason for a fault."""
    why = reason or "the driver no longer names it"
    return [replace(device, fault=why) for device in known if device.uuid not in there]


def preferred(available: Sequence[str], needed: Sequence[str], size: int, wanted: Sequence[str]) -> list[str]:
    """Which slots kubelet had better book: those of the cards that a scheduler chose, so that its books tell the truth.

    Args:
        available: ids of free slots.
        needed: ids that kubelet takes in any case.
        size: how many it takes in all.
        wanted: UUIDs of the chosen cards; one slot of each is booked.

    Returns:
        ``size`` ids, or none where the chosen cards cannot be booked so: kubelet then takes any.
    """
    chosen = list(needed)
    for uuid in wanted:
        if any(_card_of(slot) == uuid for slot in chosen):
            continue
        free = next((slot for slot in available if slot not in chosen and _card_of(slot) == uuid), None)
        if free is not None:
            chosen.append(free)
    return chosen if len(chosen) == size else []


def _card_of(slot: str) -> str:
    return slot.rpartition("-")[0]
