"""``python -m webhook preview FILE...``: what admission would make of manifests, shown without a cluster."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import jsonpatch
import yaml

from vnpu import documents, terminal
from vnpu.admission import rules
from vnpu.admission.settings import Templates
from vnpu.admission.templates import POD_KINDS, volcano_job
from vnpu.documents import DocumentError
from vnpu.errors import InputError, bare, did_you_mean, printable
from webhook import config
from webhook.patch import operations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from vnpu.documents import Document
    from vnpu.errors import VnpuError
    from webhook.review import Context

_NOT_JUDGED: Final = -1
"""Of one manifest among others: it counts only where there is nothing else."""
_ALLOWED: Final = 0
_REFUSED: Final = 1
_UNUSABLE: Final = 2
_POD: Final = "Pod"


class Makes(Enum):
    """What pods a manifest makes."""

    NOTHING = auto()
    ITSELF = auto()
    PODS = auto()


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen to one manifest.

    Attributes:
        title: kind and name.
        makes: what pods it makes.
        refusals: why it, or the pods that it makes, would be refused; empty when they are allowed.
        warnings: what the user would be told.
        diffs: per pod or template that is completed, the change of its YAML; empty when it is refused.
    """

    title: str
    makes: Makes
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    diffs: tuple[str, ...]


def run(files: Sequence[Path], settings_file: Path | None, device_config_file: Path | None) -> int:
    """Show every manifest on standard output; returns the exit code.

    What cannot be judged is told on standard error, and the others are shown all the same.

    Returns:
        2 where something cannot be read, or nothing makes pods, else 1 where a manifest is refused, else 0.

    Raises:
        VnpuError: the settings or the device config cannot be used.
        OutputError: standard output takes nothing.
    """
    loaded = config.load(settings_file, device_config_file)
    for warning in loaded.warnings:
        terminal.complain(f"webhook: {warning}")
    codes: list[int] = []
    for path in files:
        try:
            for document in documents.read(path):
                codes.append(_show(document, loaded.context))  # noqa: PERF401 - what was shown before a fault counts too
        except (InputError, DocumentError) as error:
            codes.append(_unusable(error))
    if all(code == _NOT_JUDGED for code in codes):
        terminal.complain("webhook: nothing to judge: no manifest makes pods")
        return _UNUSABLE
    return max(codes)


def _show(document: Document, context: Context) -> int:
    try:
        with document:
            result = preview(document.value, context)
    except DocumentError as error:
        return _unusable(error)
    with terminal.output() as stream:
        stream.write(_rendered(document, result))
    if result.makes is Makes.NOTHING:
        return _NOT_JUDGED
    return _REFUSED if result.refusals else _ALLOWED


def _unusable(error: VnpuError) -> int:
    terminal.complain(f"webhook: {error}")
    return _UNUSABLE


def preview(manifest: Any, context: Context) -> Preview:
    """What would happen to a manifest and to the pods that it makes, whatever the setting ``templates`` says.

    Raises:
        InputError: the manifest is no Kubernetes object, or has replicas that are no number.
    """
    if not isinstance(manifest, dict) or not isinstance(manifest.get("kind"), str):
        raise InputError("", manifest, "a Kubernetes object with its kind is expected")
    templates = list(rules.pod_templates(manifest))
    settings = replace(context.settings.offline(), templates=Templates.DENY)
    if manifest["kind"] == _POD:
        outcome = rules.mutate_pod(manifest, settings, context.chips)
    else:
        outcome = rules.validate_workload(manifest, None, settings, context.chips)
    diffs = () if outcome.refusals else tuple(_diffs(manifest, templates, context))
    return Preview(
        _title(manifest),
        _makes(manifest, templates),
        tuple(map(str, outcome.refusals)),
        outcome.warnings,
        diffs,
    )


def _makes(manifest: Mapping[str, Any], templates: Sequence[rules.PodTemplate]) -> Makes:
    if manifest["kind"] == _POD:
        return Makes.ITSELF
    return Makes.PODS if templates else Makes.NOTHING


def _diffs(manifest: Mapping[str, Any], templates: Sequence[rules.PodTemplate], context: Context) -> Iterator[str]:
    for place in templates:
        pod = place.template
        patch = operations(pod, rules.mutate_pod(pod, context.settings, context.chips).sets)
        if patch:
            what = place.path or _title(manifest)
            # Volcano writes the job's scheduler into each pod that it makes.
            how = "as Volcano fills it in" if volcano_job(manifest) is not None else "as written"
            yield diff(pod, jsonpatch.apply_patch(pod, patch), what, how)


def diff(before: Any, after: Any, what: str, how: str = "as written") -> str:
    """The unified diff of two objects as YAML; its head says what they are and how the first one came about."""
    lines = difflib.unified_diff(_yaml(before), _yaml(after), f"{what}, {how}", f"{what}, as admitted")
    return "".join(lines)


def _yaml(document: Any) -> list[str]:
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return [printable(line) + "\n" for line in text.splitlines()]


def _title(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = _text(fields.get("name")) or _text(fields.get("generateName")) or "without a name"
    namespace = _text(fields.get("namespace"))
    full = f"{namespace}/{name}" if namespace else name
    return f"{bare(manifest['kind'])} {bare(full)}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _rendered(document: Document, result: Preview) -> str:
    if result.makes is Makes.NOTHING:
        kind = document.value["kind"]
        hint = "" if kind in POD_KINDS else did_you_mean(kind, POD_KINDS)
        verdict = f"not judged: it holds no pod template at a place that is known{hint}"
    elif result.refusals:
        verdict = "refused" if result.makes is Makes.ITSELF else "its pods would be refused"
    else:
        verdict = "allowed, completed" if result.diffs else "allowed as it is"
    lines = [f"{document.place}: {result.title}: {verdict}"]
    lines += (f"  refused: {refusal}" for refusal in result.refusals)
    lines += (f"  warning: {warning}" for warning in result.warnings)
    return "".join((*(printable(line) + "\n" for line in lines), *result.diffs, "\n"))
