"""Volcano's scheduler: its version, its configuration, and the traps of both (docs/volcano.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.errors import FieldError, few, shown
from vnpu.kube import CONFIG_MAPS
from vnpu.quantity import is_whole
from webhook.doctor import tables
from webhook.doctor.case import content
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.programs import Role, programs
from webhook.doctor.snapshot import UnseenError, dig, items, label, moment, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from vnpu.kube import Object
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding
    from webhook.doctor.programs import Program

MISSING: Final = Fault(
    "volcano-missing",
    Severity.ERROR,
    "install Volcano {least} or newer, or set scheduler.kind: kube in the chart's values",
)
DOWN: Final = Fault("volcano-down", Severity.ERROR, "kubectl -n {namespace} describe pod -l app=volcano-scheduler")
TOO_OLD: Final = Fault(
    "volcano-too-old",
    Severity.ERROR,
    "upgrade Volcano to {least} or newer: this one rounds soft slices to a template and hands them out without a "
    "quota, so that they start without a limit",
)
LEDGER_LOST: Final = Fault(
    "volcano-ledger-lost",
    Severity.ERROR,
    "upgrade to 1.14.4, 1.15.1 or newer: this one counts from the annotation that the device plugin empties, and gives "
    "cards away twice after a restart",
)
UNKNOWN_VERSION: Final = Fault(
    "volcano-version-unknown", Severity.WARNING, "see by yourself that it is {least} or newer: soft slices need that"
)
OTHER_NAME: Final = Fault(
    "volcano-name-differs",
    Severity.ERROR,
    "name Volcano's --scheduler-name in scheduler.name (settings.schedulerName, volcanoSchedulers)",
)
CONFIGURATION_UNREADABLE: Final = Fault(
    "volcano-configuration-unreadable",
    Severity.ERROR,
    "correct it by docs/volcano.md; Volcano goes on with its default",
)
PLUGIN_OFF: Final = Fault(
    "volcano-plugin-off",
    Severity.ERROR,
    "add the plugin {plugin} to a tier (docs/volcano.md) and restart the scheduler: deviceshare filters and scores, "
    "predicates allocates, and neither works without the other",
)
HAMI_MODE_OFF: Final = Fault(
    "volcano-hami-mode-off",
    Severity.ERROR,
    "set deviceshare.AscendHAMiVNPUEnable: true and restart the scheduler: it registers the chips once, at its start",
)
MINDCLUSTER_MODE: Final = Fault(
    "volcano-mindcluster-mode-on",
    Severity.WARNING,
    "set deviceshare.AscendMindClusterVNPUEnable: false unless other nodes need it: two device plugins on one node "
    "destroy each other's vNPUs",
)
NO_WEIGHT: Final = Fault(
    "volcano-schedule-weight",
    Severity.WARNING,
    "set deviceshare.ScheduleWeight to a number of at least 1, without quotes: without it the policy is not looked at, "
    "and cards are chosen at random",
)
NO_POLICY: Final = Fault(
    "volcano-schedule-policy",
    Severity.WARNING,
    "set deviceshare.SchedulePolicy to binpack or spread: without it cards are chosen at random",
)
NODE_LOCK: Final = Fault(
    "volcano-node-lock",
    Severity.WARNING,
    "set deviceshare.NodeLockEnable: false: two pods of a gang on one node lock each other out for five minutes, again "
    "and again",
)
NO_DEVICE_CONFIG: Final = Fault(
    "volcano-device-config-missing",
    Severity.ERROR,
    "point deviceshare.KnownGeometriesCMName and ...CMNamespace at the chart's device config ({own}) and restart the "
    "scheduler: without one it knows the 310P alone, and binds pods of other chips without cards",
)
NOT_RESTARTED: Final = Fault(
    "volcano-not-restarted",
    Severity.WARNING,
    "kubectl -n {namespace} rollout restart deployment {name}: it reads this once, at its start",
)
ONE_NODE: Final = Fault(
    "volcano-one-node",
    Severity.INFO,
    "nothing: with a single node Volcano never scores, so that cards are chosen at random",
)

_CONFIGURATION_OPTION: Final = "scheduler-conf"
_SHARE: Final = "deviceshare"
_PREDICATES: Final = "predicates"
_SOFT: Final = tuple(int(part) for part in names.VOLCANO_SOFT_SINCE.split("."))
_KEEPS_LEDGER: Final[Mapping[tuple[int, ...], tuple[int, ...]]] = {(1, 14): (1, 14, 4), (1, 15): (1, 15, 1)}
_GEOMETRIES: Final = ("volcano-vgpu-device-config", "kube-system")
"""Where Volcano looks for its device config when nothing else is said."""


def scheduler(case: Case) -> Iterator[Finding]:
    """Whether it is there, new enough and the one that admission names."""
    found = case.running(Role.VOLCANO)
    if not found:
        seen = f"admission sends pods to {shown(case.settings.scheduler_name)}, and no Deployment runs vc-scheduler"
        yield MISSING.at("Volcano", seen, least=names.VOLCANO_SOFT_SINCE)
    for program in found:
        yield from _version(program)
        if not dig(program.owner, "status", "readyReplicas"):
            yield DOWN.at(program.label, "no replica is ready", namespace=program.namespace)
        served = (program.option("scheduler-name") or names.SCHEDULER_VOLCANO).split(",")
        if case.settings.scheduler_name not in served:
            yield OTHER_NAME.at(
                program.label, f"it schedules for {few(served)}, not for {shown(case.settings.scheduler_name)}"
            )


def _version(program: Program) -> Iterator[Finding]:
    version = program.version
    if version is None:
        yield UNKNOWN_VERSION.at(
            program.label, f"the image {program.image} does not tell its version", least=names.VOLCANO_SOFT_SINCE
        )
        return
    if version[:2] < _SOFT:
        yield TOO_OLD.at(program.label, f"it is {program.image}", least=names.VOLCANO_SOFT_SINCE)
    if version < _KEEPS_LEDGER.get(version[:2], (1, 14, 4)) or version[:2] < (1, 14):
        yield LEDGER_LOST.at(program.label, f"it is {program.image}")


def configuration(case: Case) -> Iterator[Finding]:
    """Its ConfigMap."""
    for program in case.running(Role.VOLCANO):
        config_map = _config_map(case, program)
        subject = label(config_map)
        try:
            plugins = _plugins(program, config_map)
        except FieldError as error:
            yield CONFIGURATION_UNREADABLE.at(subject, str(error))
            continue
        yield from _stale(case, program, config_map)
        for name in (_SHARE, _PREDICATES):
            if name not in plugins:
                yield PLUGIN_OFF.at(subject, f"the plugin {name} is not on", plugin=name)
            elif plugins[name].get("enablePredicate") is False:
                yield PLUGIN_OFF.at(subject, f"the plugin {name} has enablePredicate: false", plugin=name)
        if _SHARE in plugins:
            yield from _arguments(subject, dig(plugins[_SHARE], "arguments"))
            yield from _device_config(case, program, subject, dig(plugins[_SHARE], "arguments"))
        if len(case.node_readings) == 1:
            yield ONE_NODE.at(f"Node {case.node_readings[0][1].name}", "it is the only node with NPUs")


def device_configs(case: Case) -> Iterator[tuple[str, str]]:
    """Where Volcano's schedulers look for their device config: name and namespace of ConfigMaps."""
    for program in case.running(Role.VOLCANO):
        try:
            plugins = _plugins(program, _config_map(case, program))
        except (FieldError, UnseenError):
            continue  # told by the check
        if _SHARE in plugins:
            yield _geometries(dig(plugins[_SHARE], "arguments"))


