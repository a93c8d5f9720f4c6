"""HAMi's scheduler: whether it knows Ascend chips, and reads the table that we read."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.errors import FieldError, few
from vnpu.kube import CONFIG_MAPS
from webhook.doctor import tables
from webhook.doctor.case import content
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.programs import Role
from webhook.doctor.snapshot import UnseenError, dig, items, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vnpu.kube import Object
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

MISSING: Final = Fault(
    "hami-missing", Severity.ERROR, "install HAMi 2.9 or newer, or set scheduler.kind: kube in the chart's values"
)
DOWN: Final = Fault("hami-down", Severity.ERROR, "kubectl -n {namespace} describe pod: see why it is not ready")
ASCEND_OFF: Final = Fault(
    "hami-ascend-off",
    Severity.ERROR,
    "set devices.ascend.enabled: true in HAMi's values: it does not know Ascend chips now",
)
TOO_OLD: Final = Fault("hami-too-old", Severity.ERROR, "upgrade HAMi to 2.9 or newer: older ones know no soft slices")
LONG_NAME: Final = Fault(
    "hami-node-name-too-long",
    Severity.ERROR,
    "give the node a name of at most 63 characters: HAMi copies it into a label, and fails for every pod that it puts "
    "there",
)
ALIKE: Final = Fault(
    "hami-chips-alike",
    Severity.WARNING,
    "keep pods apart by node labels: HAMi finds a chip by a part of its name, and gives {part} pods cards of {whole}",
)
OVERWRITES: Final = Fault(
    "hami-overwrite-env",
    Severity.WARNING,
    "set overwriteEnv: false for {chips}: HAMi's webhook writes an empty ASCEND_VISIBLE_DEVICES for each chip that a "
    "container does not ask for, also where it asks for another one, and the container then sees no NPU",
)
NO_TEMPLATES: Final = Fault(
    "hami-chip-without-templates",
    Severity.WARNING,
    "give {chips} templates: HAMi's device plugin offers one slice a card without them, in soft mode too",
)

_ASCEND_OPTION: Final = "enable-ascend"
_SOFT: Final = (2, 9)
_LONGEST_LABEL: Final = 63


def scheduler(case: Case) -> Iterator[Finding]:
    """Whether it is there and on, where pods are placed by it."""
    found = case.running(Role.HAMI)
    if not found:
        yield MISSING.at("HAMi", "admission sends pods to HAMi's scheduler, and no Deployment runs it")
    for program in found:
        if not dig(program.owner, "status", "readyReplicas"):
            yield DOWN.at(program.label, "no replica is ready", namespace=program.namespace)
        if program.option(_ASCEND_OPTION) != "true":
            yield ASCEND_OFF.at(program.label, f"--{_ASCEND_OPTION}=true is not among its arguments")
        if program.version is not None and program.version < _SOFT:
            yield TOO_OLD.at(program.label, f"it is {program.image}")


def nodes(case: Case) -> Iterator[Finding]:
    """What HAMi's scheduler cannot tell apart, or not write down."""
    for _, node in case.node_readings:
        if len(node.name) > _LONGEST_LABEL:
            yield LONG_NAME.at(f"Node {node.name}", f"its name has {len(node.name)} characters")
    words = {card.chip for _, node in case.node_readings for card in node.cards}
    for part, whole in sorted(permutations(words, 2)):
        if part.lower() in whole.lower():
            yield ALIKE.at("HAMi", f"there are cards of {part} and of {whole}", part=part, whole=whole)


def device_config(case: Case) -> Iterator[Finding]:
    """What HAMi's scheduler and device plugin read, wherever they run."""
    seen: set[tuple[str, str]] = set()
    for program in case.running(Role.HAMI, Role.HAMI_NODE):
        path = program.option("device-config-file") or program.option("config_file") or f"/{names.DEVICE_CONFIG_KEY}"
        name = program.mounted(path)
        if name is None or (program.namespace, name) in seen:
            continue
        seen.add((program.namespace, name))
        found = case.snapshot.find(CONFIG_MAPS, name, program.namespace)
        subject = named(CONFIG_MAPS, name, program.namespace)
        if found is None:
            raise UnseenError(subject, f"{program.label} mounts it, and it is not there")
        yield from tables.compare(case, found, subject, "HAMi")
        yield from _defects(found, subject)


def _defects(config_map: Object, subject: str) -> Iterator[Finding]:
    try:
        document = content(config_map, names.DEVICE_CONFIG_KEY)
    except FieldError:
        return  # told already
    section = dig(document, "vnpus")
    chips = items(section if isinstance(section, list) else dig(section, "configs"))
    overwriting = [_word(chip) for chip in chips if chip.get("overwriteEnv") is True]
    if overwriting:
        yield OVERWRITES.at(subject, f"overwriteEnv is on for {few(overwriting)}", chips=few(overwriting))
    bare = [_word(chip) for chip in chips if not chip.get("templates")]
    if bare:
        yield NO_TEMPLATES.at(subject, f"{few(bare)} has no templates", chips=few(bare))


def _word(chip: Any) -> str:
    return str(chip.get("commonWord"))
