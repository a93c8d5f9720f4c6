"""Device plugins: one on each node, told what the settings say, and reading what it is meant to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.admission.settings import DevicePlugin, Hook
from vnpu.errors import FieldError, few, shown
from vnpu.kube import CONFIG_MAPS
from webhook.doctor.case import content
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.programs import Role
from webhook.doctor.snapshot import dig, items, label, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding
    from webhook.doctor.programs import Program

SEVERAL: Final = Fault(
    "two-device-plugins",
    Severity.ERROR,
    "take one away from the node, by its label or nodeSelector: each hands out the same cards, and destroys vNPUs that "
    "it did not make",
)
NONE: Final = Fault(
    "no-device-plugin",
    Severity.ERROR,
    "label the node for a pool of the chart, or start its device plugin: what it registered once is old",
)
MINDCLUSTER: Final = Fault(
    "mindcluster-on-the-node",
    Severity.ERROR,
    "take Huawei's own device plugin away from the node: it hands out the same cards, and destroys vNPUs that it takes "
    "for idle",
)
OTHER_PLUGIN: Final = Fault(
    "device-plugin-setting",
    Severity.ERROR,
    "set settings.devicePlugin: {value}: by it admission decides how many cards a soft container may have",
)
HOOK: Final = Fault(
    "limiter-hook-setting",
    Severity.ERROR,
    "set settings.limiter.hook: {value}: the limiter that the hook starts is not on these nodes, and containers would "
    "not start",
)
LIMITER_PATH: Final = Fault(
    "limiter-path-setting",
    Severity.ERROR,
    "set settings.limiter.path: {value}: there the node's device plugin mounts the limiter",
)
NODE_CONFIG: Final = Fault(
    "hami-node-config-not-read",
    Severity.WARNING,
    "add --node_config_file /node-config.yaml to the arguments: the file is mounted, and nothing in it has an effect",
)
NODE_ENTRY_HARD: Final = Fault(
    "hami-node-entry-turns-soft-off",
    Severity.WARNING,
    "write hami-vnpu-core: true into the entries: an entry without it makes its node hard although the whole is soft",
)
HOOK_PATH: Final = Fault(
    "hami-hook-path",
    Severity.WARNING,
    "take HOOK_PATH out of its environment: it moves only the directories of the containers, mounts and monitor stay",
)

_NODE_CONFIG_PATH: Final = "/node-config.yaml"
_NODE_CONFIG_KEY: Final = "node-config.yaml"
_MANAGER_INSIDE: Final = (1, 4)
"""From this version on HAMi's plugin has no limiter to start: its library brings the manager with it."""


def nodes(case: Case) -> Iterator[Finding]:
    """Which device plugins run on which node."""
    for document, node in case.node_readings:
        found = [program.label for program in case.device_plugins.get(node.name, ())]
        if len(found) > 1:
            yield SEVERAL.at(f"Node {node.name}", f"{len(found)} device plugins run there: {few(sorted(found))}")
        elif not found and node.cards:
            yield NONE.at(f"Node {node.name}", "it has registered cards, and no device plugin runs there")
        if node.cards and dig(document, "status", "allocatable", names.MINDCLUSTER_RESOURCE) not in (None, "0"):
            yield MINDCLUSTER.at(f"Node {node.name}", f"it offers {names.MINDCLUSTER_RESOURCE} as well")


def settings(case: Case) -> Iterator[Finding]:
    """What admission takes for granted of the device plugins."""
    plugins = {program.role for program in case.running(Role.NODE, Role.HAMI_NODE) if _serves(program)}
    set_to = case.settings.device_plugin
    theirs = case.running(Role.HAMI_NODE)
    subject = label(case.own_config_map(names.SETTINGS_KEY))
    if plugins == {Role.HAMI_NODE} and set_to is DevicePlugin.VNPU:
        seen = f"devicePlugin is {set_to}, and {few([one.label for one in theirs])} serves the nodes"
        yield OTHER_PLUGIN.at(subject, seen, value=DevicePlugin.HAMI)
    if plugins == {Role.NODE} and set_to is DevicePlugin.HAMI:
        yield OTHER_PLUGIN.at(subject, f"devicePlugin is {set_to}, and ours serves the nodes", value=DevicePlugin.VNPU)
    limiter = case.settings.limiter
    if plugins == {Role.HAMI_NODE}:
        wanted = _hook_of(theirs[0])
        if wanted is not None and limiter.hook is not wanted:
            yield HOOK.at(subject, f"limiter.hook is {limiter.hook}, and the nodes run {theirs[0].image}", value=wanted)
        if limiter.hook is Hook.HAMI and limiter.path != f"{names.CORE_DIR_HAMI}/limiter":
            yield LIMITER_PATH.at(
                subject, f"limiter.path is {shown(limiter.path)}", value=f"{names.CORE_DIR_HAMI}/limiter"
            )
    if plugins == {Role.NODE}:
        if limiter.hook is not Hook.NATIVE:
            yield HOOK.at(
                subject, f"limiter.hook is {limiter.hook}, and our device plugin serves the nodes", value=Hook.NATIVE
            )
        if limiter.path != names.LIMITER:
            yield LIMITER_PATH.at(subject, f"limiter.path is {shown(limiter.path)}", value=names.LIMITER)


def _serves(program: Program) -> bool:
    return bool(dig(program.owner, "status", "desiredNumberScheduled"))


def _hook_of(program: Program) -> Hook | None:
    if program.version is None:
        return None
    return Hook.NONE if program.version >= _MANAGER_INSIDE else Hook.HAMI


def hami(case: Case) -> Iterator[Finding]:
    """How HAMi's device plugin is started."""
    for program in case.running(Role.HAMI_NODE):
        name = program.mounted(_NODE_CONFIG_PATH)
        if name is not None and not program.option("node_config_file"):
            yield NODE_CONFIG.at(program.label, f"ConfigMap {name} is mounted, and --node_config_file is not given")
        if any(entry.get("name") == "HOOK_PATH" for entry in items(program.container.get("env"))):
            yield HOOK_PATH.at(program.label, "HOOK_PATH is set")
        if name is not None:
            yield from _entries(case, program, name)


def _entries(case: Case, program: Program, name: str) -> Iterator[Finding]:
    found = case.snapshot.find(CONFIG_MAPS, name, program.namespace)
    try:
        document: Any = content(found, _NODE_CONFIG_KEY) if found is not None else None
    except FieldError:
        return  # the plugin says so itself, and does not start
    silent = [str(one.get("name")) for one in items(dig(document, "nodes")) if "hami-vnpu-core" not in one]
    if silent and case.chips.soft_nodes_by_default:
        seen = f"hamiVnpuCore is true, and the entries of {few(silent)} do not say hami-vnpu-core"
        yield NODE_ENTRY_HARD.at(named(CONFIG_MAPS, name, program.namespace), seen)
