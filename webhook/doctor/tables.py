"""Device configs of others, read by our parser and held against our own table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vnpu import device_config, names
from vnpu.errors import FieldError, few
from webhook.doctor.case import content
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.snapshot import UnusableError, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vnpu.chips import Chip, ChipTable
    from vnpu.kube import Object
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

UNUSABLE: Final = Fault(
    "own-configuration-unusable",
    Severity.ERROR,
    "correct the values and upgrade; until then the webhook goes on with what it read before, and does not start anew",
)
UNREADABLE: Final = Fault(
    "device-config-unreadable",
    Severity.ERROR,
    "correct the field; {reader} does not say so, and goes on with a table of its own or with half of this one",
)
DIFFERS: Final = Fault(
    "device-config-differs",
    Severity.ERROR,
    "let one text serve all: put this ConfigMap's vnpus under deviceConfig of the chart's values, or point the other "
    "at ours",
)
SURPRISE: Final = Fault(
    "configuration-surprise", Severity.WARNING, "write what is standard, or see that every reader agrees"
)

_PARTS: Final = (
    ("resource_name", "resourceName"),
    ("memory_name", "resourceMemoryName"),
    ("memory_allocatable_mib", "memoryAllocatable"),
    ("memory_capacity_mib", "memoryCapacity"),
    ("memory_factor", "memoryFactor"),
    ("templates", "templates"),
)
"""What two readers of one pod must agree on."""


def settings(case: Case) -> Iterator[Finding]:
    """The webhook's settings."""
    try:
        warnings = case.settings.warnings
    except UnusableError as error:
        yield UNUSABLE.at(error.what, error.why)
        return
    yield from (SURPRISE.at(label(case.own_config_map(names.SETTINGS_KEY)), warning) for warning in warnings)


def own(case: Case) -> Iterator[Finding]:
    """Our own device config."""
    try:
        warnings = case.device_config.warnings
    except UnusableError as error:
        yield UNUSABLE.at(error.what, error.why)
        return
    yield from (SURPRISE.at(label(case.own_config_map(names.DEVICE_CONFIG_KEY)), warning) for warning in warnings)


def compare(case: Case, config_map: Object, subject: str, reader: str) -> Iterator[Finding]:
    """A device config that others read: whether it can be read, and says what ours says.

    Args:
        case: ours.
        config_map: where it stands.
        subject: its name, for findings.
        reader: who reads it.
    """
    try:
        found = device_config.parse(content(config_map, names.DEVICE_CONFIG_KEY))
    except FieldError as error:
        yield UNREADABLE.at(subject, str(error), reader=reader)
        return
    differences = list(_differences(case.chips, found.table))
    if differences:
        yield DIFFERS.at(subject, "; ".join(differences))
    yield from (SURPRISE.at(subject, warning) for warning in found.warnings)


def _differences(ours: ChipTable, theirs: ChipTable) -> Iterator[str]:
    missing = [chip.common_word for chip in ours if theirs.get(chip.common_word) is None]
    if missing:
        yield f"it does not know {few(missing)}, which ours does"
    more = [chip.common_word for chip in theirs if ours.get(chip.common_word) is None]
    if more:
        yield f"ours does not know {few(more)}"
    for chip in ours:
        other = theirs.get(chip.common_word)
        parts = [key for part, key in _PARTS if other is not None and getattr(chip, part) != getattr(other, part)]
        if parts:
            yield f"{chip.common_word} differs in {', '.join(parts)}{_figures(chip, other, parts)}"
    if ours.soft_nodes_by_default is not theirs.soft_nodes_by_default:
        yield f"hamiVnpuCore is {_word(theirs)}, and {_word(ours)} in ours"


def _figures(ours: Chip, theirs: Chip | None, parts: list[str]) -> str:
    if parts[0] != "memoryAllocatable" or theirs is None:
        return ""
    return f" ({theirs.memory_allocatable_mib} MiB, ours {ours.memory_allocatable_mib})"


def _word(table: ChipTable) -> str:
    return "true" if table.soft_nodes_by_default else "false"
