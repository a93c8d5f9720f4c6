"""``kubectl vnpu explain``: why a pod is pending, from what it asks for to the last card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from vnpu import ledger, names
from vnpu.admission.guard import records_allocation
from vnpu.admission.rules import mutate_pod
from vnpu.annotations import lock
from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.errors import AnnotationError, FieldError, did_you_mean, few, path_of, shown
from vnpu.fit.admit import admit
from vnpu.fit.answers import Reason, Unplaced
from vnpu.fit.messages import asked_for
from vnpu.fit.report import Planner
from vnpu.fit.table import Column, Section, explained
from vnpu.fit.terms import Terms, close
from webhook.doctor.case import content
from webhook.doctor.programs import Role
from webhook.doctor.snapshot import UnseenError, dig, items, moment, span, unix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from vnpu.fit.admit import Batch
    from vnpu.fit.report import Report
    from vnpu.kube import Object
    from vnpu.ledger import Entry
    from webhook.doctor.programs import Program
    from webhook.kubectl.view import View

GROUP: Final = "scheduling.k8s.io/group-name"
"""Pod annotation: the PodGroup that Volcano places as a whole."""

_QUOTA: Final = ("exceeded quota", "exceeding resource quota")
_FAILED_CREATE: Final = "FailedCreate"
_CARDS: Final = "Card by card, beside what runs now"
_SAID: Final = 1024
"""Characters of an event that are repeated."""


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a pod on the cluster.

    Attributes:
        events: about the pod.
        group: its PodGroup, None where it has none or that is not there.
    """

    events: Sequence[Object]
    group: Object | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a pod is where it is.

    Attributes:
        facts: sentences about the pod.
        causes: what it waits for, the first thing first.
        cards: card by card, what speaks against it; None where that is not the question.
    """

    facts: tuple[str, ...]
    causes: tuple[str, ...]
    cards: Section | None = None

    @property
    def sections(self) -> list[Section]:
        """As tables."""
        told = [("Pod", self.facts), ("Why", self.causes)]
        found = [Section(title, (Column(""),), tuple((text,) for text in texts)) for title, texts in told if texts]
        return [*found, *([] if self.cards is None else [self.cards])]


def explain(pod: Object, view: View, around: Around) -> Explanation:
    """Why the pod is pending, or what it is if it is not."""
    now = view.case.snapshot.now
    plain = _as_made(pod, view)
    batch = _admitted(plain, view)
    facts = [*_asked(plain, batch, view), *_said(around.events, now)]
    phase, node = dig(pod, "status", "phase"), dig(pod, "spec", "nodeName")
    if phase != "Pending" or node:
        entry = ledger.entry(pod, view.chips)
        held = [f"on node {entry.where} it holds {few(sorted(entry.uuids))}"] if entry.uuids else []
        ended = [f"it is not pending: it is {phase}"]
        return Explanation((*facts, *held), tuple(_bound(pod, str(node), entry, now) if phase == "Pending" else ended))
    asks = isinstance(batch, str) or any(isinstance(one, Unplaced) or one.asks for one in batch.pods)
    causes = [*_gates(pod), *_scheduler(pod, view, asks=asks), *_gang(pod, around.group)]
    if isinstance(batch, str):
        return Explanation(tuple(facts), (*causes, batch))
    if not asks:
        none = "it asks for no NPU of the device config: cards are not what it waits for"
        return Explanation(tuple(facts), (*causes, none))
    refused = [one.message for one in batch.pods if isinstance(one, Unplaced)]
    if refused:
        causes += [f"admission would refuse it as it is now: {message}" for message in refused]
        return Explanation(tuple(facts), tuple(causes))
    report = _planned(pod, batch, view)
    causes += _room(report, view, now)
    (found,) = report.explanations
    others = [
        name for name, cards in found.verdicts.items() if all(one.reason is Reason.CARD_TYPE_MISMATCH for one in cards)
    ]
    verdicts = {name: cards for name, cards in found.verdicts.items() if name not in others}
    if others and verdicts:
        facts.append(f"nodes without such cards: {len(others)}")
    cards = replace(explained(replace(found, verdicts=verdicts or found.verdicts)), title=_CARDS)
    return Explanation(tuple(facts), tuple(causes), cards if found.verdicts else None)


def absent(name: str, events: Sequence[Object]) -> str:
    """Why a pod that somebody asks about is not there, as events of controllers tell it; ``""`` where none does."""
    told = [
        event
        for event in events
        if event.get("reason") == _FAILED_CREATE and _same_family(name, str(dig(event, "involvedObject", "name")))
    ]
    if not told:
        return ""
    last = max(told, key=_when)
    owner = f"{dig(last, 'involvedObject', 'kind')} {dig(last, 'involvedObject', 'name')}"
    message = str(last.get("message"))[:_SAID]
    cause = (
        "the namespace's ResourceQuota is used up" if any(mark in message for mark in _QUOTA) else "it cannot be made"
    )
    return f"{cause}: {owner} says: {message}"


def near(name: str, pods: Sequence[Object]) -> str:
    """The end of a message about a pod that is not there: those of whose names it is the beginning, or the nearest."""
    known = sorted(pod["metadata"]["name"] for pod in pods)
    longer = [one for one in known if one.startswith(name)]
    return f"; there are {few(longer)}" if longer else did_you_mean(name, known)


def _same_family(name: str, owner: str) -> bool:
    return bool(owner) and (name.startswith(owner) or owner.startswith(name))


def _as_made(pod: Object, view: View) -> Object:
    """The pod without what schedulers wrote."""
    annotations = dig(pod, "metadata", "annotations") or {}
    own = {name: value for name, value in annotations.items() if not records_allocation(name, view.chips)}
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": own}, "spec": spec}


def _admitted(pod: Object, view: View) -> Batch | str:
    """The pod as admission judges it today, or why it cannot be judged."""
    try:
        return admit(pod, (pod["metadata"]["name"],), view.settings, view.chips)
    except FieldError as error:
        return f"it cannot be judged: {error}"


def _asked(pod: Object, batch: Batch | str, view: View) -> Iterator[str]:
    """What it asks for, and what admission says of it."""
    asking = [] if isinstance(batch, str) else [one for one in batch.requests if one.asks]
    for one in asking:
        yield asked_for(one)
        missing = [path_of(found.path) for found in mutate_pod(pod, view.settings, view.chips).sets]
        if missing:
            yield f"admission did not complete it: {few(missing)} would be written; its slices may have no limits"
        else:
            yield "admission has nothing to add and nothing to object"
    if not isinstance(batch, str):
        yield from batch.warnings
    name = dig(pod, "spec", "schedulerName") or names.SCHEDULER_DEFAULT
    yield f"its scheduler is {name}"


def _said(events: Sequence[Object], now: datetime) -> Iterator[str]:
    """The last word of each who spoke about it."""
    last: dict[str, Object] = {}
    for event in sorted(events, key=_when):
        if event.get("type") == "Warning":
            last[str(event.get("reason"))] = event
    for reason, event in last.items():
        when = _time(event)
        ago = f", {span(now - when)} ago" if when is not None else ""
        yield f"{reason}{ago}: {str(event.get('message'))[:_SAID]}"


def _bound(pod: Object, node: str, entry: Entry, now: datetime) -> Iterator[str]:
    """What a pod waits for on its node."""
    annotations = dig(pod, "metadata", "annotations") or {}
    phase = annotations.get(names.BIND_PHASE)
    if phase == names.BIND_PHASE_ALLOCATING:
        since = unix(annotations.get(names.BIND_TIME))
        ago = f" for {span(now - since)}" if since is not None else ""
        yield (
            f"it is bound to {node} and has waited{ago} for the node's device plugin: look whether one runs there "
            "(kubectl vnpu doctor)"
        )
    elif phase == names.BIND_PHASE_FAILED:
        yield f"the device plugin of {node} gave it nothing: delete it, so that its controller makes another"
    elif entry.fault:
        yield (
            f"it is bound to {node}, and which cards it holds cannot be told, so that no device plugin serves it: "
            f"{entry.fault.partition(': ')[2]}; delete it, and let a scheduler that books NPUs place it"
        )
    else:
        yield f"it is bound to {node}; cards are not what it waits for"
    statuses = (*items(dig(pod, "status", "initContainerStatuses")), *items(dig(pod, "status", "containerStatuses")))
    for status in statuses:
        waiting = dig(status, "state", "waiting")
        if waiting is not None:
            text = ": ".join(filter(None, (str(waiting.get("reason") or "waiting"), waiting.get("message") or "")))
            yield f"container {status.get('name')}: {text}"


def _gates(pod: Object) -> Iterator[str]:
    gates = [str(gate.get("name")) for gate in items(dig(pod, "spec", "schedulingGates"))]
    if gates:
        yield f"scheduling gates keep it from every scheduler: {few(gates)}"


def _scheduler(pod: Object, view: View, *, asks: bool) -> Iterator[str]:
    """Whether there is somebody to place it, and who can place what asks for an NPU."""
    name = str(dig(pod, "spec", "schedulerName") or names.SCHEDULER_DEFAULT)
    if asks and name not in view.settings.accepted_schedulers:
        yield (
            f"its scheduler {shown(name)} is none that books NPUs, as far as the settings know; admission writes "
            f"{shown(view.settings.scheduler_name)} into pods that leave the choice open"
        )
    if name == names.SCHEDULER_DEFAULT:
        return
    try:
        serving = [program for program in view.case.programs if name in _served(program, view)]
    except UnseenError as error:
        yield f"whether its scheduler is there could not be looked at: {error.why}"
        return
    if not serving:
        yield f"no Deployment is known that schedules for {shown(name)}: it waits until there is one"
    elif not any(dig(program.owner, "status", "readyReplicas") for program in serving):
        yield f"its scheduler is not ready: {few([program.label for program in serving])}"


def _served(program: Program, view: View) -> list[str]:
    """The scheduler names that a program listens to."""
    match program.role:
        case Role.VOLCANO:
            return list((program.option("scheduler-name") or names.SCHEDULER_VOLCANO).split(","))
        case Role.HAMI:
            return [program.option("scheduler-name") or names.SCHEDULER_HAMI]
        case Role.SCHEDULER:
            try:
                found = content(
                    view.case.own_config_map(names.SCHEDULER_CONFIGURATION_KEY), names.SCHEDULER_CONFIGURATION_KEY
                )
            except (FieldError, UnseenError):
                return [view.settings.scheduler_name]
            return [str(profile.get("schedulerName")) for profile in items(dig(found, "profiles"))]
    return []


def _gang(pod: Object, group: Object | None) -> Iterator[str]:
    name = (dig(pod, "metadata", "annotations") or {}).get(GROUP)
    if name is None:
        return
    if group is None:
        yield f"its PodGroup {name} is not there: Volcano waits for it"
        return
    phase, least = dig(group, "status", "phase") or "not looked at yet", dig(group, "spec", "minMember")
    if phase != "Running":
        last = [str(one.get("message")) for one in items(dig(group, "status", "conditions")) if one.get("message")]
        told = f": {last[-1][:_SAID]}" if last else ""
        yield f"it waits for its gang: PodGroup {name} is {phase} and places {least} pods at a time, or none{told}"


def _planned(pod: Object, batch: Batch, view: View) -> Report:
    """The pod on the cluster without itself."""
    terms = [one.terms for one in batch.requests if isinstance(one.terms, Terms)]
    books = view.without(pod)
    books = replace(books, nodes=close(books.nodes, view.nodes.surroundings, terms))
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return Planner(books, [batch], NodePolicy.BINPACK, CardPolicy.SPREAD).report(explained=name)


def _room(report: Report, view: View, now: datetime) -> Iterator[str]:
    yield from (one.message for one in report.plan.unplaced)
    documents = {node["metadata"]["name"]: node for node in view.case.snapshot.nodes}
    for placement in report.plan.placements:
        cards = [share.card.uuid for container in placement.containers for share in container.cards]
        yield (
            f"no card hinders it: it fits on node {placement.node} ({few(list(dict.fromkeys(cards)))}), as far as "
            "cards, taints and labels go; all else is in its scheduler's word"
        )
        yield from _locked(placement.node, documents[placement.node], now)


def _locked(name: str, node: Mapping[str, Any], now: datetime) -> Iterator[str]:
    value = (dig(node, "metadata", "annotations") or {}).get(names.NODE_LOCK)
    if value is None:
        return
    try:
        found = lock.decode(value, names.NODE_LOCK)
    except AnnotationError as error:
        yield f"node {name} is locked, and nobody can tell by whom: {error}"
        return
    if not found.expired(now):
        owner = f"pod {found.namespace}/{found.pod}" if found.pod else "another pod"
        yield f"node {name} is locked for {owner} since {span(now - found.time)}: one pod at a time goes there"


def _when(event: Object) -> float:
    found = _time(event)
    return found.timestamp() if found is not None else 0.0


def _time(event: Object) -> datetime | None:
    for steps in (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",), ("firstTimestamp",)):
        found = moment(dig(event, *steps))
        if found is not None:
            return found
    return None
