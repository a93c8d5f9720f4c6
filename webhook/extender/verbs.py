"""Which nodes hold a pod, and which of them is best: what kube-scheduler asks before it binds. Nothing is changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu.admission.settings import DevicePlugin
from vnpu.annotations import lock as locks
from vnpu.errors import AnnotationError, FieldError
from vnpu.fit.answers import NodeRefusal, Reason
from webhook.extender.binding import request
from webhook.extender.pods import reduce

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from vnpu.admission.settings import Settings
    from vnpu.fit.misses import Tally
    from webhook.extender.state import State

HIGHEST_SCORE: Final = 10
"""kube-scheduler takes 0 to 10 from an extender."""

_SILENT: Final = timedelta(minutes=1)
"""After this time a device plugin that has not served a bound pod is not counted on."""

_UNKNOWN: Final = "the extender does not know the node yet"
_NO_ANSWER: Final = "the device plugin has not served a bound pod for more than a minute"


class Answer(NamedTuple):
    """What comes of a filter.

    Attributes:
        fits: names of the nodes that hold the pod, in the order asked.
        refused: what the pod's event says of each of the others. kube-scheduler counts equal texts, so they are equal
            where the reasons are; only the nearest node tells what is missing, and only where no node holds the pod.
    """

    fits: Sequence[str]
    refused: Mapping[str, str]


def filter_nodes(
    pod: Mapping[str, Any], names: Sequence[str], state: State, settings: Settings, now: datetime
) -> Answer:
    """Which of these nodes hold the pod.

    Args:
        pod: the Pod.
        names: of nodes that hold it as far as kube-scheduler knows.
        state: what is known.
        settings: what pods are completed by, and whose device plugin serves the nodes.
        now: with its zone.
    """
    index = state.index
    try:
        wanted = request(reduce(pod), state, settings)
        found = index.feasible(wanted, names)
    except FieldError as error:
        return Answer((), dict.fromkeys(names, str(error)))
    refused = dict.fromkeys(found.unknown, _UNKNOWN)
    texts: dict[str, str] = {}
    for name, tally in found.refused.items():
        text = texts.get(tally.text)
        if text is None:
            text = texts[tally.text] = grouped(tally)
        refused[name] = text
    silent = _silent(state, settings, now)
    fits = found.fits
    if silent:
        refused |= {name: _NO_ANSWER for name in fits if name in silent}
        fits = tuple(name for name in fits if name not in silent)
    if not fits and found.refused:
        nearest = min(found.refused, key=lambda name: found.refused[name].distance)
        refusal = index.on(wanted, nearest)
        assert isinstance(refusal, NodeRefusal), "it was refused a moment ago"
        refused[nearest] += f" (nearest: {refusal.message})"
    return Answer(fits, refused)


def scores(pod: Mapping[str, Any], names: Iterable[str], state: State, settings: Settings) -> dict[str, int]:
    """How much the policy of the pod speaks for each node, 0 to :data:`HIGHEST_SCORE`.

    The scale is that of the nodes asked about: the best gets the highest score and no other does that is not as good.
    """
    asked = tuple(names)
    try:
        found = state.index.scores(request(reduce(pod), state, settings), asked)
    except FieldError:
        found = {}
    lowest, highest = min(found.values(), default=0.0), max(found.values(), default=0.0)
    span = highest - lowest
    return {
        name: 0
        if name not in found
        else HIGHEST_SCORE
        if not span
        else int(HIGHEST_SCORE * (found[name] - lowest) / span)
        for name in asked
    }


def grouped(tally: Tally) -> str:
    """The reasons of a node without their counts, equal for all nodes that are refused for the same."""
    if Reason.NODE_INSUFFICIENT_DEVICE in tally.reasons:
        return Reason.NODE_INSUFFICIENT_DEVICE.value
    # Cards of other chips on the same node are no news.
    reasons = [reason.value for reason in tally.reasons if reason is not Reason.CARD_TYPE_MISMATCH]
    return " and ".join(reasons)


def _silent(state: State, settings: Settings, now: datetime) -> set[str]:
    """The nodes where a pod would wait for a device plugin that does not answer."""
    found = state.silent(int((now - _SILENT).timestamp()))
    if settings.device_plugin is DevicePlugin.HAMI:
        found = {name for name in found if name in state.nodes and _locked(state.nodes[name].lock, now)}
    return found


def _locked(text: str, now: datetime) -> bool:
    try:
        return bool(text) and not locks.decode(text).expired(now)
    except AnnotationError:
        return True
