"""The verbs of the Kubernetes API, repeated where that is safe."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from vnpu.kube.errors import Gone, KubeError, Unreachable
from vnpu.kube.resources import EVENTS, NODES, PODS
from vnpu.kube.retry import pause_s
from vnpu.kube.watch import Follower, Listing, Page, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vnpu.kube.resources import Object, Resource
    from vnpu.kube.transport import Transport

_ATTEMPTS: Final = 4
_LONGEST_MESSAGE: Final = 1024
"""Bytes of an Event's message that the server takes."""
_PATCHES: Final = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Cluster:
    """Calls to one API server; safe to use from several threads.

    Every method raises :class:`~vnpu.kube.errors.KubeError`, or the subclass that fits.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def read(self, path: str) -> Any:
        """The JSON at a path of the server, such as ``/version``."""
        return self._call("GET", path)

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """One object."""
        return _object(self._call("GET", resource.path(name, namespace)))

    def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
    ) -> Iterator[Page]:
        """A list in parts of at most ``limit`` objects, all as they were at one moment.

        Objects carry ``apiVersion`` and ``kind``, which the server leaves out of lists.

        Raises:
            Gone: reading took so long that the server no longer knows that moment.
        """
        query = {"limit": limit, "labelSelector": label_selector, "fieldSelector": field_selector, "continue": ""}
        while True:
            answer = _object(self._call("GET", resource.path(namespace=namespace), query))
            items = answer.get("items") or []
            for one in items:
                one.setdefault("apiVersion", resource.api_version)
                one.setdefault("kind", resource.kind)
            yield Page(items, answer["metadata"]["resourceVersion"])
            query["continue"] = answer["metadata"].get("continue", "")
            if not query["continue"]:
                return

    def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Listing:
        """A whole list; one that grows old while it is read is read again, then in one piece."""
        for limit in (500, 5000, 0):
            items: list[Object] = []
            version = ""
            try:
                for page in self.pages(
                    resource, namespace, label_selector=label_selector, field_selector=field_selector, limit=limit
                ):
                    items += page.items
                    version = page.resource_version
            except Gone:
                if limit:
                    continue
                raise
            break
        return Listing(items, version)

    def watch(
        self,
        resource: Resource,
        resource_version: str,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int = 60,
        silence_s: float = 75.0,
    ) -> Watch:
        """What happens to the objects after a resource version, bookmarks included, until the server ends it.

        Args:
            resource: what to watch.
            resource_version: of a list or an event.
            namespace: only there.
            label_selector: only these.
            field_selector: only these.
            timeout_s: when the server is to end it, whatever happens. It may send nothing before: bookmarks are not
                promised, and a kind of which nothing ever changes gets none.
            silence_s: a watch that says nothing for so long, not even its end, is taken for dead.

        Raises:
            Gone: by the call or while iterating: the server has forgotten that version.
            Unreachable: the same: cut off, or silent.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_s,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        return Watch(self._transport.stream(resource.path(namespace=namespace), query, silence_s))

    def follow(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Follower:
        """List, then watch, and again where needed, until it is closed: see :class:`~vnpu.kube.watch.Follower`."""
        return Follower(
            lambda: self.list(resource, namespace, label_selector=label_selector, field_selector=field_selector),
            lambda version: self.watch(
                resource, version, namespace=namespace, label_selector=label_selector, field_selector=field_selector
            ),
        )

    def create(
        self, resource: Resource, obj: Mapping[str, Any], namespace: str | None = None, *, dry_run: bool = False
    ) -> Object:
        """Make an object; returns what the server stored, or would store.

        Raises:
            AlreadyExists: one of that name is there.
        """
        query = {"dryRun": "All"} if dry_run else {}
        return _object(self._call("POST", resource.path(namespace=namespace), query, obj))

    def replace(self, resource: Resource, obj: Mapping[str, Any], *, subresource: str = "") -> Object:
        """Put an object in the place of the stored one.

        Raises:
            Conflict: ``metadata.resourceVersion`` is given and no longer the stored one.
        """
        metadata = obj["metadata"]
        path = resource.path(metadata["name"], metadata.get("namespace"), subresource)
        return _object(self._call("PUT", path, body=obj))

    def patch(
        self,
        resource: Resource,
        name: str,
        change: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        namespace: str | None = None,
        *,
        kind: str = "json",
        subresource: str = "",
    ) -> Object:
        """Change an object in place.

        Args:
            resource: what it is.
            name: its name.
            change: operations of a JSON patch, or the object of a merge.
            namespace: its namespace.
            kind: ``json``, ``merge`` or ``strategic``.
            subresource: for example ``status``.

        Raises:
            Invalid: a JSON patch does not apply; a ``test`` that fails is one.
            Conflict: a merge names a ``resourceVersion`` that is no longer the stored one.
        """
        path = resource.path(name, namespace, subresource)
        return _object(self._call("PATCH", path, body=change, content_type=_PATCHES[kind]))

    def delete(
        self, resource: Resource, name: str, namespace: str | None = None, *, uid: str = "", version: str = ""
    ) -> None:
        """Delete an object; with a uid only that one and not another of its name, with a version only as it was then.

        Raises:
            NotFound: it is not there.
            Conflict: it has another uid or resource version.
        """
        conditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
        body = {"preconditions": conditions} if conditions else {}
        self._call("DELETE", resource.path(name, namespace), body={"apiVersion": "v1", "kind": "DeleteOptions"} | body)

    def bind(
        self, namespace: str, pod: str, node: str, annotations: Mapping[str, str], uid: str, version: str = ""
    ) -> None:
        """Bind a pod to a node and annotate it, in one write of the server.

        Args:
            namespace: of the pod.
            pod: its name.
            node: where to.
            annotations: added to those that it has.
            uid: of the pod.
            version: the resource version that the pod must still have, ``""`` for any.

        Raises:
            Conflict: the pod is bound already, was changed, or is another one of that name.
        """
        metadata = {"name": pod, "namespace": namespace, "uid": uid, "annotations": dict(annotations)}
        if version:
            metadata["resourceVersion"] = version
        target = {"apiVersion": "v1", "kind": NODES.kind, "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        self._call("POST", PODS.path(pod, namespace, "binding"), body=body)

    def event(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        reason: str,
        message: str,
        component: str,
        warning: bool = False,
    ) -> Object:
        """Write an Event about an object, such as ``kubectl describe`` shows.

        Args:
            resource: what the object is.
            obj: the object; its metadata is what is needed.
            reason: one word in CamelCase.
            message: a sentence; the server takes 1,024 bytes.
            component: who says so.
            warning: whether it is one.
        """
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "default")
        involved = {"apiVersion": resource.api_version, "kind": resource.kind} | {
            name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata
        }
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": namespace},
            "involvedObject": involved,
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message.encode()[:_LONGEST_MESSAGE].decode(errors="ignore"),
            "source": {"component": component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        return self.create(EVENTS, body, namespace)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Any:
        attempt = 1
        while True:
            try:
                content = self._transport.request(method, path, query or {}, body, content_type)
            except KubeError as error:
                safe = error.passing and (method == "GET" or not error.unknown)
                if not safe or attempt == _ATTEMPTS:
                    raise
                sleep(pause_s(attempt, error.retry_after_s))
                attempt += 1
            else:
                break
        try:
            return json.loads(content)
        except ValueError as error:
            raise Unreachable(f"{method} {path}: the answer is no JSON: {error}", sent=True) from error


def _object(answer: Any) -> Object:
    if not isinstance(answer, dict):
        raise Unreachable("the answer is no JSON object", sent=True)
    return answer
