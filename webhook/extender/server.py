"""The server: one process of gunicorn, with threads, in plain HTTP: kube-scheduler calls over loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu import configuration, kube
from webhook import logs, serving
from webhook.extender.engine import MOST_BINDS, Engine
from webhook.extender.metrics import Metrics

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from flask import Flask

    from vnpu.fit.policy import Policy

_THREADS: Final = MOST_BINDS + 16
"""Each bind that waits for its turn has one; filters and probes have the others."""
_GRACEFUL_S: Final = 25
"""For binds that are under way at SIGTERM: they wait 20 s at most."""
_KEEPALIVE_S: Final = 120
"""kube-scheduler keeps idle connections for 90 s; closing first would race with its next request."""


@dataclass(frozen=True, slots=True)
class Options:
    """The command line.

    Attributes:
        host: address or name to listen on.
        port: TCP port, 0 for a free one.
        settings: YAML file of the webhook's settings, None for the defaults.
        device_config: YAML file of the chip table, None for the default table.
        kubeconfig: None for the service account of the pod, else for what the environment names.
        policy: of pods whose annotations do not say.
    """

    host: str
    port: int
    settings: Path | None
    device_config: Path | None
    kubeconfig: str | None
    policy: Policy


def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT; binds that are under way then are finished first.

    One line on standard output tells where: ``{"message": "serving", "url": ...}``; it is ready once the cluster is
    known, which ``/readyz`` tells.

    Raises:
        VnpuError: a file cannot be used, or the address cannot be listened on.
        SystemExit: when the server ends.
    """
    logs.set_up()
    settings, odd = configuration.read_settings(options.settings)
    chips, warnings = configuration.read_chips(options.device_config)
    for warning in (*odd, *warnings):
        logs.LOGGER.warning(warning)
    cluster = kube.connect(kubeconfig=options.kubeconfig, agent="vnpu-extender")
    metrics = Metrics()
    engine = Engine(cluster, settings, chips, options.policy, metrics)
    listener = serving.listen(options.host, options.port)
    url = serving.url("http", listener)
    gunicorn = {
        "worker_class": "gthread",
        "workers": 1,
        "threads": _THREADS,
        "keepalive": _KEEPALIVE_S,
        "graceful_timeout": _GRACEFUL_S,
        "post_worker_init": lambda _: logs.LOGGER.info("serving", extra={"fields": {"url": url}}),
    }
    _Server(engine, metrics, listener, gunicorn).run()


class _Server(serving.Server):
    def __init__(self, engine: Engine, metrics: Metrics, listener: socket.socket, settings: dict[str, Any]) -> None:
        self._engine = engine
        self._metrics = metrics
        super().__init__(listener, "vnpu-extender", settings)

    def load(self) -> Flask:
        """In the process that serves: only there may threads begin."""
        from webhook.extender.app import create_app  # noqa: PLC0415 - the process that only watches needs no Flask

        self._engine.start()
        return create_app(self._engine, self._metrics)
