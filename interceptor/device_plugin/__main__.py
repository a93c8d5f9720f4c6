"""``python -m interceptor.device_plugin``: offer this node's NPUs to kubelet and the cluster, until a signal ends it.

Exit codes: 0 ended by a signal; 2 bad usage, or a file that cannot be used, with one line on standard error.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interceptor import dcmi, devices, elf, signals
from interceptor.device_plugin import settings
from interceptor.device_plugin.host import Host
from interceptor.device_plugin.plugin import HEALTH_S, Plugin, Setup
from interceptor.npu_smi import NpuSmi
from interceptor.patience import COMMAND_S, Question
from vnpu import documents, kube, names
from vnpu.command_line import Parser, UsageError
from vnpu.configuration import read_chips
from vnpu.errors import InputError, VnpuError
from vnpu.terminal import complain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interceptor.device_plugin.settings import NodeSettings
    from interceptor.devices import Machine

UNUSABLE: Final = 2
_API_TIMEOUT_S: Final = 5.0
"""kubelet admits one pod at a time, and waits for Allocate as long as it takes."""
_SOFT: Final = "soft"
_HARD: Final = "hard"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        options = _parser().parse_args(arguments)
        if not options.node:
            raise UsageError("--node is needed, or NODE_NAME in the environment")
        host = Host(options.host_root, options.core_version, elf.this_machine())
        setup = _setup(options, host)
        cluster = kube.connect(kubeconfig=options.kubeconfig, timeout_s=_API_TIMEOUT_S, agent="vnpu-node")
    except VnpuError as error:
        complain(f"device_plugin: {error}")
        return UNUSABLE
    plugin = Plugin(setup, host, cluster)
    signals.on_end(plugin.stop)
    plugin.run()
    return 0


def _setup(options: argparse.Namespace, host: Host) -> Setup:
    chips, warnings = read_chips(options.device_config)
    for warning in warnings:
        logging.getLogger("device_plugin").warning("%s", warning)
    configured = _read_settings(options.config, options.node)
    soft = chips.soft_nodes_by_default if configured.soft is None else configured.soft
    npu_smi = partial(_given, options.npu_smi) if options.npu_smi else host.npu_smi
    return Setup(
        options.node,
        configured,
        chips,
        soft if options.mode is None else options.mode == _SOFT,
        _sources(options, host, npu_smi),
        None if options.devices is not None else npu_smi,
        options.kubelet_dir,
        options.pod_resources,
        options.health_seconds,
        options.report_seconds,
    )


def _given(path: str) -> tuple[str, ...]:
    return (path,)


def _read_settings(path: Path | None, node: str) -> NodeSettings:
    if path is None:
        return settings.parse(None, node)
    found = list(documents.read(path))
    if len(found) > 1:
        raise InputError(str(path), f"{len(found)} documents", "one document is expected")
    if not found:
        return settings.parse(None, node)
    with found[0] as document:
        return settings.parse(document.value, node)


def _sources(
    options: argparse.Namespace, host: Host, npu_smi: Callable[[], tuple[str, ...]]
) -> list[Callable[[], Machine]]:
    if options.devices is not None:
        return [partial(devices.read_file, options.devices)]
    load = cache(partial(dcmi.source, host.dcmi()))
    return [
        Question("libdcmi", lambda: load().machine()),
        Question("npu-smi", lambda: _from_npu_smi(npu_smi()), COMMAND_S),
    ]


def _from_npu_smi(command: tuple[str, ...]) -> Machine:
    if not command:
        raise devices.DevicesError("npu-smi is not there")
    return NpuSmi(command).machine()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m interceptor.device_plugin", description="Offer this node's NPUs to kubelet and the cluster."
    )
    add: Any = parser.add_argument
    add("--node", default=os.environ.get("NODE_NAME", ""), help="name of this node (default: NODE_NAME)")
    add("--config", type=Path, metavar="FILE", help="settings of the node parts, YAML; HAMi's node-config.yaml is one")
    add("--device-config", type=Path, metavar="FILE", help="chip table, in HAMi's format")
    add("--mode", choices=(_SOFT, _HARD), help="of this node (default: as configured)")
    add("--devices", type=Path, metavar="FILE", help="a file that stands in for the driver")
    add("--npu-smi", metavar="FILE", default="", help="the driver's command (default: looked for on the host)")
    add("--kubelet-dir", type=Path, metavar="DIR", default=names.KUBELET_DEVICE_PLUGINS, help="default %(default)s")
    add("--pod-resources", type=Path, metavar="SOCKET", default=names.KUBELET_POD_RESOURCES, help="default %(default)s")
    add("--host-root", type=Path, metavar="DIR", default="/", help="where the host's / is seen (default %(default)s)")
    add(
        "--health-seconds",
        type=_seconds,
        metavar="N",
        default=HEALTH_S,
        help="how often the driver is asked (%(default)g)",
    )
    add(
        "--report-seconds",
        type=_seconds,
        metavar="N",
        default=names.REPORT_S,
        help="how often the node object is looked at (default %(default)g)",
    )
    add("--kubeconfig", metavar="FILE", help="default: the pod's service account, else KUBECONFIG or ~/.kube/config")
    add(
        "--core-version",
        metavar="VERSION",
        default=metadata.version("ascend-vnpu"),
        help="of the libraries that containers get (default %(default)s)",
    )
    return parser


def _seconds(text: str) -> float:
    if not text.isdecimal() or not 1 <= int(text) <= 3600:
        raise argparse.ArgumentTypeError(f"{text}: a whole number of seconds from 1 to 3600 is allowed")
    return float(text)


if __name__ == "__main__":
    sys.exit(main())