def _plugins(program: Program, config_map: Object) -> dict[str, Any]:
    """The plugins of all tiers, by name."""
    key = (program.option(_CONFIGURATION_OPTION) or "").rpartition("/")[2]
    document = content(config_map, key)
    return {
        str(plugin.get("name")): plugin
        for tier in items(dig(document, "tiers"))
        for plugin in items(tier.get("plugins"))
    }


def _geometries(arguments: Any) -> tuple[str, str]:
    name, namespace = (
        str(dig(arguments, f"{_SHARE}.KnownGeometries{part}") or default)
        for part, default in zip(("CMName", "CMNamespace"), _GEOMETRIES, strict=True)
    )
    return name, namespace


def _config_map(case: Case, program: Program) -> Object:
    path = program.option(_CONFIGURATION_OPTION) or ""
    name = program.mounted(path)
    if name is None:
        raise UnseenError(
            program.label, f"no ConfigMap is mounted where --{_CONFIGURATION_OPTION} points ({path or '-'})"
        )
    found = case.snapshot.find(CONFIG_MAPS, name, program.namespace)
    if found is None:
        raise UnseenError(named(CONFIG_MAPS, name, program.namespace), "it is not there")
    return found


def _arguments(subject: str, arguments: Any) -> Iterator[Finding]:
    def given(name: str) -> Any:
        return dig(arguments, f"{_SHARE}.{name}")

    if given("AscendHAMiVNPUEnable") not in (True, "true"):
        yield HAMI_MODE_OFF.at(subject, f"{_SHARE}.AscendHAMiVNPUEnable is {shown(given('AscendHAMiVNPUEnable'))}")
    if given("AscendMindClusterVNPUEnable") in (True, "true"):
        yield MINDCLUSTER_MODE.at(subject, f"{_SHARE}.AscendMindClusterVNPUEnable is on as well")
    if not is_whole(given("ScheduleWeight"), low=1):
        yield NO_WEIGHT.at(subject, f"{_SHARE}.ScheduleWeight is {shown(given('ScheduleWeight'))}")
    if given("SchedulePolicy") not in ("binpack", "spread"):
        yield NO_POLICY.at(subject, f"{_SHARE}.SchedulePolicy is {shown(given('SchedulePolicy'))}")
    if given("NodeLockEnable") in (True, "true"):
        yield NODE_LOCK.at(subject, f"{_SHARE}.NodeLockEnable is on")


