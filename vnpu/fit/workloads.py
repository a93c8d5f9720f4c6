"""The pods that manifests ask for: bare pods, those of controllers, and the gangs of Volcano Jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from vnpu.admission.templates import POD_KINDS, pod_templates, volcano_job
from vnpu.errors import ABSENT, FieldError, InputError, VnpuError, bare, did_you_mean, item, join, path_of
from vnpu.fit.admit import DEFAULT_NAMESPACE, Batch, admit, refused
from vnpu.mode import Mode
from vnpu.names import MODE
from vnpu.objects import mapping_at
from vnpu.quantity import is_whole
from vnpu.request import PodRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vnpu.admission.settings import Settings
    from vnpu.admission.templates import PodTemplate
    from vnpu.chips import Chip, ChipTable
    from vnpu.documents import Document
    from vnpu.fit.answers import Unplaced
    from vnpu.fit.arguments import SliceGroup

MOST_PODS: Final = 100_000
"""Pods of one plan."""

_POD: Final = "Pod"
_DAEMON_SET: Final = "DaemonSet"
_POD_TEMPLATE: Final = "PodTemplate"
_PLANNED: Final = frozenset(POD_KINDS).difference({_POD_TEMPLATE})
_ON_EVERY_NODE: Final = (
    "not planned: one pod per node, placed by the DaemonSet controller; to plan them, give them one by one as bare pods"
)


class NothingToPlaceError(VnpuError):
    """There are manifests, and none that makes pods."""

    def __init__(self, passed_over: Sequence[str]) -> None:
        """Tell the first manifest, and how many more there are.

        Args:
            passed_over: of each manifest where it stands and why it makes no pods.
        """
        more = f" (and {len(passed_over) - 1} more)" if len(passed_over) > 1 else ""
        super().__init__("nothing to place: " + (passed_over[0] + more if passed_over else "the manifests are empty"))


class Reception:
    """Takes manifests one after the other, and keeps count of their pods and names."""

    def __init__(self, settings: Settings, chips: ChipTable) -> None:
        """Start with no pods.

        Args:
            settings: what admission judges by.
            chips: the chip table.
        """
        self._settings = settings.offline()
        self._chips = chips
        self._pods = 0
        self._generated: Counter[tuple[str, ...]] = Counter()
        self._places: dict[tuple[str, ...], str] = {}
        self._passed_over: list[str] = []
        self._taken = False

    def take(self, document: Document) -> Batch:
        """The pods of one object; an unknown kind is skipped with a warning.

        Raises:
            DocumentError: no Kubernetes object, or a field that cannot be used.
        """
        with document:
            obj = _mapping(document.value, "")
            kind = obj.get("kind", ABSENT)
            if not isinstance(kind, str) or not kind:
                raise InputError("kind", kind, "the kind of a Kubernetes object is expected")
            if kind in _PLANNED:
                self._taken = True
                return self._take(obj, kind, document.place)
            what = "a PodTemplate makes no pods of its own, not looked into"
            if kind != _POD_TEMPLATE:
                what = f"unknown kind {bare(kind)}, not looked into{did_you_mean(kind, POD_KINDS)}"
            self._passed_over.append(f"{document.place}: {what}")
            return Batch((), warnings=(self._passed_over[-1],))

    def take_slices(self, groups: Iterable[SliceGroup], chip: Chip) -> Batch:
        """The pods ``slice-0``, ``slice-1``, ... of the command line, each with a soft slice of the chip.

        Raises:
            InputError: too many pods.
        """
        self._taken = True
        pods: tuple[PodRequest | Unplaced, ...] = ()
        warnings: tuple[str, ...] = ()
        for group in groups:
            self._count(group.count, "--slice")
            names = [f"slice-{number}" for number in range(len(pods), len(pods) + group.count)]
            found = admit(_slice_pod(group, chip), names, self._settings, self._chips)
            pods += found.pods
            warnings += tuple(f"--slice: {warning}" for warning in found.warnings)
        return Batch(pods, warnings=warnings)

    def close(self) -> None:
        """Says that there is no more to take.

        Raises:
            NothingToPlaceError: nothing that was given makes pods.
        """
        if not self._taken:
            raise NothingToPlaceError(self._passed_over)

    def _take(self, obj: Mapping[str, Any], kind: str, place: str) -> Batch:
        metadata = _mapping(obj.get("metadata", ABSENT), "metadata")
        namespace = metadata.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise InputError("metadata.namespace", namespace, "the name of a namespace is expected")
        name = self._name(metadata, (str(obj.get("apiVersion")), kind, namespace or DEFAULT_NAMESPACE), place)
        job = volcano_job(obj)
        tasks = _tasks(obj, job) if job is not None else []
        templates = list(pod_templates({**obj, "metadata": {**metadata, "name": name}}))
        if not templates:
            raise InputError("spec", obj.get("spec", ABSENT), f"the pod template of a {kind} is expected")
        min_available, notes = _gang(obj, job, tasks, templates) if job is not None else (0, [])
        pods: list[PodRequest | Unplaced] = []
        warnings = [f"{place}: {note}" for note in notes]
        for template in templates:
            names = [name]
            if kind != _POD:
                self._count(template.replicas, template.path)
                names = [f"{template.name}-{number}" for number in range(template.replicas)]
            try:
                found = admit(_pod(template, namespace), names, self._settings, self._chips)
            except FieldError as error:
                raise error.under(template.path) from error
            warnings += (f"{place}: {join(template.path, warning)}" for warning in found.warnings)
            if kind == _DAEMON_SET and any(isinstance(pod, PodRequest) and pod.asks for pod in found.pods):
                pods += (replace(one, reasons={}) for one in refused(namespace, [name], _ON_EVERY_NODE))
            else:
                pods += found.pods
        return Batch(tuple(pods), min_available, tuple(warnings), "" if kind == _POD else name)

    def _name(self, metadata: Mapping[str, Any], kind: tuple[str, ...], place: str) -> str:
        """The object's name; names that the API server would make up are numbered."""
        name = metadata.get("name")
        prefix = metadata.get("generateName")
        if name is None and isinstance(prefix, str) and prefix:
            number = self._generated[*kind, prefix]
            self._generated[*kind, prefix] += 1
            return f"{prefix}{number}"
        if not isinstance(name, str) or not name:
            raise InputError("metadata.name", ABSENT if name is None else name, "the name of the object is expected")
        first = self._places.get((*kind, name))
        if first is not None:
            raise InputError("metadata.name", name, f"an object of this name stands at {first} already")
        self._places[*kind, name] = place
        return name

    def _count(self, pods: int, path: str) -> None:
        self._pods += pods
        if self._pods > MOST_PODS:
            raise InputError(path, f"{pods} pods", f"a plan has at most {MOST_PODS} pods")


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(path, value, "a mapping is expected")
    return value


