"""The extender at work: threads that follow the cluster, and calls that answer from what they learnt.

The one place where the state is locked. It is held while something is learnt or decided, never while a call is under
way.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import VnpuError
from vnpu.kube import Event, Follower, KubeError, Listing, Lost
from webhook.extender import verbs
from webhook.extender.api import perform
from webhook.extender.binding import REVIEW_S, Binder, BindError
from webhook.extender.calls import Wait
from webhook.extender.feed import Nodes, Pods, Turns
from webhook.extender.state import Stage, State
from webhook.logs import LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from vnpu.admission.settings import Settings
    from vnpu.chips import ChipTable
    from vnpu.fit.policy import Policy
    from vnpu.kube import Cluster
    from webhook.extender.binding import Order
    from webhook.extender.calls import Call
    from webhook.extender.feed import Feed
    from webhook.extender.metrics import Metrics

_BROKEN: Final = 70
"""Exit code of a process that cannot go on: whoever watches over it starts another, which learns everything anew."""
MOST_BINDS: Final = 48
"""At a time. Others than binds never wait, and the threads that are left are theirs."""
MOST_ON_A_NODE: Final = 12
"""Of these binds. A node whose device plugin is slow keeps none of the others waiting."""
_LOOK_S: Final = 5.0
"""How often it is looked whether a share has waited too long for a word from the watch."""


class _Clock:
    def seconds(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)


class Engine:
    """State, threads and verbs of one process."""

    def __init__(
        self, cluster: Cluster, settings: Settings, chips: ChipTable, policy: Policy, metrics: Metrics
    ) -> None:
        """Nothing is started yet.

        Args:
            cluster: the cluster.
            settings: what pods are completed by, and whose device plugin serves the nodes.
            chips: the chip table.
            policy: of pods whose annotations do not say.
            metrics: where what happens is counted.
        """
        self._metrics = metrics
        self._cluster = cluster
        self._settings = settings
        self._clock = _Clock()
        self._known = threading.Condition(threading.RLock())
        self.state = State(chips, policy)
        self._binder = Binder(self.state, settings, self._clock)
        nodes, turns, pods = Nodes(self.state), Turns(self.state), Pods(self.state)
        # Pods are listed last: what such a list does not show is over for the turns that were known before.
        self._feeds: dict[Feed, tuple[Feed, ...]] = {nodes: (), turns: (), pods: (nodes, turns)}
        self._synced: set[Feed] = set()
        self._binding: Counter[str] = Counter()
        metrics.gauge("nodes", "Nodes that are known.", lambda: len(self.state.nodes))
        metrics.gauge("npu_pods", "Pods that ask for NPUs or hold some.", lambda: len(self.state.pods))
        metrics.gauge(
            "assumed_shares", "Shares given away that no watch has shown yet.", lambda: len(self.state.assumed)
        )
        metrics.gauge("synced", "1 once the cluster was listed.", lambda: float(self.synced))

    def start(self) -> None:
        """Follow the cluster from now on, until the process ends."""
        for feed in self._feeds:
            self._thread(partial(self._follow, feed), f"follow {feed.resource.plural}")
        self._thread(self._review, "review")

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        return len(self._synced) == len(self._feeds)

    # ---- Verbs

    def filter_nodes(self, pod: Mapping[str, Any], names: Sequence[str]) -> verbs.Answer:
        """Which of these nodes hold the pod, and why the others do not."""
        with self._known:
            return verbs.filter_nodes(pod, names, self.state, self._settings, self._clock.now())

    def scores(self, pod: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
        """How much the policy of the pod speaks for each node."""
        with self._known:
            return verbs.scores(pod, names, self.state, self._settings)

    def bind(self, order: Order) -> None:
        """Bind a pod.

        Raises:
            BindError: it was not bound, or is not known to be.
        """
        with self._room(order.node):
            self._run(self._binder.bind(order))

    @contextmanager
    def _room(self, node: str) -> Iterator[None]:
        """Room for one bind more, on this node and at all."""
        with self._known:
            for number, most, where in (
                (self._binding[node], MOST_ON_A_NODE, f" to {node}"),
                (self._binding.total(), MOST_BINDS, ""),
            ):
                if number >= most:
                    raise BindError(
                        f"{most} pods are being bound{where}, and wait for their turn or for a device plugin"
                    )
            self._binding[node] += 1
        try:
            yield
        finally:
            with self._known:
                self._binding[node] -= 1
                self._binding += Counter()  # without nodes where nothing is bound

    def _run(self, steps: Generator[Call, Any, None]) -> None:
        """Do what is asked for, until nothing more is."""
        call = self._step(steps.send, None)
        while call is not None:
            if isinstance(call, Wait):
                with self._known:
                    self._known.wait(call.seconds)
                call = self._step(steps.send, None)
                continue
            try:
                answer = perform(call, self._cluster)
            except KubeError as error:
                call = self._step(steps.throw, error)
            else:
                call = self._step(steps.send, answer)

    def _step(self, go_on: Callable[[Any], Call], answer: Any) -> Call | None:
        with self._known:
            try:
                return go_on(answer)
            except StopIteration:
                return None
            finally:
                self._known.notify_all()

    # ---- Threads

    def _thread(self, work: Callable[[], None], name: str) -> None:
        def run() -> None:
            try:
                work()
            except BaseException:  # noqa: BLE001 - a process that follows the cluster no longer must not go on
                LOGGER.exception("thread ended", extra={"fields": {"thread": name}})
                os._exit(_BROKEN)

        threading.Thread(target=run, name=name, daemon=True).start()

    def _follow(self, feed: Feed) -> None:
        kind = feed.resource.plural
        follower = Follower(
            lambda: self._listing(feed),
            lambda version: self._cluster.watch(
                feed.resource, version, namespace=feed.namespace, label_selector=feed.label
            ),
        )
        for news in follower:
            if isinstance(news, Lost):
                self._metrics.lost(kind)
                LOGGER.warning("cannot follow", extra={"fields": {"kind": kind, "error": str(news.error)}})
                continue
            with self._known:
                if isinstance(news, Event):
                    feed.event(news)
                else:
                    feed.replace(news.items)
                    self._synced.add(feed)
                    LOGGER.info("listed", extra={"fields": {"kind": kind, "kept": len(news.items)}})
                self._known.notify_all()
            if isinstance(news, Listing):
                set_apart()

    def _listing(self, feed: Feed) -> Listing:
        """A list, page by page, of which only what matters is kept."""
        with self._known:
            self._known.wait_for(lambda: self._synced.issuperset(self._feeds[feed]))
            feed.begin()
        kept: list[Any] = []
        version = ""
        for page in self._cluster.pages(feed.resource, feed.namespace, label_selector=feed.label):
            kept += [reduced for reduced in map(feed.reduce, page.items) if reduced is not None]
            version = page.resource_version
        return Listing(kept, version)

    def _review(self) -> None:
        """Look after shares of which no watch has said a word for long, and after turns on nodes that are gone."""
        while True:
            time.sleep(_LOOK_S)
            with self._known:
                before = self._clock.seconds() - REVIEW_S
                late = [
                    uid for uid, one in self.state.assumed.items() if one.stage is Stage.HELD and one.since < before
                ]
                strays = self.state.strays() if self.synced else ()
            for uid in late:
                try:
                    self._run(self._binder.review(uid))
                except VnpuError as error:
                    LOGGER.warning("cannot look after a share", extra={"fields": {"uid": uid, "error": str(error)}})
            for node in strays:
                try:
                    self._run(self._binder.sweep(node))
                except VnpuError as error:
                    LOGGER.warning("cannot remove a turn", extra={"fields": {"node": node, "error": str(error)}})


def set_apart() -> None:
    """Let the garbage collector pass over what a list left for long: it would stop a filter for a tenth of a second."""
    gc.collect()
    gc.freeze()
