"""The edge: takes a snapshot of a cluster, and changes nothing there.

What may not be read, or is of a kind that the server does not have, is noted in the snapshot. Of pods only those are
kept that have to do with NPUs, of Secrets only certificates.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from vnpu import names
from vnpu.kube import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    MUTATING,
    NAMESPACES,
    NODES,
    PODS,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICES,
    VALIDATING,
    Gone,
    KubeError,
    NotFound,
    Unreachable,
)
from webhook.doctor import calls, volcano
from webhook.doctor.case import Case
from webhook.doctor.programs import Role, programs
from webhook.doctor.snapshot import Call, Snapshot, UnseenError, dig, items, named, without_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vnpu.kube import Cluster, Object, Resource

_EVERYWHERE: Final = (*(MUTATING, VALIDATING, NAMESPACES, DEPLOYMENTS, DAEMON_SETS, RUNTIME_CLASSES, NODES, PODS),)
_OF_THE_RELEASE: Final = (SERVICES, ENDPOINT_SLICES, CONFIG_MAPS)
_PAGES: Final = (500, 0)
"""Objects of a page; 0 is all of them."""
_CHART: Final = f"{names.PART_OF_LABEL}={names.PART_OF}"
_MARKS: Final = ("huawei.com/", "hami.io/")
"""Resources and annotations that begin so have to do with NPUs, or with whoever hands them out."""


class _Look:
    """A snapshot while it is taken."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.objects: dict[str, list[Object]] = defaultdict(list)
        self.unseen: dict[str, str] = {}
        self.calls: dict[str, Call] = {}
        self.now = datetime.now(UTC)

    def list(
        self, resource: Resource, namespace: str | None = None, label: str = "", keep: Callable[[Object], bool] = bool
    ) -> None:
        """All of a kind that are to be kept; every object is, if nothing is said."""
        try:
            self.objects[resource.kind] += self._kept(resource, namespace, label, keep)
        except Unreachable:
            raise
        except KubeError as error:
            self.unseen[resource.kind] = str(error)

    def _kept(
        self, resource: Resource, namespace: str | None, label: str, keep: Callable[[Object], bool]
    ) -> Sequence[Object]:
        """Page by page, so that no more than what is kept is ever held; in one piece where pages grow old meanwhile."""
        for limit in _PAGES:
            try:
                pages = self._cluster.pages(resource, namespace, label_selector=label, limit=limit)
                return [one for page in pages for one in page.items if keep(one)]
            except Gone:
                if not limit:
                    raise
        raise AssertionError("the last of them is no page")

    def get(self, resource: Resource, name: str, namespace: str) -> None:
        """One object, unless it is there already."""
        if any(
            (one["metadata"]["name"], one["metadata"].get("namespace")) == (name, namespace)
            for one in self.objects[resource.kind]
        ):
            return
        try:
            found = self._cluster.get(resource, name, namespace)
        except NotFound:
            return
        except Unreachable:
            raise
        except KubeError as error:
            self.unseen[named(resource, name, namespace)] = str(error)
            return
        self.objects[resource.kind].append(without_keys(found) if resource is SECRETS else found)

    def call(self, what: str, pod: Object, namespace: str) -> None:
        """Ask for a pod, dry."""
        try:
            self.calls[what] = Call(self._cluster.create(PODS, pod, namespace, dry_run=True))
        except Unreachable:
            raise
        except KubeError as error:
            self.calls[what] = Call(status=error.status, message=error.message)

    def snapshot(self) -> Snapshot:
        """What was seen so far."""
        return Snapshot(self.now, self.objects, self.unseen, self.calls)


def take(cluster: Cluster, namespace: str | None = None, dry_run_in: str | None = None) -> Snapshot:
    """Look at a cluster.

    Args:
        cluster: the cluster.
        namespace: of the installation; None finds it.
        dry_run_in: the namespace in which pods are asked for, dry; None asks for none.

    Raises:
        Unreachable: the API server cannot be reached.
    """
    look = _Look(cluster)
    for resource in _EVERYWHERE:
        look.list(resource, keep=has_to_do_with_npus if resource is PODS else bool)
    case = Case(look.snapshot(), namespace)
    try:
        place = case.namespace
    except UnseenError:
        return look.snapshot()
    for resource in _OF_THE_RELEASE:
        look.list(resource, place, _CHART if resource is CONFIG_MAPS else "")
    for resource, name, where in _named_by_programs(case):
        look.get(resource, name, where)
    case = Case(look.snapshot(), namespace)
    with suppress(UnseenError):  # the checks tell what could not be seen
        for name, where in volcano.device_configs(case):
            look.get(CONFIG_MAPS, name, where)
    if dry_run_in is not None:
        with suppress(UnseenError):
            for what, pod in calls.pods(next(iter(case.chips))).items():
                look.call(what, pod, dry_run_in)
    return look.snapshot()


def _named_by_programs(case: Case) -> Iterator[tuple[Resource, str, str]]:
    """Objects that programs mount or name, and that are looked at one by one."""
    try:
        running = case.programs
    except UnseenError:
        return
    for program in running:
        for volume in items(program.spec.get("volumes")):
            name = dig(volume, "configMap", "name")
            if program.role in (Role.VOLCANO, Role.HAMI, Role.HAMI_NODE) and isinstance(name, str):
                yield CONFIG_MAPS, name, program.namespace
            name = dig(volume, "secret", "secretName")
            if program.role is Role.WEBHOOK and program.namespace == case.namespace and isinstance(name, str):
                yield SECRETS, name, program.namespace
        name = program.option("secret")
        if program.role is Role.WEBHOOK and program.namespace == case.namespace and name:
            yield SECRETS, name, program.namespace


def has_to_do_with_npus(pod: Object) -> bool:
    """Whether a pod asks for an NPU, carries what schedulers of NPUs write, or is a program that is known."""
    annotations = dig(pod, "metadata", "annotations") or {}
    if any(name.startswith(_MARKS) for name in annotations) or any(True for _ in programs(pod)):
        return True
    containers = (*items(dig(pod, "spec", "containers")), *items(dig(pod, "spec", "initContainers")))
    return any(
        name.startswith(_MARKS)
        for container in containers
        for section in ("limits", "requests")
        for name in dig(container, "resources", section) or {}
    )
