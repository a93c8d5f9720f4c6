"""A small cluster in which everything that can go wrong does, one step at a time.

The API server is the stand-in's store, without HTTP. Several extenders bind; each of their calls arrives, and is
answered, at a moment of its own, or is lost before or after it was carried out, or is carried out long after its
caller gave up. Watches lag and break, processes end, pods are deleted, finish and are served, nodes come and go.
Whatever is written, :meth:`World.check` adds up what the annotations of all pods say.
"""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support import objects
from tests.support.api_store import Refused, Store, Target
from tests.support.extender_calls import MERGE, Time, carried_out, lease_of
from tests.support.extender_replica import Extender, Flow
from vnpu import names
from vnpu.admission.settings import DevicePlugin, Settings
from vnpu.annotations import lock as locks
from vnpu.kube import LEASES, NODES, PODS, Conflict, KubeError, NotFound, Unreachable
from webhook.extender import verbs
from webhook.extender.binding import Order
from webhook.extender.calls import Call, GetNode, GetPod, GetTurn, ListPods, Wait

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

CARD_MIB = 65536
SHAPES = ((8192, 20), (30000, 45), (65536, 100), (16384, 0), (40000, 60))
_ERRORS = {404: NotFound, 409: Conflict}


@dataclass
class World:
    """The cluster, its extenders, and chance."""

    chance: random.Random
    plugin: DevicePlugin = DevicePlugin.VNPU
    faults: bool = True
    store: Store = field(default_factory=Store)
    time: Time = field(default_factory=Time)
    counts: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    late: list[Call] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.settings = Settings(device_plugin=self.plugin)
        for name in ("n0", "n1"):
            self.make_node(name)
        self.extenders = [Extender(self), Extender(self)]

    # ---- What there is

    def objects(self, resource: Any) -> list[Any]:
        return self.store.select(Target(resource))

    def make_node(self, name: str) -> None:
        cards = [objects.card(f"{name}-c{index}", index, count=4) for index in range(2)]
        self.store.create(Target(NODES), objects.node(*cards, name=name))

    def make_pod(self) -> None:
        self.made += 1
        containers = [
            objects.container(f"c{index}", count=1, memory=memory, **({"core": core} if core else {}))
            for index, (memory, core) in enumerate(self.chance.choices(SHAPES, k=self.chance.choice((1, 1, 1, 2))))
        ]
        pod = objects.pod(*containers, name=f"p{self.made}", node="", phase="Pending")
        if self.chance.random() < 0.2:
            pod["metadata"]["finalizers"] = ["test/hold"]
        self.store.create(Target(PODS, "team"), pod)

    def update(self, resource: Any, one: Any, change: Any, subresource: str = "") -> None:
        metadata = one["metadata"]
        target = Target(resource, metadata.get("namespace"), metadata["name"], subresource)
        with suppress(Refused):
            self.store.patch(target, change, MERGE)

    # ---- Calls

    def carry_out(self, call: Call) -> Any:
        """What the API server does with a call; gives its answer, an exception where it refuses."""
        try:
            answer = copy.deepcopy(carried_out(self.store, call))
        except Refused as refused:
            kind = _ERRORS.get(refused.status, KubeError)
            return kind(refused.status, refused.reason, refused.message)
        self.counts[type(call).__name__] += 1
        self.check()
        return answer

    # ---- Steps

    def step(self) -> None:
        """One thing happens."""
        chance = self.chance
        self.time.passed += chance.choice((0, 0, 0, 0.01, 0.1))
        extender = chance.choice(self.extenders)
        deeds: list[tuple[float, Callable[[], None]]] = [
            (60, lambda: self._flow(extender)),
            (30, lambda: extender.look(chance.randrange(3), chance.randint(1, 5))),
            (12, lambda: self._schedule(extender)),
            (5, self._pod_comes),
            (10, self._serve),
            (4, self._pod_goes),
            (2, self._touch),
            (2, lambda: self._review(extender)),
            (1, lambda: self._sweep(extender)),
            (3, self._late_arrives),
        ]
        if self.faults:
            deeds += [
                (0.5, lambda: extender.lose_watch(chance.randrange(3))),
                (0.4, extender.start),
                (0.3, self._node_changes),
                (0.1, lambda: self._pass(400.0)),
                (0.2, self._turn_goes),
            ]
        chance.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()

    def _pass(self, seconds: float) -> None:
        self.time.passed += seconds

    def _flow(self, extender: Extender) -> None:
        if extender.flows:
            self.advance(extender, self.chance.choice(extender.flows))

    def advance(self, extender: Extender, flow: Flow) -> None:
        """Let a call arrive, or its answer."""
        call = flow.call
        assert call is not None
        if isinstance(call, Wait):
            self.time.passed += min(call.seconds, 0.1)
            extender.answer(flow, None)
            return
        if flow.answer is not None:
            answer, flow.answer = flow.answer[0], None
            extender.answer(flow, answer)
            return
        luck = self.chance.random() if self.faults else 1.0
        lost = Unreachable("lost", sent=True)
        if luck < 0.01:
            extender.answer(flow, Unreachable("not sent", sent=False))
        elif luck < 0.04:  # carried out, never answered
            self.carry_out(call)
            extender.answer(flow, lost)
        elif luck < 0.08:  # carried out after its caller gave up, or never
            if not isinstance(call, GetPod | GetNode | GetTurn | ListPods):
                self.late.append(call)
            extender.answer(flow, lost)
        elif luck < 0.4:  # the answer takes its time
            flow.answer = (self.carry_out(call),)
        else:
            extender.answer(flow, self.carry_out(call))

    def _late_arrives(self) -> None:
        if self.late:
            self.carry_out(self.late.pop(self.chance.randrange(len(self.late))))

    def _schedule(self, extender: Extender) -> None:
        waiting = [pod for pod in self.objects(PODS) if not pod["spec"].get("nodeName")]
        if waiting and extender.synced and len(extender.flows) < 6:
            self.schedule(extender, self.chance.choice(waiting))

    def schedule(self, extender: Extender, pod: Any) -> bool:
        """What kube-scheduler does with one pod; whether it tried to bind it."""
        known = [node["metadata"]["name"] for node in self.objects(NODES)]
        answer = verbs.filter_nodes(pod, known, extender.state, self.settings, self.time.now())
        fits = list(answer.fits) if self.chance.random() < 0.9 or not self.faults else known
        if not fits:
            return False
        metadata = pod["metadata"]
        order = Order("team", metadata["name"], metadata["uid"], self.chance.choice(fits))
        extender.begin(extender.binder.bind(order), metadata["uid"])
        return True

    def _review(self, extender: Extender) -> None:
        held = sorted(set(extender.state.assumed) - {flow.uid for flow in extender.flows})
        if held:
            uid = self.chance.choice(held)
            extender.begin(extender.binder.review(uid), uid)

    def _sweep(self, extender: Extender) -> None:
        if extender.synced:
            for node in extender.state.strays():
                extender.begin(extender.binder.sweep(node), "")

    def _pod_comes(self) -> None:
        if sum(not pod["spec"].get("nodeName") for pod in self.objects(PODS)) < 6:
            self.make_pod()

    def _pod_goes(self) -> None:
        pods = self.objects(PODS)
        if pods:
            pod = self.chance.choice(pods)
            self.chance.choice((self.finish, self.delete))(pod)

    def finish(self, pod: Any) -> None:
        if pod["spec"].get("nodeName"):
            self.update(PODS, pod, {"status": {"phase": "Succeeded"}}, "status")

    def delete(self, pod: Any) -> None:
        metadata = pod["metadata"]
        target = Target(PODS, metadata["namespace"], metadata["name"])
        if metadata.get("deletionTimestamp"):
            self.update(PODS, pod, {"metadata": {"finalizers": None}})
        else:
            self.store.delete(target, {})

    def _serve(self) -> None:
        pods = [pod for pod in self.objects(PODS) if unserved(pod)]
        if pods:
            self.serve(self.chance.choice(pods))

    def serve(self, pod: Any) -> None:
        """The device plugin serves a pod, and releases its lock."""
        self.update(PODS, pod, {"metadata": {"annotations": {names.BIND_PHASE: names.BIND_PHASE_SUCCESS}}})
        self.update(PODS, pod, {"status": {"phase": "Running"}}, "status")
        with suppress(Refused):
            node = self.store.get(Target(NODES, None, pod["spec"]["nodeName"]))
            text = node["metadata"]["annotations"].get(names.NODE_LOCK)
            if text and locks.decode(text).pod == pod["metadata"]["name"]:
                self.update(NODES, node, {"metadata": {"annotations": {names.NODE_LOCK: None}}})

    def _touch(self) -> None:
        present = self.objects(PODS) + self.objects(NODES)
        for one in self.chance.sample(present, min(1, len(present))):
            change = {"metadata": {"annotations": {"touched": str(self.chance.random())}}}
            self.update(PODS if one["kind"] == "Pod" else NODES, one, change)

    def _node_changes(self) -> None:
        nodes = {node["metadata"]["name"] for node in self.objects(NODES)}
        name = self.chance.choice(("n0", "n1"))
        if name in nodes:
            self.store.delete(Target(NODES, None, name), {})
        else:
            self.make_node(name)

    def _turn_goes(self) -> None:
        """Somebody deletes a Lease, of a turn that is over."""
        for lease in self.objects(LEASES):
            _, uid, _, name, _ = lease["spec"]["holderIdentity"].split(",")
            pod = self.store.objects.get((PODS, "team", name))
            if pod is not None and pod["metadata"]["uid"] == uid and pod["spec"].get("nodeName"):
                node = lease["metadata"]["name"].removeprefix(names.TURN_LEASE_PREFIX)
                if all(
                    extender.state.turn(node).version == lease["metadata"]["resourceVersion"]
                    for extender in self.extenders
                ):
                    self.store.delete(lease_of(node), {})
                    return

    # ---- What holds

    def check(self) -> None:
        """No card is given away twice, and a pod is bound and annotated, or neither."""
        held: dict[str, list[tuple[int, int]]] = {}
        for pod in self.objects(PODS):
            text = pod["metadata"]["annotations"].get(names.allocated(objects.CHIP), "")
            assert bool(text) == bool(pod["spec"].get("nodeName")), "bound and annotated, or neither"
            if pod["status"]["phase"] in {"Succeeded", "Failed"}:
                continue
            cards = [card.split(",") for slot in text.split(";") for card in slot.split(":") if card]
            for uuid, _, memory, core in cards:
                held.setdefault(uuid, []).append((int(memory), int(core)))
            if text:
                assert len(cards) == len(pod["spec"]["containers"]), "every container has its card"
                assert all(card[0].startswith(pod["spec"]["nodeName"]) for card in cards)
        for uuid, shares in held.items():
            assert sum(memory for memory, _ in shares) <= CARD_MIB, (uuid, shares)
            assert sum(core for _, core in shares) <= 100, (uuid, shares)
            assert len(shares) <= 4, (uuid, shares)
            assert len(shares) == 1 or all(core != 100 for _, core in shares), (uuid, shares)

    # ---- The end

    def calm(self) -> None:
        """Nothing goes wrong any more: everything on its way arrives, and everything is told."""
        self.faults = False
        for name in ("n0", "n1"):
            if not any(node["metadata"]["name"] == name for node in self.objects(NODES)):
                self.make_node(name)
        while self.late:
            self._late_arrives()
        for _ in range(4):
            for extender in self.extenders:
                self.run(extender)
                self.catch_up(extender)
                self._pass(60)
                for uid in sorted(extender.state.assumed):
                    extender.begin(extender.binder.review(uid), uid)
                self.run(extender)
                self.catch_up(extender)

    def run(self, extender: Extender) -> None:
        turns = 0
        while extender.flows:
            turns += 1
            assert turns < 5000, [flow.call for flow in extender.flows]
            self.advance(extender, extender.flows[turns % len(extender.flows)])
            self.catch_up(extender)

    def catch_up(self, extender: Extender) -> None:
        for _ in range(2):
            for place in range(3):
                extender.look(place, 10**6)
                if extender.seen[place] is None:
                    extender.look(place)


def unserved(pod: Any) -> bool:
    phase = pod["metadata"]["annotations"].get(names.BIND_PHASE)
    return phase == names.BIND_PHASE_ALLOCATING and pod["status"]["phase"] == "Pending"