def _device_config(case: Case, program: Program, subject: str, arguments: Any) -> Iterator[Finding]:
    name, namespace = _geometries(arguments)
    found = case.snapshot.find(CONFIG_MAPS, name, namespace)
    own = case.own_config_map(names.DEVICE_CONFIG_KEY)["metadata"]
    where = named(CONFIG_MAPS, name, namespace)
    if found is None or names.DEVICE_CONFIG_KEY not in (found.get("data") or {}):
        lacks = "is not there" if found is None else f"has no key {names.DEVICE_CONFIG_KEY}"
        yield NO_DEVICE_CONFIG.at(subject, f"{where} {lacks}", own=f"{own['namespace']}/{own['name']}")
        return
    yield from _stale(case, program, found)
    if found["metadata"].get("uid", name) != own.get("uid", own["name"]) or namespace != own["namespace"]:
        yield from tables.compare(case, found, where, "Volcano")


def _stale(case: Case, program: Program, config_map: Object) -> Iterator[Finding]:
    """Whether the ConfigMap was changed after the scheduler had read it."""
    changed = _changed(config_map)
    started = [
        begun
        for pod in case.snapshot.pods
        if any(one.role is Role.VOLCANO for one in programs(pod)) and pod["metadata"]["namespace"] == program.namespace
        if (begun := moment(dig(pod, "status", "startTime"))) is not None
    ]
    if changed is not None and started and min(started) < changed:
        yield NOT_RESTARTED.at(
            label(config_map),
            f"it was changed at {changed:%Y-%m-%d %H:%M:%S} UTC, after the scheduler had started",
            namespace=program.namespace,
            name=program.owner["metadata"]["name"],
        )


def _changed(config_map: Object) -> datetime | None:
    """When its data were last written; managed fields tell it."""
    times = [
        moment(entry.get("time"))
        for entry in items(dig(config_map, "metadata", "managedFields"))
        if dig(entry, "fieldsV1", "f:data") is not None
    ]
    return max(
        (one for one in times if one is not None), default=moment(dig(config_map, "metadata", "creationTimestamp"))
    )
