"""``python -m interceptor.exporter``: serve this node's figures at ``/metrics``, until a signal ends it.

Exit codes: 0 ended by a signal; 2 bad usage, or a file or port that cannot be used, with one line on standard error.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import make_wsgi_app

from interceptor import dcmi, host_root, signals
from interceptor.exporter.listener import Listener
from interceptor.exporter.node import Driver, Pods
from interceptor.exporter.scrape import Scrape
from vnpu import kube, names
from vnpu.command_line import Parser, UsageError
from vnpu.configuration import read_chips
from vnpu.errors import VnpuError
from vnpu.terminal import complain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vnpu.kube import Follower

UNUSABLE: Final = 2
_HIGHEST_PORT: Final = 65535
_LEAST_S: Final = 0.1
_MOST_S: Final = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    try:
        options = _parser().parse_args(arguments)
        if not options.node:
            raise UsageError("--node is needed, or NODE_NAME in the environment")
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        chips, warnings = read_chips(options.device_config)
        cluster = kube.connect(kubeconfig=options.kubeconfig, agent="vnpu-exporter")
    except VnpuError as error:
        complain(f"exporter: {error}")
        return UNUSABLE
    for warning in warnings:
        logging.getLogger("exporter").warning("%s", warning)
    root: Path = options.host_root
    pods = Pods(chips)
    driver = Driver(partial(dcmi.source, host_root.loadable(root, names.DCMI_HOST)), root)
    scrape = Scrape(root, pods, driver)
    registry = CollectorRegistry()
    registry.register(scrape)
    try:
        server = Listener((options.host, options.port))
    except OSError as error:
        complain(f"exporter: {options.host}:{options.port}: {error.strerror or error}")
        return UNUSABLE
    server.set_app(make_wsgi_app(registry))
    follower = cluster.follow(kube.PODS, field_selector=f"spec.nodeName={options.node}")
    ended = threading.Event()
    signals.on_end(ended.set)
    threading.Thread(target=_follow_or_end, args=(pods, follower, ended), daemon=True).start()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    logging.getLogger("exporter").info("listening on %s:%d", *server.server_address[:2])
    while not ended.is_set():
        driver.look()
        scrape.table()
        ended.wait(options.interval)
    server.shutdown()
    follower.close()
    return 0


def _follow_or_end(pods: Pods, follower: Follower, ended: threading.Event) -> None:
    """Follow until the end; a fault of ours ends the exporter, which kubelet then starts again."""
    try:
        pods.follow(follower)
    finally:
        ended.set()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m interceptor.exporter", description="What the slices of this node are granted and use."
    )
    add: Any = parser.add_argument
    add("--node", default=os.environ.get("NODE_NAME", ""), help="name of this node (default: NODE_NAME)")
    add("--host", default="0.0.0.0", help="address to listen on (default %(default)s)")  # noqa: S104 - Prometheus is elsewhere
    add("--port", type=_port, default=names.EXPORTER_PORT, help="default %(default)s; 0 takes a free one")
    add(
        "--interval",
        type=_seconds,
        metavar="SECONDS",
        default=5.0,
        help="between two looks at the driver (%(default)g)",
    )
    add("--device-config", type=Path, metavar="FILE", help="chip table, in HAMi's format")
    add("--host-root", type=Path, metavar="DIR", default="/", help="where the host's / is seen (default %(default)s)")
    add("--kubeconfig", metavar="FILE", help="default: the pod's service account, else KUBECONFIG or ~/.kube/config")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text}: a whole number from 0 to {_HIGHEST_PORT} is allowed")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _LEAST_S <= seconds <= _MOST_S:
        raise argparse.ArgumentTypeError(f"{text}: seconds from {_LEAST_S:g} to {_MOST_S:g} are allowed")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
