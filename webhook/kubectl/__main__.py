"""``kubectl vnpu``: kubectl finds it as the program ``kubectl-vnpu``; ``python -m webhook.kubectl`` is the same."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vnpu import names, terminal
from vnpu.errors import VnpuError, shown
from vnpu.kube import CONFIG_MAPS, EVENTS, PODS, KubeError, NotFound, Resource, Unreachable, connect, namespace
from webhook.kubectl import arguments

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence

    from vnpu.fit.table import Section
    from vnpu.kube import Cluster, Object
    from webhook.kubectl.view import View

PENDING: Final = 1
UNUSABLE: Final = 2
_AGENT: Final = "kubectl-vnpu"
_POD_GROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
_LIVE: Final = "--from-cluster"
_OWN_NODES: Final = ("--nodes", "--card", "-h", "--help", _LIVE)
"""Options of the planner that say which nodes there are."""


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    try:
        options = arguments.parse(sys.argv[1:] if given is None else given)
        match options.command:
            case "fit":
                return _fit(options.rest)
            case "preview" | "doctor":
                from webhook.__main__ import main as webhook  # noqa: PLC0415 - each command loads what it needs

                return webhook([options.command, *options.rest])
            case "top":
                return _top(options)
            case _:
                return _explain(options)
    except VnpuError as error:
        terminal.complain(f"error: {error}")
        return UNUSABLE


def _fit(rest: list[str]) -> int:
    from vnpu.fit.__main__ import main as fit  # noqa: PLC0415 - the same

    given = {one.partition("=")[0] for one in rest}
    if given.intersection(_OWN_NODES) - {_LIVE}:
        return fit(rest)
    with tempfile.TemporaryDirectory() as folder:
        own = _own_configuration(arguments.cluster_of(rest), Path(folder), given)
        return fit([*rest, *own, *([] if _LIVE in given else [_LIVE])])


def _own_configuration(options: argparse.Namespace, folder: Path, given: Collection[str]) -> list[str]:
    """Options that name the settings and the device config of the installation, unless others are given."""
    cluster = connect(kubeconfig=options.kubeconfig, context=options.context, agent=_AGENT)
    try:
        found = cluster.list(CONFIG_MAPS, label_selector=f"{names.PART_OF_LABEL}={names.PART_OF}").items
    except Unreachable:
        raise
    except KubeError as error:
        terminal.complain(f"note: the defaults are taken for settings and device config: {error}")
        return []
    finally:
        cluster.close()
    told: list[str] = []
    for option, name in (("--config", names.SETTINGS_KEY), ("--device-config", names.DEVICE_CONFIG_KEY)):
        texts = {text for one in found if (text := (one.get("data") or {}).get(name)) is not None}
        if option not in given and len(texts) == 1:
            path = folder / name
            path.write_text(texts.pop())
            told += [option, str(path)]
        elif option not in given:
            why = f"{len(texts)} ConfigMaps of the chart differ" if texts else "no ConfigMap of the chart has one"
            terminal.complain(f"note: the default is taken for {option}: {why} ({name})")
    return told


def _top(options: argparse.Namespace) -> int:
    from webhook.kubectl import top  # noqa: PLC0415 - the same

    cluster = connect(kubeconfig=options.kubeconfig, context=options.context, agent=_AGENT)
    try:
        view = _view(cluster, options)
    finally:
        cluster.close()
    if options.what == "pods":
        none = "no pod holds a card" + (f" in the namespace {shown(options.namespace)}" if options.namespace else "")
        sections, document = top.pods(view, options.namespace), top.pods_json(view, options.namespace)
    else:
        none = "no node has registered cards (kubectl vnpu doctor looks why)"
        sections, document = top.nodes(view), top.nodes_json(view)
    _write(sections, document, options.output)
    if not any(one.rows for one in sections):
        terminal.complain(f"note: {none}")
    return 0


def _explain(options: argparse.Namespace) -> int:
    from webhook.kubectl import explain  # noqa: PLC0415 - the same

    place = options.namespace or namespace(kubeconfig=options.kubeconfig, context=options.context)
    cluster = connect(kubeconfig=options.kubeconfig, context=options.context, agent=_AGENT)
    try:
        try:
            pod = cluster.get(PODS, options.pod, place)
        except NotFound:
            missing = f"there is no pod {shown(options.pod)} in the namespace {shown(place)}"
            if why := explain.absent(options.pod, cluster.list(EVENTS, place).items):
                terminal.complain(f"error: {missing}: {why}")
                return PENDING
            near = explain.near(options.pod, cluster.list(PODS, place).items)
            terminal.complain(f"error: {missing}{near} (-n names another namespace)")
            return UNUSABLE
        around = explain.Around(_events(cluster, pod), _group(cluster, pod, explain.GROUP))
        found = explain.explain(pod, _view(cluster, options), around)
    finally:
        cluster.close()
    _write(found.sections)
    return PENDING if pod.get("status", {}).get("phase") == "Pending" else 0


def _events(cluster: Cluster, pod: Object) -> list[Object]:
    metadata = pod["metadata"]
    found = cluster.list(EVENTS, metadata["namespace"], field_selector=f"involvedObject.name={metadata['name']}")
    return [one for one in found.items if one["involvedObject"].get("uid") in (None, metadata["uid"])]


def _group(cluster: Cluster, pod: Object, annotation: str) -> Object | None:
    name = (pod["metadata"].get("annotations") or {}).get(annotation)
    if name is None:
        return None
    with suppress(NotFound):
        return cluster.get(_POD_GROUPS, name, pod["metadata"]["namespace"])
    return None


def _view(cluster: Cluster, options: argparse.Namespace) -> View:
    from webhook.doctor import gather  # noqa: PLC0415 - the same
    from webhook.kubectl.view import view  # noqa: PLC0415 - the same

    found = view(gather.take(cluster), options.config, options.device_config)
    for note in found.notes:
        terminal.complain(f"note: {note}")
    return found


def _write(sections: Sequence[Section], document: Any = None, output: str = "table") -> None:
    from vnpu.fit import render  # noqa: PLC0415 - the same
    from vnpu.fit.table import without_blank_columns  # noqa: PLC0415 - the same

    with terminal.output() as stream:
        if output == "json":
            stream.write(json.dumps(document, indent=2) + "\n")
        else:
            render.show([without_blank_columns(one) for one in sections if one.rows], stream)


if __name__ == "__main__":
    sys.exit(main())
