"""Requests to the API server: the one module over the kubernetes client.

The client is used for what it knows best: where the server is, who asks, tokens that are renewed, TLS, proxies and
connections. Its models are not used. It is imported when :func:`client` is called, for it takes a third of a second and
40 MiB.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode

from vnpu.errors import ConfigError
from vnpu.kube.errors import Unreachable, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BLOCK: Final = 2**18
_WHOLE_ANSWER: Final = 6
"""Time-outs that an answer may take in all, however steadily it drips."""
_FIRST_FAULT: Final = 400
_IN_POD: Final = "KUBERNETES_SERVICE_HOST"


class Transport:
    """One request, one answer; nothing is repeated here. Safe to use from several threads."""

    def __init__(self, client: Any, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s

    def close(self) -> None:
        """Close idle connections."""
        self._client.rest_client.close()

    def request(
        self, method: str, path: str, query: Mapping[str, Any], body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        """The whole answer to a request.

        Raises:
            KubeError: the server refused it.
            Unreachable: no answer, or one that broke off or took too long.
        """
        return self._whole(self._respond(method, path, query, body, content_type, self._timeout_s))

    def stream(self, path: str, query: Mapping[str, Any], silence_s: float) -> Stream:
        """An answer that comes piece by piece for as long as the server likes; silence for so long breaks it."""
        return Stream(self._respond("GET", path, query, None, "application/json", silence_s))

    def _respond(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, content_type: str, read_s: float
    ) -> Any:
        given = {name: value for name, value in query.items() if value not in ("", 0)}
        headers = {"Accept": "application/json", "Content-Type": content_type}
        with translated(f"{method} {path}"):
            method, url, headers, content, _ = self._client.param_serialize(
                method, path, header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            url += f"?{urlencode(given)}" if given else ""
            timeouts = (self._timeout_s, read_s)
            response = self._client.call_api(method, url, headers, content, _request_timeout=timeouts).response
        if response.status >= _FIRST_FAULT:
            raise refusal(response.status, self._whole(response), response.headers.get("Retry-After"))
        return response

    def _whole(self, response: Any) -> bytes:
        deadline = time.monotonic() + _WHOLE_ANSWER * self._timeout_s
        content = bytearray()
        try:
            with translated("answer"):
                while block := response.read1(_BLOCK):
                    content += block
                    if time.monotonic() > deadline:
                        raise TimeoutError("not complete in time")
        except Unreachable:
            response.close()
            raise
        response.release_conn()
        return bytes(content)


class Stream:
    """The lines of an answer that goes on; :meth:`close` may be called by another thread and ends it."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._closed = False

    def lines(self) -> Iterator[bytes]:
        """Every line that is not empty, as it arrives.

        Raises:
            Unreachable: it was cut off, or is silent.
        """
        rest = b""
        try:
            while block := self._block():
                *lines, rest = (rest + block).split(b"\n")
                yield from filter(None, map(bytes.strip, lines))
        finally:
            self._response.close()

    def close(self) -> None:
        """End the lines, also while somebody waits for one."""
        self._closed = True
        with suppress(ValueError, RuntimeError, OSError):  # it has ended already
            self._response.shutdown()

    def _block(self) -> bytes:
        try:
            with translated("watch"):
                return b"" if self._closed else bytes(self._response.read1(_BLOCK))
        except Unreachable:
            if self._closed:
                return b""
            raise


def client(kubeconfig: str | None, context: str | None, agent: str) -> Any:
    """An ``ApiClient`` for the service account of this pod, else for a kubeconfig; see :func:`vnpu.kube.connect`.

    Raises:
        ConfigError: neither is there, or it cannot be read.
    """
    from kubernetes import config  # noqa: PLC0415 - takes time and memory
    from kubernetes.client import ApiClient, Configuration  # noqa: PLC0415 - the same

    configuration, load = Configuration(), cast("Any", config)  # has no types
    in_pod = kubeconfig is None and context is None and _IN_POD in os.environ
    try:
        if in_pod:
            load.load_incluster_config(client_configuration=configuration)
        else:
            load.load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)
    except Exception as error:  # whatever a file that is no kubeconfig makes the client raise
        where = "service account" if in_pod else kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        allowed = "a pod's service account, or a kubeconfig named by an option or KUBECONFIG, is expected"
        raise ConfigError(where, str(error), allowed) from error
    configuration.keep_alive = True  # of TCP: notices a peer that vanished below a watch
    configuration.retries = False  # the client's own would send a PUT again whose outcome is unknown
    made = ApiClient(configuration)
    made.user_agent = agent
    return made


def namespace(kubeconfig: str | None, context: str | None) -> str:
    """The namespace of a context, ``default`` where it names none; see :func:`vnpu.kube.connect`.

    Raises:
        ConfigError: there is no kubeconfig, or not that context in it.
    """
    from kubernetes import config  # noqa: PLC0415 - takes time and memory

    try:
        contexts, active = cast("Any", config).list_kube_config_contexts(config_file=kubeconfig)
        found = active if context is None else next(one for one in contexts if one["name"] == context)
        return str(found["context"].get("namespace") or "default")
    except Exception as error:  # the same
        where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise ConfigError(where, str(error) or f"no context {context}", "a kubeconfig with that context") from error


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn the errors of the client and of what is below it into ours."""
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415 - loaded already
    from kubernetes.config import ConfigException  # noqa: PLC0415 - the same
    from urllib3 import exceptions  # noqa: PLC0415 - comes with the client

    try:
        yield
    except (exceptions.NewConnectionError, exceptions.ConnectTimeoutError, ConfigException) as error:
        raise Unreachable(f"{what}: {error}", sent=False) from error
    except (exceptions.HTTPError, ApiException, OSError) as error:
        raise Unreachable(f"{what}: {type(error).__name__}: {error}", sent=True) from error
