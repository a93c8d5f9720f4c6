"""What the stand-in for an API server (api_stand_in.py) keeps, and the rules by which it changes.

Values in, values out; a refusal is raised as :class:`Refused`. The rules were compared with a real server (1.36.2): the
tests of vnpu.kube run against both.
"""

from __future__ import annotations

import base64
import bisect
import copy
import itertools
import json
import re
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import jsonpatch

from vnpu.kube import resources
from vnpu.kube.resources import Object, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KNOWN = tuple(value for value in vars(resources).values() if isinstance(value, Resource))
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class Refused(Exception):  # noqa: N818 - reads as what happened
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message


@dataclass(frozen=True)
class Target:
    """What a path means: a collection where ``name`` is empty, all namespaces where ``namespace`` is None."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True)
class Change:
    """One write: the object before (None: it was not there) and after (None: it is gone), at its version."""

    version: int
    resource: Resource
    before: Object | None
    after: Object | None


@dataclass
class Store:
    """All objects, every change since the last compaction, and a condition that tells of new ones."""

    objects: dict[tuple[Resource, str, str], Object] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    version: int = 100
    compacted: int = 0
    changed: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))
    _snapshots: dict[str, list[Object]] = field(default_factory=dict)
    _serial: Iterator[int] = field(default_factory=itertools.count)

    def get(self, target: Target) -> Object:
        found = self.objects.get((target.resource, target.namespace or "", target.name))
        if found is None:
            raise Refused(404, "NotFound", f'{target.resource.plural} "{target.name}" not found')
        return found

    def select(self, target: Target, labels: str = "", fields: str = "") -> list[Object]:
        """The objects of a collection, in the order of their names."""
        chosen = selector(target, labels, fields)
        return [self.objects[key] for key in sorted(k for k in self.objects if k[0] == target.resource)
                if chosen(self.objects[key])]  # fmt: skip

    def page(self, target: Target, labels: str, fields: str, limit: int, token: str) -> Object:
        """A list as the server answers it: items without ``apiVersion`` and ``kind``, and how to go on."""
        with self.changed:
            if token:
                version, start, serial = json.loads(base64.b64decode(token))
                if serial not in self._snapshots or int(version) < self.compacted:
                    raise Refused(410, "Expired", "The provided continue parameter is too old")
                items = self._snapshots[serial]
            else:
                version, start, serial = str(self.version), 0, str(next(self._serial))
                items = self.select(target, labels, fields)
            metadata = {"resourceVersion": version}
            end = start + limit if limit else len(items)
            if end < len(items):
                self._snapshots[serial] = items
                metadata["continue"] = base64.b64encode(json.dumps([version, end, serial]).encode()).decode()
                metadata["remainingItemCount"] = len(items) - end
        plain = [{k: v for k, v in one.items() if k not in ("kind", "apiVersion")} for one in items[start:end]]
        head = {"kind": f"{target.resource.kind}List", "apiVersion": target.resource.api_version}
        return head | {"metadata": metadata, "items": plain}

    def create(self, target: Target, given: Object, *, dry_run: bool = False) -> Object:
        made = copy.deepcopy(given)
        metadata = made.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
        name = metadata.get("name", "")
        if not _NAME.fullmatch(name):
            raise Refused(422, "Invalid", f'{target.resource.kind} "{name}" is invalid: metadata.name')
        if target.resource.namespaced and metadata.setdefault("namespace", target.namespace) != target.namespace:
            raise Refused(400, "BadRequest", "the namespace of the object does not match the namespace on the request")
        if metadata.get("resourceVersion"):
            raise Refused(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        with self.changed:
            if (target.resource, target.namespace or "", name) in self.objects:
                raise Refused(409, "AlreadyExists", f'{target.resource.plural} "{name}" already exists')
            metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": _now()}
            return self._write(target.resource, None, _normal(target.resource, made), dry_run=dry_run)

    def replace(self, target: Target, given: Object) -> Object:
        with self.changed:
            return self._update(target, self.get(target), copy.deepcopy(given))

    def patch(self, target: Target, change: Any, content_type: str) -> Object:
        with self.changed:
            before = self.get(target)
            if "json-patch" in content_type:
                try:
                    after = jsonpatch.apply_patch(before, change)
                except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as error:
                    message = "the server rejected our request due to an error in our request"
                    raise Refused(422, "Invalid", message) from error
            elif "merge-patch" in content_type:
                if "strategic" in content_type and _has_list(change):
                    raise Refused(415, "UnsupportedMediaType", "this stand-in merges no lists strategically")
                after = _merged(before, change)
            else:
                raise Refused(
                    415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {content_type}"
                )
            return self._update(target, before, after)

    def delete(self, target: Target, options: Object) -> Object:
        with self.changed:
            found = self.get(target)
            for field, value in (options.get("preconditions") or {}).items():
                if value != found["metadata"][field]:
                    name = {"uid": "UID", "resourceVersion": "ResourceVersion"}[field]
                    raise Refused(
                        409, "Conflict", f"the {name} in the precondition ({value}) does not match the record"
                    )
            if found["metadata"].get("finalizers"):
                after = copy.deepcopy(found)
                after["metadata"].setdefault("deletionTimestamp", _now())
                return self._write(target.resource, found, after)
            return self._write(target.resource, found, None)

    def bind(self, target: Target, binding: Object) -> None:
        """``pods/binding``: node name, annotations and labels in one write."""
        with self.changed:
            pod = self.get(target)
            metadata, node = binding.get("metadata", {}), binding["target"]["name"]
            uid = metadata.get("uid") or pod["metadata"]["uid"]
            if uid != pod["metadata"]["uid"]:
                raise Refused(409, "Conflict", f"Precondition failed: UID in precondition: {uid}")
            version = metadata.get("resourceVersion") or pod["metadata"]["resourceVersion"]
            if version != pod["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", f"Precondition failed: ResourceVersion in precondition: {version}")
            if pod["spec"].get("nodeName"):
                raise Refused(
                    409, "Conflict", f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
                )
            if pod["metadata"].get("deletionTimestamp"):
                raise Refused(409, "Conflict", f"pod {target.name} is being deleted, cannot be assigned to a host")
            after = copy.deepcopy(pod)
            after["spec"]["nodeName"] = node
            for name in ("annotations", "labels"):
                if metadata.get(name):
                    after["metadata"][name] = (after["metadata"].get(name) or {}) | metadata[name]
            condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _now()}
            after.setdefault("status", {})["conditions"] = [condition]
            self._write(target.resource, pod, after)

    def since(self, version: int) -> list[Change]:
        """The changes after a version."""
        return self.changes[bisect.bisect_right(self.changes, version, key=lambda change: change.version) :]

    def compact(self) -> None:
        """Forget what happened so far: watches and lists that started earlier have to start again."""
        with self.changed:
            self.compacted = self.version
            self.changes.clear()
            self._snapshots.clear()

    def _update(self, target: Target, before: Object, after: Object) -> Object:
        old, new = before["metadata"], after.setdefault("metadata", {})
        version = new.get("resourceVersion")
        if (version and version != old["resourceVersion"]) or new.get("uid", old["uid"]) != old["uid"]:
            message = "the object has been modified; please apply your changes to the latest version and try again"
            raise Refused(409, "Conflict", f'Operation cannot be fulfilled on "{target.name}": {message}')
        if new.get("name", target.name) != target.name:
            raise Refused(400, "BadRequest", "the name of the object does not match the name on the URL")
        new |= {name: old[name] for name in ("name", "namespace", "uid", "creationTimestamp") if name in old}
        for part in ("spec",) if target.subresource == "status" else ("status",):
            after.pop(part, None)
            if part in before:
                after[part] = before[part]
        if target.resource.plural == "secrets" and after.get("type", before["type"]) != before["type"]:
            raise Refused(422, "Invalid", f'Secret "{target.name}" is invalid: type: field is immutable')
        after = _normal(target.resource, after)
        if new.get("deletionTimestamp") and not new.get("finalizers"):
            return self._write(target.resource, before, None)
        new["resourceVersion"] = old["resourceVersion"]
        return before if after == before else self._write(target.resource, before, after)

    def _write(
        self, resource: Resource, before: Object | None, after: Object | None, *, dry_run: bool = False
    ) -> Object:
        stored = copy.deepcopy(after if after is not None else before)
        assert stored is not None
        stored["metadata"]["resourceVersion"] = str(self.version + 1)
        if not dry_run:
            self.version += 1
            key = (resource, stored["metadata"].get("namespace", ""), stored["metadata"]["name"])
            if after is None:
                del self.objects[key]
            else:
                self.objects[key] = stored
            change = (
                Change(self.version, resource, before, stored)
                if after is not None
                else Change(self.version, resource, stored, None)
            )
            self.changes.append(change)
            self.changed.notify_all()
        return stored


def target_of(path: str, known: tuple[Resource, ...] = KNOWN) -> Target:
    """What a path means.

    Raises:
        Refused: 404, where no such thing is served.
    """
    parts = [part for part in path.split("/") if part]
    prefix = 2 if parts[:1] == ["api"] else 3
    group_version, rest = "/".join(parts[1:prefix]), parts[prefix:]
    namespace = None
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    for resource in known:
        if resource.api_version == group_version and rest[:1] == [resource.plural] and len(rest) <= 3:
            if namespace is not None and not resource.namespaced:
                break
            return Target(resource, namespace, *rest[1:])
    raise Refused(404, "NotFound", "the server could not find the requested resource")


def selector(target: Target, labels: str, fields: str) -> Callable[[Object], bool]:
    """Whether an object belongs to a collection and is selected by labels and fields."""
    terms = [_term(text) for text in fields.split(",") if text]
    marks = [_term(text) for text in labels.split(",") if text]

    def chosen(one: Object) -> bool:
        metadata = one["metadata"]
        if target.namespace is not None and metadata.get("namespace") != target.namespace:
            return False
        tagged = metadata.get("labels") or {}
        return all(_fits(_at(one, name) or "", sign, value) for name, sign, value in terms) and all(
            _fits(tagged.get(name), sign, value) for name, sign, value in marks
        )

    return chosen


def event_of(change: Change, target: Target, chosen: Callable[[Object], bool]) -> tuple[str, Object] | None:
    """What a watch of a collection tells of a change: type and object, None where it is none of its business."""
    if change.resource != target.resource:
        return None
    was = change.before is not None and chosen(change.before)
    now = change.after is not None and chosen(change.after)
    if now:
        assert change.after is not None
        return "MODIFIED" if was else "ADDED", change.after
    if was:
        last = change.after or change.before
        assert last is not None
        return "DELETED", last
    return None


def _term(text: str) -> tuple[str, str, str]:
    matched = re.fullmatch(r"(!?)([^=!]+)(?:(==|=|!=)(.*))?", text)
    if matched is None:
        raise Refused(400, "BadRequest", f"unable to parse requirement: {text}")
    absent, name, sign, value = matched.groups()
    return name, "!" if absent else {"!=": "!=", None: "?"}.get(sign, "="), value or ""


def _fits(found: str | None, sign: str, value: str) -> bool:
    return {"=": found == value, "!=": found != value, "?": found is not None, "!": found is None}[sign]


def _at(one: Object, path: str) -> Any:
    value: Any = one
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _merged(before: Any, change: Any) -> Any:
    """RFC 7386."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    after = dict(before) if isinstance(before, dict) else {}
    for name, value in change.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = _merged(after.get(name), value)
    return copy.deepcopy(after)


def _has_list(change: Any) -> bool:
    return isinstance(change, list) or (isinstance(change, dict) and any(map(_has_list, change.values())))


def _normal(resource: Resource, one: Object) -> Object:
    one = {"kind": resource.kind, "apiVersion": resource.api_version} | one
    if resource.plural == "secrets":
        text = {name: base64.b64encode(value.encode()).decode() for name, value in one.pop("stringData", {}).items()}
        one["data"] = (one.get("data") or {}) | text
        one.setdefault("type", "Opaque")
        for name, value in one["data"].items():
            try:
                base64.b64decode(value, validate=True)
            except ValueError as error:
                raise Refused(400, "BadRequest", f"data.{name}: illegal base64 data") from error
        if one["type"] == "kubernetes.io/tls" and not {"tls.crt", "tls.key"} <= one["data"].keys():
            raise Refused(422, "Invalid", "data[tls.crt]: Required value")
    return one


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
