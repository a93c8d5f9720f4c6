"""The server: gunicorn over TLS, put together here and nowhere else."""

from __future__ import annotations

import ipaddress
import os
import resource
import signal
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import InputError
from webhook import config, logs, serving, tls
from webhook.board import Flag
from webhook.folder import private_folder
from webhook.holding import MOST_CONNECTIONS
from webhook.keeper import Keeper
from webhook.master import Master, rows
from webhook.metrics import Metrics
from webhook.readiness import Readiness
from webhook.reload import Reloader, Watch
from webhook.service import Service
from webhook.worker import Worker

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from wsgiref.types import WSGIApplication

_BACKLOG: Final = 1024
_GRACEFUL_S: Final = 15
"""For requests that are under way when the server ends: more than a slow client gets for one."""
_HUNG_S: Final = 10
"""A worker whose loop did not turn for as long is replaced."""
_MEMORY_FOLDER: Final = Path("/dev/shm")  # noqa: S108 - gunicorn makes files without a name there
_FIRST_POLL_S: Final = 0.1
_SAY_WAITING_S: Final = 10.0
_MORE_DESCRIPTORS: Final = 200


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of the server.

    Attributes:
        host: address or name to listen on.
        port: TCP port, 0 for a free one.
        certificate: PEM file of the chain; None, together with the key, where the certificate is its own.
        key: PEM file of its key.
        keep: arguments of the process that keeps certificates on a cluster; empty where there is none.
        settings: YAML file of the settings, None for the defaults.
        device_config: YAML file of the chip table, None for the default table.
        workers: processes.
        threads: of each process, for probes and metrics.
        drain_s: seconds that new connections are still served after SIGTERM.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    keep: tuple[str, ...] = ()
    settings: Path | None = None
    device_config: Path | None = None
    workers: int = 1
    threads: int = 4
    drain_s: float = 0


def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT; requests that are under way then are finished first.

    One line on standard output tells when the server is ready: ``{"message": "ready", "url": ..., "ca": ...}``, with
    the path of the CA where the certificate is self-signed.

    Raises:
        VnpuError: a file cannot be used, or the address cannot be listened on.
        SystemExit: when the server ends.
    """
    from webhook.app import create_app  # noqa: PLC0415 - Flask; not for who serves another application

    serve(options, lambda reloader, metrics, ready: create_app(reloader.context, metrics, ready.unready))


def serve(options: Options, application: Callable[[Reloader, Metrics, Readiness], WSGIApplication]) -> None:
    """Serve an application as the options say.

    Args:
        options: the command line.
        application: makes it.

    Raises:
        VnpuError: a file cannot be used, or the address cannot be listened on.
        SystemExit: when the server ends.
    """
    # Until gunicorn has its own handler: SIGTERM must not leave a folder behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logs.set_up()
    metrics = Metrics(rows(options.workers))
    logs.start_writer(metrics.dropped)
    keeper: Keeper | None = None
    try:
        settings = Watch(
            (options.settings, options.device_config), lambda: config.load(options.settings, options.device_config)
        )
        listener = serving.listen(options.host, options.port)
        with private_folder() if options.certificate is None else nullcontext(Path()) as folder:
            if options.keep:
                keeper = Keeper(options.keep, folder)
            pair, key, ca = _pair(options, folder, keeper)
            reloader = Reloader(settings, pair, key, metrics)
            reloader.tell()
            draining = Flag()
            readiness = Readiness(listener.getsockname(), reloader, draining)
            service = Service(application(reloader, metrics, readiness), reloader, metrics, draining)
            ready = {"url": serving.url("https", listener), "ca": None if ca is None else str(ca)}
            _Server(service, listener, _settings(options, ready), options.drain_s, keeper).run()
    finally:
        if keeper is not None:
            keeper.stop()
        logs.stop_writer()


def _settings(options: Options, ready: dict[str, str | None]) -> dict[str, Any]:
    _allow_descriptors(MOST_CONNECTIONS + _MORE_DESCRIPTORS)
    return {
        "backlog": _BACKLOG,
        "worker_class": Worker,
        "workers": options.workers,
        "threads": options.threads,
        "timeout": _HUNG_S,
        "graceful_timeout": _GRACEFUL_S,
        # On a disk the heartbeat of a worker would wait for the disk; a read-only root has no other place.
        "worker_tmp_dir": str(_MEMORY_FOLDER) if os.access(_MEMORY_FOLDER, os.W_OK) else None,
        "forwarded_allow_ips": "",
        "header_map": "refuse",  # Content_Length is no Content-Length, but some may take it for one
        "pre_fork": lambda master, worker: master.row_for(worker),
        "child_exit": lambda master, worker: master.app.service.metrics.ended(worker.row),
        "post_worker_init": lambda worker: _tell_ready(worker, ready),
    }


class _Server(serving.Server):
    def __init__(
        self,
        service: Service,
        listener: socket.socket,
        settings: dict[str, Any],
        drain_s: float,
        keeper: Keeper | None,
    ) -> None:
        self.service = service
        self._drain_s = drain_s
        self._keeper = keeper
        super().__init__(listener, "vnpu-webhook", settings)

    def load(self) -> WSGIApplication:
        return self.service.application

    def run(self) -> None:
        Master(self, self._drain_s, self._keeper).run()


def _tell_ready(worker: Any, ready: dict[str, str | None]) -> None:
    # Workers are started one after the other. The last of the first ones tells, when it has its signal handlers.
    if worker.age == worker.cfg.workers:
        logs.LOGGER.info("ready", extra={"fields": ready})


def _pair(
    options: Options, folder: Path, keeper: Keeper | None
) -> tuple[Watch[tls.Identity], Path | None, Path | None]:
    """What is to be served, the file of its key, and the file of a CA of our own making."""
    if keeper is not None:
        certificate, key = folder / "tls.crt", folder / "tls.key"
        _wait_for_pair(certificate, key, keeper)
        return _watched(certificate, key), key, None
    if options.certificate is not None and options.key is not None:
        return _watched(options.certificate, options.key), options.key, None
    identity, authority = _self_signed(options.host)
    ca = folder / "ca.crt"
    ca.write_bytes(authority)
    return Watch((), lambda: identity), None, ca


def _watched(certificate: Path, key: Path) -> Watch[tls.Identity]:
    held: list[tls.Identity] = []

    def load() -> tls.Identity:
        found = tls.read_identity(certificate, key)
        now = time.time()
        if held and found.validity.not_after < now <= held[-1].validity.not_after:
            raise InputError(str(certificate), "expired", "a certificate that is valid is expected")
        held[:] = [found]
        return found

    return Watch((certificate, key), load)


def _wait_for_pair(certificate: Path, key: Path, keeper: Keeper) -> None:
    """Wait until the process that keeps certificates has made the first; meanwhile nobody can connect."""
    say_at = time.monotonic()
    while True:
        keeper.supervise()
        try:
            tls.read_identity(certificate, key)
        except InputError:
            if time.monotonic() >= say_at:
                logs.LOGGER.warning("no certificate yet; nothing is served until there is one")
                say_at = time.monotonic() + _SAY_WAITING_S
            time.sleep(_FIRST_POLL_S)
        else:
            return


def _self_signed(host: str) -> tuple[tls.Identity, bytes]:
    """A serving pair for this machine that is in no file, and the CA that signed it."""
    from certs import authority  # noqa: PLC0415 - cryptography costs 70 ms, and a pair in files does without

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
    # The CA's key is not kept: nothing else will be signed.
    return tls.identity(pair.certificate, pair.key, "self-signed"), ca.certificate


def _allow_descriptors(number: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(number, hard), hard))
