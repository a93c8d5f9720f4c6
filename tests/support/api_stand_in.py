"""A stand-in for the Kubernetes API server: a plain threaded HTTP server on loopback, on a free port.

    with ApiStandIn() as api:
        cluster = api.cluster(tmp_path)    # a vnpu.kube.Cluster
        api.put(PODS, {"metadata": {"name": "p", "namespace": "n"}, "spec": {}})      # as any other client would
        api.fail(Fault("POST", "/binding", cut="after"))   # carried out, but the answer never arrives

It serves get, list (limit and continue, label and field selectors), watch (resume, bookmarks, 410, the server's own
time-out), create (generateName, dryRun), replace, JSON and merge patch with ``test``, the status subresource, pods'
binding, delete with preconditions and finalizers, resource versions and uids, for every resource of vnpu.kube; more
through ``ApiStandIn(also=(Resource(...),))``. Not served: defaults and validation of specs, admission, RBAC (answer 403
by a fault), namespaces that must exist, grace periods, strategic merging of lists.

What a test may do to it, at any time and from any thread:

* ``put``, ``object``, ``objects``, ``remove``: read and change what is stored, past HTTP; watches see it.
* ``fail(Fault(...))``: the next requests that match end differently; see :class:`Fault`.
* ``compact()``: what happened so far is forgotten: older watches and lists get 410.
* ``cut_watches()``: every running watch breaks off. ``silence()``: watches say nothing more, but stay open.
* ``away()``: every connection is cut and none is taken. ``back()`` ends this, and silence.
* ``requests``: what was asked so far.

``kubeconfig(folder)`` writes a file for other processes. ``ApiStandIn(tls=(certificate, key, ca))`` serves TLS.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.api_store import KNOWN, Refused, Store, Target, event_of, selector, target_of
from vnpu.kube import Cluster, connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from vnpu.kube import Object, Resource

TOKEN = "stand-in"
_HANDSHAKE_S = 10


@dataclass
class Fault:
    """How the next ``times`` requests end that match.

    Attributes:
        method: the HTTP method; ``""`` is any.
        path: a regular expression that is searched in path and query.
        status: answered instead of doing anything; 0 does what was asked.
        reason: of that answer.
        retry_after: its header of that name.
        cut: ``"before"`` closes the connection without doing anything, ``"after"`` does it and closes the connection
            instead of answering, ``"half"`` does it and sends half of the answer.
        delay_s: waits first.
        act: called first, for example to change the object between a client's read and its write.
        times: how many requests; -1 is all.
    """

    method: str = ""
    path: str = ""
    status: int = 0
    reason: str = "InternalError"
    retry_after: str = ""
    cut: str = ""
    delay_s: float = 0.0
    act: Callable[[], object] | None = None
    times: int = 1

    def refuse(self) -> None:
        if self.status:
            raise Refused(self.status, self.reason, f"injected: {self.reason}")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass
class _State:
    store: Store = field(default_factory=Store)
    known: tuple[Resource, ...] = KNOWN
    bookmark_s: float = 60.0
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    epoch: int = 0
    silent: bool = False
    away: bool = False
    closing: bool = False
    sockets: set[socket.socket] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.method in ("", method) and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None


class ApiStandIn:
    """The server; a context manager that runs it."""

    def __init__(
        self, *, also: tuple[Resource, ...] = (), bookmark_s: float = 60.0, tls: tuple[Path, Path, Path] | None = None
    ) -> None:
        self._state = _State(known=KNOWN + also, bookmark_s=bookmark_s)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.state = self._state
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls[:2])
            self._server.tls = context
        self._ca = str(tls[2]) if tls is not None else None
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"{'https' if self._server.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def requests(self) -> list[Request]:
        return list(self._state.requests)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.closing = True
        self._wake()
        self._server.shutdown()
        self._thread.join()
        self._hang_up()
        self._server.server_close()

    def kubeconfig(self, folder: Path) -> Path:
        path = folder / "kubeconfig"
        cluster = {"server": self.url} | ({"certificate-authority": self._ca} if self._ca else {})
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stand-in",
            "contexts": [{"name": "stand-in", "context": {"cluster": "stand-in", "user": "stand-in"}}],
            "clusters": [{"name": "stand-in", "cluster": cluster}],
            "users": [{"name": "stand-in", "user": {"token": TOKEN}}],
        }
        path.write_text(json.dumps(document))
        return path

    def cluster(self, folder: Path, *, timeout_s: float = 10.0, agent: str = "test") -> Cluster:
        return connect(kubeconfig=str(self.kubeconfig(folder)), timeout_s=timeout_s, agent=agent)

    def put(self, resource: Resource, obj: Object) -> Object:
        """Create it, or replace what is there."""
        store, target = self._state.store, _target(resource, obj)
        with store.changed:
            if (resource, target.namespace or "", target.name) not in store.objects:
                return store.create(target, obj)
            metadata = {
                name: value for name, value in obj["metadata"].items() if name not in ("uid", "resourceVersion")
            }
            return store.replace(target, obj | {"metadata": metadata})

    def object(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        return self._state.store.objects.get((resource, namespace or "", name))

    def objects(self, resource: Resource) -> list[Object]:
        with self._state.store.changed:
            return self._state.store.select(Target(resource))

    def remove(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        self._state.store.delete(Target(resource, namespace, name), {})

    def fail(self, fault: Fault) -> Fault:
        with self._state.lock:
            self._state.faults.append(fault)
        return fault

    def compact(self) -> None:
        self._state.store.compact()

    def cut_watches(self) -> None:
        self._state.epoch += 1
        self._wake()

    def silence(self) -> None:
        self._state.silent = True
        self._wake()

    def away(self) -> None:
        self._state.away = True
        self._hang_up()

    def back(self) -> None:
        self._state.away = self._state.silent = False
        self._wake()

    def _wake(self) -> None:
        with self._state.store.changed:
            self._state.store.changed.notify_all()

    def _hang_up(self) -> None:
        self.cut_watches()
        with self._state.lock:
            for connection in self._state.sockets:
                _shut(connection)


def _target(resource: Resource, obj: Object) -> Target:
    return Target(resource, obj["metadata"].get("namespace") if resource.namespaced else None, obj["metadata"]["name"])


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # gone already
        connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128
    state: _State
    tls: ssl.SSLContext | None = None

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return not self.state.away and super().verify_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        connection = request
        try:
            if self.tls is not None:
                request.settimeout(_HANDSHAKE_S)
                connection = self.tls.wrap_socket(request, server_side=True)
                connection.settimeout(None)
            with self.state.lock:
                self.state.sockets.add(connection)
            # Looked at once more: the switch may have been thrown before the connection was in the set.
            if not self.state.away and not self.state.closing:
                self.finish_request(connection, client_address)
        except OSError:
            pass  # a client that went away, or no handshake
        finally:
            with self.state.lock:
                self.state.sockets.discard(connection)
            self.shutdown_request(connection)


class _CutError(OSError):
    """The connection is to be closed without an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Say nothing: a test looks at ``requests``."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the same

    def _serve(self) -> None:
        state = self.server.state
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        if len(content) < length:
            raise _CutError
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        state.requests.append(Request(self.command, unquote(parts.path), query, dict(self.headers)))
        fault = state.fault(self.command, self.path) or Fault(times=0)
        if fault.delay_s:
            time.sleep(fault.delay_s)
        if fault.act is not None:
            fault.act()
        if fault.cut == "before":
            raise _CutError
        try:
            fault.refuse()
            if query.get("watch") == "true":
                self._watch(target_of(unquote(parts.path), state.known), query)
                return
            status, answer = self._answer(unquote(parts.path), query, json.loads(content) if content else {})
        except Refused as refused:
            status, answer = refused.status, _status(refused)
        if fault.cut == "after":
            raise _CutError
        self._send(status, answer, fault)

    def _answer(self, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        state, store = self.server.state, self.server.state.store
        if path == "/version":
            return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0-stand-in"}
        target = target_of(path, state.known)
        match self.command, target.name, target.subresource:
            case "GET", "", _:
                labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
                return 200, store.page(target, labels, fields, int(query.get("limit", 0)), query.get("continue", ""))
            case "GET", _, "" | "status":
                return 200, store.get(target)
            case "POST", "", _:
                return 201, store.create(target, body, dry_run=query.get("dryRun") == "All")
            case "POST", _, "binding":
                store.bind(target, body)
                return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
            case "PUT", _, "" | "status":
                return 200, store.replace(target, body)
            case "PATCH", _, "" | "status":
                return 200, store.patch(target, body, self.headers.get("Content-Type", ""))
            case "DELETE", name, "" if name:
                return 200, store.delete(target, body)
        raise Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _send(self, status: int, answer: Any, fault: Fault) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if fault.retry_after:
            self.send_header("Retry-After", fault.retry_after)
        self.end_headers()
        if fault.cut == "half":
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            raise _CutError
        self.wfile.write(content)
        self.wfile.flush()

    def _watch(self, target: Target, query: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for kind, one in self._events(target, query):
            line = json.dumps({"type": kind, "object": one}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _events(self, target: Target, query: dict[str, str]) -> Any:
        state, store = self.server.state, self.server.state.store
        chosen = selector(target, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        seen, epoch = int(query.get("resourceVersion") or store.version), state.epoch
        ends = time.monotonic() + float(query.get("timeoutSeconds", 1800))
        bookmark = time.monotonic() + state.bookmark_s
        while True:
            with store.changed:
                if seen < store.compacted:
                    yield "ERROR", _status(Refused(410, "Expired", f"too old resource version: {seen}"))
                    return
                news = [] if state.silent else store.since(seen)
                now = time.monotonic()
                if not news and now < min(ends, bookmark) and state.epoch == epoch and not state.closing:
                    store.changed.wait(min(ends, bookmark) - now)
                    continue
                latest = store.version
            if state.closing or state.epoch != epoch:
                raise _CutError
            for change in news:
                seen = change.version
                if (event := event_of(change, target, chosen)) is not None:
                    yield event
            if now >= min(ends, bookmark) and not state.silent and not news:
                bookmark = now + state.bookmark_s
                seen = latest
                metadata = {"resourceVersion": str(latest)}
                head = {"kind": target.resource.kind, "apiVersion": target.resource.api_version}
                if query.get("allowWatchBookmarks") == "true":
                    yield "BOOKMARK", head | {"metadata": metadata}
            if now >= ends:
                return


def _status(refused: Refused) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": refused.status,
        "reason": refused.reason,
        "message": refused.message,
    }
