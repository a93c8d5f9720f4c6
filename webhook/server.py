"""The server: gunicorn with threads over TLS, configured here and nowhere else."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from vnpu.errors import InputError
from webhook import config, logs, tls
from webhook.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flask import Flask

_BACKLOG: Final = 2048
_METRICS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable of prometheus_client."""
_KEEPALIVE_S: Final = 120
"""An API server closes idle connections after 90 s. Closing first would race with its next request."""
_GRACEFUL_S: Final = 20
"""For requests that are being answered at SIGTERM; below the 30 s that Kubernetes gives a pod."""


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of the server.

    Attributes:
        host: address or name to listen on.
        port: TCP port, 0 for a free one.
        certificate: PEM file of the chain; None, together with the key, for a self-signed pair.
        key: PEM file of its key.
        settings: YAML file of the settings, None for the defaults.
        device_config: YAML file of the chip table, None for the default table.
        workers: processes.
        threads: requests that one process answers at a time.
    """

    host: str
    port: int
    certificate: Path | None
    key: Path | None
    settings: Path | None
    device_config: Path | None
    workers: int
    threads: int


def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered then are finished first.

    One line on standard output tells when the server is ready: ``{"message": "ready", "url": ..., "ca": ...}``, with
    the path of the CA where the certificate is self-signed.

    Raises:
        VnpuError: a file cannot be used, or the address cannot be listened on.
        SystemExit: when the server ends.
    """
    logs.set_up()
    loaded = config.load(options.settings, options.device_config)
    for warning in loaded.warnings:
        logs.LOGGER.warning(warning)
    with private_folder() as folder:
        serve(_application(loaded, folder if options.workers > 1 else None), options, folder)


def serve(app: Flask, options: Options, folder: Path) -> None:
    """Serve an application as the options say; ``folder`` takes the self-signed pair, where one is made.

    Raises:
        InputError: certificate or key cannot be used, or the address cannot be listened on.
        SystemExit: when the server ends.
    """
    certificate, key, ca = options.certificate, options.key, None
    if certificate is None or key is None:
        certificate, key, ca = _self_signed(folder, options.host)
    context = tls.server_context(certificate, key)
    listener = _listener(options.host, options.port)
    ready = {"url": _url(listener), "ca": None if ca is None else str(ca)}
    settings = {
        "bind": f"fd://{listener.detach()}",
        "certfile": str(certificate),
        "keyfile": str(key),
        "ssl_context": lambda _config, _default: context,
        "worker_class": Worker,
        "workers": options.workers,
        "threads": options.threads,
        "keepalive": _KEEPALIVE_S,
        "graceful_timeout": _GRACEFUL_S,
        "forwarded_allow_ips": "",
        "control_socket_disable": True,
        "logger_class": _Log,
        "errorlog": None,
        "loglevel": "warning",
        "proc_name": "vnpu-webhook",
        "post_worker_init": lambda worker: _tell_ready(worker, ready),
    }
    _Server(app, settings).run()


class _Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, app: Flask, settings: dict[str, Any]) -> None:
        self._app = app
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._app


class _Log(Logger):  # type: ignore[misc]
    """gunicorn's own log lines, as JSON among ours."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.propagate = True


def _tell_ready(worker: Any, ready: dict[str, str | None]) -> None:
    # Workers are started one after the other. The last of the first ones tells, when it has its signal handlers.
    if worker.age == worker.cfg.workers:
        logs.LOGGER.info("ready", extra={"fields": ready})


def _application(loaded: config.Loaded, metrics_folder: Path | None) -> Flask:
    """The application; metrics go to a folder where several workers share them."""
    os.environ.pop(_METRICS_FOLDER, None)
    if metrics_folder is not None:
        os.environ[_METRICS_FOLDER] = str(metrics_folder)
    # Only now: metrics look for their folder when they are imported.
    from webhook.app import create_app  # noqa: PLC0415 - see above
    from webhook.metrics import Metrics  # noqa: PLC0415 - see above

    metrics = Metrics(shared=metrics_folder is not None)
    metrics.configured(1)
    return create_app(lambda: loaded.context, metrics)


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that only this user may enter; it is removed by the process that made it, not by its workers.

    Raises:
        InputError: there is no place for it.
    """
    # Until gunicorn has its own handler: SIGTERM must not leave the folder behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        folder = Path(tempfile.mkdtemp(prefix="vnpu-webhook-"))
    except OSError as error:  # a read-only root without a volume at /tmp
        allowed = "a temporary folder that can be written to is expected; TMPDIR names another"
        raise InputError("", error.strerror or str(error), allowed) from error
    owner = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder)


def _self_signed(folder: Path, host: str) -> tuple[Path, Path, Path]:
    """A new CA and a serving pair for this machine: paths of certificate, key and CA."""
    from certs import authority  # noqa: PLC0415 - cryptography costs 70 ms, and a mounted pair does without

    names, addresses = ["localhost"], ["127.0.0.1", "::1"]
    try:
        addresses.append(str(ipaddress.ip_address(host)))
    except ValueError:
        names.append(host.lower())
    now = datetime.now(UTC)
    ca = authority.make_authority("vNPU webhook, self-signed", now=now, lifetime=authority.SERVING_LIFETIME)
    pair = authority.make_serving(
        ca, dns_names=tuple(dict.fromkeys(names)), ip_addresses=tuple(dict.fromkeys(addresses)), now=now
    )
    certificate, key, ca_file = folder / "tls.crt", folder / "tls.key", folder / "ca.crt"
    authority.write_pair(pair, certificate, key)
    ca_file.write_bytes(ca.certificate)  # its key is not kept: nothing else will be signed
    return certificate, key, ca_file


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        text = error.strerror or str(error)
        raise InputError(f"{host}:{port}", text, "a free port on an address of this machine is expected") from error


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"https://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"https://{host}:{port}"