def _pod(template: PodTemplate, namespace: str | None) -> dict[str, Any]:
    """A pod of the template, without its name."""
    metadata = template.template.get("metadata")
    return {
        **template.template,
        "metadata": {**_mapping({} if metadata is None else metadata, "metadata"), "namespace": namespace},
    }


def _tasks(obj: Mapping[str, Any], job: Sequence[str]) -> list[Mapping[str, Any]]:
    """The tasks of a Volcano Job, whose spec stands there in the object, each with a template."""
    place = f"{path_of(job)}.tasks"
    tasks = mapping_at(obj, *job).get("tasks", ABSENT)
    if not isinstance(tasks, list):
        raise InputError(place, tasks, "a list of tasks is expected")
    for index, task in enumerate(tasks):
        path = item(place, index)
        _mapping(_mapping(task, path).get("template", ABSENT), f"{path}.template")
    return tasks


def _gang(
    obj: Mapping[str, Any],
    job: Sequence[str],
    tasks: Sequence[Mapping[str, Any]],
    templates: Sequence[PodTemplate],
) -> tuple[int, list[str]]:
    """How many pods of a Volcano Job must be placed together, and warnings.

    Without ``minAvailable``, which 0 counts as too, all that its tasks need, or all that they have, as Volcano's own
    webhook completes it.
    """
    notes = []
    needed = 0
    for index, (task, template) in enumerate(zip(tasks, templates, strict=True)):
        path = f"{item(f'{path_of(job)}.tasks', index)}.minAvailable"
        needed += _pods(task.get("minAvailable"), path, template.replicas)
        if task.get("minAvailable") is not None:
            notes.append(f"{path}: the plan counts the pods of all tasks together")
    spec = mapping_at(obj, *job)
    return _pods(spec.get("minAvailable"), f"{path_of(job)}.minAvailable", 0) or needed, notes


def _pods(value: Any, path: str, default: int) -> int:
    if value is None:
        return default
    if not is_whole(value, high=MOST_PODS):
        raise InputError(path, value, f"a whole number from 0 to {MOST_PODS} is expected")
    return value


def _slice_pod(group: SliceGroup, chip: Chip) -> dict[str, Any]:
    limits = {chip.resource_name: "1", chip.memory_name: group.memory}
    if group.core is not None:
        limits[chip.core_name] = group.core
    return {
        "apiVersion": "v1",
        "kind": _POD,
        "metadata": {"namespace": DEFAULT_NAMESPACE, "annotations": {MODE: Mode.SOFT.value}},
        "spec": {"containers": [{"name": "slice", "resources": {"limits": limits}}]},
    }
