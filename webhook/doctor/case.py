"""One installation on one cluster: what the checks ask for, worked out once and only when it is asked for."""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vnpu import device_config, files, ledger, names
from vnpu.admission.settings import parse_settings
from vnpu.containers import containers_or_faults, resources
from vnpu.errors import FieldError, InputError, few
from vnpu.kube import CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, MUTATING, NAMESPACES, VALIDATING
from vnpu.objects import ENDED_PHASES
from webhook.doctor.programs import DEVICE_PLUGINS, Role, ours, programs
from webhook.doctor.snapshot import UnseenError, UnusableError, dig, items, label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vnpu.admission.settings import Settings
    from vnpu.cards import Node
    from vnpu.chips import ChipTable
    from vnpu.device_config import DeviceConfig
    from vnpu.kube import Object
    from vnpu.ledger import Ledger
    from webhook.doctor.programs import Program
    from webhook.doctor.snapshot import Snapshot


class SchedulerKind(StrEnum):
    """Who places the pods that ask for NPUs."""

    KUBE = "kube"
    VOLCANO = "volcano"
    HAMI = "hami"
    OTHER = "other"


class Case:
    """A snapshot, and the installation in it that is looked at.

    Every property raises :class:`UnseenError` where what it needs could not be looked at, or cannot be read.
    """

    def __init__(self, snapshot: Snapshot, namespace: str | None = None) -> None:
        """Look at the installation in this namespace, or at the one that is found."""
        self.snapshot = snapshot
        self._namespace = namespace

    # ---- What is installed

    @cached_property
    def programs(self) -> Sequence[Program]:
        """Everybody's programs that Deployments and DaemonSets run."""
        owners = (*self.snapshot.of(DEPLOYMENTS), *self.snapshot.of(DAEMON_SETS))
        return tuple(program for owner in owners for program in programs(owner))

    def running(self, *roles: Role) -> list[Program]:
        """Those that do one of these things; of ours only this installation's."""
        own = (Role.WEBHOOK, Role.SCHEDULER, Role.NODE)
        return [
            program
            for program in self.programs
            if program.role in roles and (program.role not in own or program.namespace == self.namespace)
        ]

    @cached_property
    def namespace(self) -> str:
        """Of the installation."""
        found = self.namespaces
        if self._namespace is not None and self._namespace not in found:
            raise UnseenError(f"{NAMESPACES.kind} {self._namespace}", self._why_not_there(self._namespace))
        if not found:
            raise UnseenError("cluster", "no Deployment and no webhook configuration of the chart was found")
        return self._namespace or found[0]

    def _why_not_there(self, name: str) -> str:
        known = NAMESPACES.kind not in self.snapshot.unseen
        there = [one["metadata"]["name"] for one in self.snapshot.of(NAMESPACES)] if known else [name]
        why = "the chart is not installed there" if name in there else "there is no such namespace"
        return f"{why}; installations are in {few(self.namespaces)}" if self.namespaces else why

    @cached_property
    def namespaces(self) -> list[str]:
        """Of all installations that are there."""
        services = {
            str(dig(webhook, "clientConfig", "service", "namespace"))
            for configuration in (*self._configurations(MUTATING), *self._configurations(VALIDATING))
            for webhook in items(configuration.get("webhooks"))
        }
        deployments = {program.namespace for program in self.programs if program.role is Role.WEBHOOK}
        return sorted(deployments | (services - {"None"}))

    @cached_property
    def mutating(self) -> Sequence[Object]:
        """The mutating configurations of this installation."""
        return self._own(MUTATING)

    @cached_property
    def validating(self) -> Sequence[Object]:
        """The validating ones."""
        return self._own(VALIDATING)

    @cached_property
    def services(self) -> list[str]:
        """The names of the Services under which the API server calls this installation."""
        found = {
            dig(webhook, "clientConfig", "service", "name")
            for configuration in (*self.mutating, *self.validating)
            for webhook in items(configuration.get("webhooks"))
        }
        return sorted(name for name in found if isinstance(name, str))

    def _own(self, resource: Any) -> list[Object]:
        return [
            configuration
            for configuration in self._configurations(resource)
            if any(
                dig(webhook, "clientConfig", "service", "namespace") in (None, self.namespace)
                for webhook in items(configuration.get("webhooks"))
            )
        ]

    def _configurations(self, resource: Any) -> list[Object]:
        return [one for one in self.snapshot.of(resource) if ours(one) or any(map(own_webhook, items(one["webhooks"])))]

    @cached_property
    def device_plugins(self) -> Mapping[str, Sequence[Program]]:
        """The device plugins that run on each node; their owners are the pods."""
        found: dict[str, list[Program]] = defaultdict(list)
        for pod in self.snapshot.pods:
            for program in programs(pod):
                if program.role in DEVICE_PLUGINS:
                    found[str(dig(pod, "spec", "nodeName"))].append(program)
        return found

    # ---- What it is told

    @cached_property
    def settings(self) -> Settings:
        """The webhook's settings."""
        found = self.own_config_map(names.SETTINGS_KEY)
        try:
            return parse_settings(content(found, names.SETTINGS_KEY))
        except FieldError as error:
            raise UnusableError(label(found), str(error)) from error

    @cached_property
    def device_config(self) -> DeviceConfig:
        """The webhook's device config."""
        found = self.own_config_map(names.DEVICE_CONFIG_KEY)
        try:
            return device_config.parse(content(found, names.DEVICE_CONFIG_KEY))
        except FieldError as error:
            raise UnusableError(label(found), str(error)) from error

    @property
    def chips(self) -> ChipTable:
        """Its chip table."""
        return self.device_config.table

    def own_config_map(self, key: str) -> Object:
        """The ConfigMap of this installation that has this key."""
        for one in self.snapshot.of(CONFIG_MAPS):
            if ours(one) and one["metadata"]["namespace"] == self.namespace and key in (one.get("data") or {}):
                return one
        raise UnseenError("ConfigMap", f"no ConfigMap of the chart in {self.namespace} has the key {key}")

    @cached_property
    def kind(self) -> SchedulerKind:
        """Who places pods here."""
        if self.running(Role.SCHEDULER):
            return SchedulerKind.KUBE
        name = self.settings.scheduler_name
        if name in self.settings.volcano_schedulers:
            return SchedulerKind.VOLCANO
        known = {program.option("scheduler-name") for program in self.running(Role.HAMI)}
        return SchedulerKind.HAMI if name in known | {names.SCHEDULER_HAMI} else SchedulerKind.OTHER

    # ---- Who holds what

    @cached_property
    def node_readings(self) -> Sequence[tuple[Object, Node]]:
        """Every node that has to do with NPUs: the object, and what is read from it."""
        read = [(document, ledger.read_node(document, self.chips)[0]) for document in self.snapshot.nodes]
        return tuple((document, node) for document, node in read if node.cards or node.unsafe or self.offered(document))

    @cached_property
    def ledger(self) -> Ledger:
        """The books."""
        return ledger.book([node for _, node in self.node_readings], self.snapshot.pods, self.chips)

    def offered(self, node: Object) -> list[str]:
        """The counts of chips that kubelet offers on a node."""
        allocatable = dig(node, "status", "allocatable") or {}
        return [
            chip.resource_name for chip in self.chips if allocatable.get(chip.resource_name, "0") not in ("0", 0, None)
        ]

    @cached_property
    def npu_pods(self) -> Sequence[Object]:
        """The pods that ask for a chip and have not ended."""
        return tuple(
            pod
            for pod in self.snapshot.pods
            if dig(pod, "status", "phase") not in ENDED_PHASES and asks(pod, self.chips.resource_names)
        )


def own_webhook(webhook: Mapping[str, Any]) -> bool:
    """Whether one entry of a webhook configuration is ours."""
    return names.WEBHOOK_MARK in str(webhook.get("name", ""))


def asks(pod: Object, wanted: Iterable[str]) -> bool:
    """Whether a container of the pod asks for one of these resources."""
    known = frozenset(wanted)
    return any(
        not isinstance(named, InputError) and named.name in known
        for container in containers_or_faults(pod)
        if not isinstance(container, InputError)
        for named in resources(container)
    )


def content(config_map: Object, key: str) -> Any:
    """The one document under a key of a ConfigMap.

    Raises:
        FieldError: there is none, or more, or it is no YAML.
    """
    text = dig(config_map, "data", key)
    if not isinstance(text, str):
        raise InputError(f"data[{key}]", text, "a text is expected")
    found = list(files.parse_documents(text.encode(), f"data[{key}]"))
    if len(found) > 1:
        raise InputError(f"data[{key}]", f"{len(found)} documents", "one document is expected")
    return found[0] if found else None
