"""The pod templates of controllers: where they stand, and how many pods come of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu import names
from vnpu.errors import InputError, join, path_of
from vnpu.quantity import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SPEC: Final = ("spec",)
_JOB_SPEC: Final = ("spec", "jobTemplate", "spec")
_TEMPLATE: Final = (*_SPEC, "template")
_PATHS: Final[dict[str, tuple[str, ...]]] = {
    "Deployment": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "PodTemplate": ("template",),
    "Job": _TEMPLATE,
    "CronJob": (*_JOB_SPEC, "template"),
}
POD_KINDS: Final = ("Pod", *_PATHS)
"""Kinds that are pods, or hold a pod template."""
_VOLCANO_JOBS: Final = {"Job": _SPEC, "CronJob": _JOB_SPEC}
"""Where the spec of a Volcano Job stands in the kinds that Volcano shares with Kubernetes."""
_VOLCANO_GROUP: Final = "batch.volcano.sh/"
_NAMELESS_TASK: Final = "default"
"""What Volcano's own webhook calls a task without a name, before its number."""


class Place(NamedTuple):
    """A pod template where it stands.

    Attributes:
        keys: from the object down.
        path: the same for people, for example ``spec.tasks[0].template``.
        template: metadata and spec of the pods; those of a Volcano Job have the job's scheduler where they name none.
    """

    keys: tuple[str | int, ...]
    path: str
    template: Mapping[str, Any]


class PodTemplate(NamedTuple):
    """A pod template and what becomes of it.

    Attributes:
        path: where it stands, ``""`` for a bare pod.
        template: metadata and spec of the pods, as in :class:`Place`.
        replicas: how many pods run at once; 1 for a DaemonSet, which has one per node, 0 for a PodTemplate.
        name: what the pods are called, without their number: the object's name, for a task ``<job>-<task>``.
    """

    path: str
    template: Mapping[str, Any]
    replicas: int
    name: str


def volcano_job(obj: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Where the spec of a Volcano Job stands: in one itself, or in Volcano's CronJob; None in every other object."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(version, str) or not version.startswith(_VOLCANO_GROUP) or not isinstance(kind, str):
        return None
    return _VOLCANO_JOBS.get(kind)


def is_volcano_job(obj: Mapping[str, Any]) -> bool:
    """Whether the object is a Job of Volcano, which shares its kind with Kubernetes' own."""
    return volcano_job(obj) == _SPEC


def _scheduler_of(obj: Mapping[str, Any], job: tuple[str, ...]) -> str:
    """Who schedules the pods of a Volcano Job whose template names no scheduler."""
    name = _descend(obj, (*job, "schedulerName"))
    return name if isinstance(name, str) and name else names.SCHEDULER_VOLCANO


def places(obj: Mapping[str, Any]) -> Iterator[Place]:
    """Where the pod templates of a controller stand; none in other kinds, and none that is no mapping."""
    job = volcano_job(obj)
    if job is not None:
        scheduler = _scheduler_of(obj, job)
        for index, task in enumerate(_tasks(obj, job)):
            template = task.get("template") if isinstance(task, dict) else None
            if isinstance(template, dict):
                keys: tuple[str | int, ...] = (*job, "tasks", index, "template")
                yield Place(keys, path_of(keys), _scheduled(template, scheduler))
        return
    kind = obj.get("kind")
    path = _PATHS.get(kind, ()) if isinstance(kind, str) else ()
    template = _descend(obj, path) if path else None
    if isinstance(template, dict):
        yield Place(path, ".".join(path), template)


def _scheduled(template: Mapping[str, Any], scheduler: str) -> Mapping[str, Any]:
    spec = template.get("spec")
    if not isinstance(spec, dict) or spec.get("schedulerName"):
        return template
    return {**template, "spec": {**spec, "schedulerName": scheduler}}


def pod_templates(obj: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """The pods that an object makes: those of a controller, or a bare pod itself; none for other kinds.

    Raises:
        InputError: a number of replicas that is no whole number from 0.
    """
    metadata = obj.get("metadata")
    name = ""
    if isinstance(metadata, dict):
        name = next((text for field in ("name", "generateName") if isinstance(text := metadata.get(field), str)), "")
    if obj.get("kind") == "Pod":
        yield PodTemplate("", obj, 1, name)
        return
    of_volcano = volcano_job(obj) is not None
    for place in places(obj):
        owner = place.keys[:-1]
        holder, path = _descend(obj, owner), path_of(owner)
        if of_volcano:
            task = holder.get("name") or f"{_NAMELESS_TASK}{owner[-1]}"
            yield PodTemplate(place.path, place.template, _number(holder, "replicas", path), f"{name}-{task}")
        else:
            yield PodTemplate(place.path, place.template, _replicas(obj["kind"], holder, path), name)


def _replicas(kind: str, spec: Mapping[str, Any], path: str) -> int:
    if kind == "PodTemplate":
        return 0
    if kind == "DaemonSet":
        return 1
    if kind not in ("Job", "CronJob"):
        return _number(spec, "replicas", path)
    # A Job never runs more pods at once than it still has to complete.
    parallel = _number(spec, "parallelism", path)
    return parallel if spec.get("completions") is None else min(parallel, _number(spec, "completions", path))


def _number(parent: Mapping[str, Any], field: str, path: str) -> int:
    value = parent.get(field)
    if value is None:
        return 1
    if not is_whole(value):
        raise InputError(join(path, field), value, "a whole number from 0 is expected")
    return value


def _tasks(obj: Mapping[str, Any], job: tuple[str, ...]) -> list[Any]:
    tasks = _descend(obj, (*job, "tasks"))
    return tasks if isinstance(tasks, list) else []


def _descend(obj: Any, keys: tuple[str | int, ...]) -> Any:
    for name in keys:
        if isinstance(obj, list) and isinstance(name, int):
            obj = obj[name]
        else:
            obj = obj.get(name) if isinstance(obj, dict) else None
    return obj
