"""The rules of admission in their order: objects and settings in; assignments, warnings and refusals out.

Webhook, preview and planner call these functions and judge alike. They take JSON of any shape and never raise: what is
wrong with an NPU pod is a refusal, and what asks for no NPU is let through as it is.

A pod is completed first, and what completing cannot do is refused together with what :mod:`vnpu.admission.check`
finds. The validator does the same once more: a pod that completing would still change never met the mutating webhook.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

from vnpu import request
from vnpu.admission import check, guard
from vnpu.admission.complete import complete_pod, resource_sets
from vnpu.admission.outcome import APPEND, NOTHING, Outcome, Set
from vnpu.admission.pod import read
from vnpu.admission.settings import Templates
from vnpu.admission.templates import PodTemplate, is_volcano_job, places, pod_templates
from vnpu.chips import ResourceKind
from vnpu.errors import ABSENT, FieldError, RequestError, path_of, same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vnpu.admission.settings import Settings
    from vnpu.chips import ChipTable

__all__ = [
    "Outcome",
    "PodTemplate",
    "Set",
    "mutate_pod",
    "mutate_volcano_job",
    "pod_templates",
    "validate_pod",
    "validate_pod_update",
    "validate_workload",
]

_GANG_KINDS = frozenset({ResourceKind.COUNT, ResourceKind.MEMORY})


class _Judgement(NamedTuple):
    """What is known of a pod: assignments without which it cannot be, those that place it, and the words for it."""

    needed: tuple[Set, ...] = ()
    placing: tuple[Set, ...] = ()
    warnings: tuple[str, ...] = ()
    refusals: tuple[FieldError, ...] = ()


def mutate_pod(pod: Any, settings: Settings, chips: ChipTable) -> Outcome:
    """What a pod gets when it is created. Twice is once: a pod that was completed gets nothing more."""
    judged = _judge(pod, settings, chips)
    if judged.refusals:
        return Outcome((), judged.warnings, judged.refusals)
    return Outcome((*judged.needed, *judged.placing), judged.warnings)


def validate_pod(pod: Any, settings: Settings, chips: ChipTable) -> Outcome:
    """Whether a pod may be created: the same rules, and the second line behind the mutating webhook."""
    judged = _judge(pod, settings, chips)
    refusals = judged.refusals
    if judged.needed and not refusals:
        refusals = (_unmutated(pod, judged.needed),)
    return Outcome((), judged.warnings, refusals)


def validate_pod_update(pod: Any, old: Any, username: str, settings: Settings, chips: ChipTable) -> Outcome:
    """Whether a pod may change from ``old``: everything may, but for the annotations that record its allocation."""
    if username in settings.allocators:
        return NOTHING
    return Outcome(refusals=tuple(guard.tampered(pod, old, username, chips)))


def validate_workload(obj: Any, old: Any, settings: Settings, chips: ChipTable) -> Outcome:
    """What the pods of a controller would meet, told when the controller is written.

    Args:
        obj: a controller, or any other object, which is let through.
        old: what it was before an update, None when it is created. Templates that did not change are not judged.
        settings: ``templates`` says whether a fault is a warning or a refusal.
        chips: the chip table.
    """
    if not isinstance(obj, dict):
        return NOTHING
    before = [place.template for place in places(old)] if isinstance(old, dict) else []
    warnings: list[str] = []
    refusals: list[FieldError] = []
    for place in places(obj):
        if any(same(place.template, template) for template in before):
            continue
        judged = _judge(place.template, settings, chips)
        faults = [fault.under(place.path) for fault in judged.refusals]
        if settings.templates is Templates.DENY:
            refusals += faults
        elif faults:
            warnings += (f"{place.path}: the pods of this template will be refused", *map(str, faults))
        warnings += (f"{place.path}.{warning}" for warning in judged.warnings)
    return Outcome((), tuple(warnings), tuple(refusals))


def mutate_volcano_job(job: Any, settings: Settings, chips: ChipTable) -> Outcome:
    """Count and memory in the tasks of a Volcano Job, from which Volcano sizes the gang before there is a pod.

    The rest is written into each pod. What is wrong with a task is left to :func:`validate_workload`.
    """
    if not isinstance(job, dict) or not is_volcano_job(job):
        return NOTHING
    sets: list[Set] = []
    warnings: list[str] = []
    for place in places(job):
        for completed in _numbers(place.template, settings, chips):
            added = resource_sets(completed, _GANG_KINDS)
            sets += (Set((*place.keys, *assignment.path), assignment.value) for assignment in added)
            warnings += (f"{place.path}.{warning}" for warning in completed.warnings)
    return Outcome(tuple(sets), tuple(warnings))


def _numbers(template: Mapping[str, Any], settings: Settings, chips: ChipTable) -> Iterator[request.Completed]:
    """The containers of a template whose numbers can be completed."""
    for member in read(template, chips, settings.default_mode).members:
        if member.wanted is not None:
            with contextlib.suppress(FieldError):
                yield request.complete(member.wanted)


def _judge(document: Any, settings: Settings, chips: ChipTable) -> _Judgement:
    if not isinstance(document, dict):
        return _Judgement()
    pod = read(document, chips, settings.default_mode)
    refusals: list[FieldError] = list(guard.forged(pod.annotations, chips))
    if pod.mode_fault is not None:
        refusals.append(pod.mode_fault)
    foreign, warnings = check.foreign_resources(pod, settings, chips)
    if not pod.is_npu:
        return _Judgement(warnings=tuple(warnings), refusals=(*refusals, *foreign))
    completion = complete_pod(pod, settings)
    refusals += (*pod.faults, *foreign, *completion.faults, *check.npu_pod(pod, completion, settings))
    warnings += (*completion.warnings, *check.surprises(pod, completion, settings))
    return _Judgement(completion.needed, completion.placing, tuple(warnings), tuple(refusals))


def _unmutated(pod: Any, needed: tuple[Set, ...]) -> FieldError:
    """The second line: what the mutating webhook would have written first."""
    steps, found = needed[0].path, pod
    for step in steps:
        try:
            found = found[step]
        except (KeyError, TypeError):
            found = ABSENT
    more = f" (and {len(needed) - 1} more)" if len(needed) > 1 else ""
    return RequestError(
        path_of(step for step in steps if step != APPEND),
        found,
        f"completing the pod would change this field{more}: it asks for an NPU, but the mutating webhook was skipped, "
        "or another one changed the pod after it. Create it again; if that does not help, an administrator must see "
        "that the MutatingWebhookConfiguration is there and comes last",
    )
