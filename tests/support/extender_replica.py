"""One extender of :mod:`tests.support.extender_world`: its state, and what it is at, told step by step."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.api_store import Target, event_of
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import VnpuError
from vnpu.fit.policy import DEFAULT_POLICY
from vnpu.kube import PODS, Event, KubeError
from webhook.extender.binding import Binder, BindError
from webhook.extender.feed import Nodes, Pods, Turns
from webhook.extender.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.support.extender_world import World
    from webhook.extender.calls import Call


@dataclass
class Flow:
    """Something that yields calls, and how far it is.

    Attributes:
        steps: the generator.
        uid: the pod that it is about.
        call: what it waits for.
        since: when it began to wait.
        answer: what was answered and has not arrived yet.
    """

    steps: Generator[Call, Any, None]
    uid: str
    call: Call | None = None
    since: float = 0.0
    answer: Any = None


class Extender:
    """One process."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.start()

    def start(self) -> None:
        """A new process knows nothing; what the old one sent may still arrive."""
        self.state = State(DEFAULT_CHIPS, DEFAULT_POLICY)
        self.binder = Binder(self.state, self.world.settings, self.world.time)
        self.feeds = [Nodes(self.state), Turns(self.state), Pods(self.state)]
        self.seen: list[int | None] = [None] * len(self.feeds)
        self.lists: list[tuple[int, list[Any]] | None] = [None] * len(self.feeds)
        self.flows: list[Flow] = []

    @property
    def synced(self) -> bool:
        return None not in self.seen

    def look(self, place: int, most: int = 3) -> None:
        """Let the watch, or the list, of one kind go on by a step."""
        feed, seen, store = self.feeds[place], self.seen[place], self.world.store
        target = Target(feed.resource)
        if seen is None:
            pending = self.lists[place]
            if pending is None:
                # As the real ones do it: pods are listed after nodes and turns are known.
                if feed.resource is PODS and None in self.seen[:place]:
                    return
                feed.begin()
                listed = [feed.reduce(copy.deepcopy(one)) for one in store.select(target)]
                self.lists[place] = store.version, [one for one in listed if one is not None]
            else:
                self.lists[place] = None
                feed.replace(pending[1])
                self.seen[place] = pending[0]
            return
        for change in store.since(seen)[:most]:
            told = event_of(change, target, lambda _: True)
            self.seen[place] = change.version
            if told is not None:
                feed.event(Event(told[0], copy.deepcopy(told[1])))

    def lose_watch(self, place: int) -> None:
        """410: it has to list again."""
        self.seen[place] = None

    def begin(self, steps: Generator[Call, Any, None], uid: str) -> Flow:
        flow = Flow(steps, uid)
        self.flows.append(flow)
        self.go_on(flow, lambda: next(flow.steps))
        return flow

    def go_on(self, flow: Flow, step: Callable[[], Call]) -> None:
        flow.call = None
        try:
            flow.call, flow.since = step(), self.world.time.passed
        except StopIteration:
            self.flows.remove(flow)
            self.world.counts["done"] += 1
        except (BindError, KubeError, VnpuError) as error:
            self.flows.remove(flow)
            self.world.counts[type(error).__name__] += 1
            self.world.said.append(str(error))

    def answer(self, flow: Flow, answer: Any) -> None:
        if isinstance(answer, Exception):
            self.go_on(flow, lambda: flow.steps.throw(answer))
        else:
            self.go_on(flow, lambda: flow.steps.send(answer))
