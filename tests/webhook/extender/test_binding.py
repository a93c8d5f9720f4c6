"""One bind at a time, call by call: what is taken, what is given back, and who waits for whom."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support import objects
from tests.support.api_store import Target
from tests.support.extender_calls import MERGE
from tests.support.extender_world import World
from vnpu import names
from vnpu.admission.settings import DevicePlugin
from vnpu.annotations import lock as locks
from vnpu.kube import LEASES, NODES, PODS, Conflict, Forbidden, KubeError, Unreachable
from webhook.extender.binding import PATIENCE_S, BindError, Order
from webhook.extender.calls import Bind, Fence, GetPod, ListPods, LockNode, TakeTurn, Wait

Act = Callable[[Any], Any]
"""What happens instead of a call; gives its answer, an exception where it fails."""

LOST = Unreachable("lost", sent=True)


class Case:
    """A world without chance: one extender binds, another may have been before."""

    def __init__(self, plugin: DevicePlugin = DevicePlugin.VNPU) -> None:
        self.world = World(random.Random(0), plugin, faults=False)
        self.calls: list[Any] = []
        self.catch_up()

    def catch_up(self) -> None:
        for extender in self.world.extenders:
            self.world.catch_up(extender)

    def pod(self, name: str = "p", memory: int = 8192, core: int = 20, **marks: str) -> Order:
        container = objects.container("app", count=1, memory=memory, core=core)
        annotations = {getattr(names, mark): value for mark, value in marks.items()}
        document = objects.pod(container, name=name, node="", phase="Pending", annotations=annotations)
        made = self.world.store.create(Target(PODS, "team"), document)
        self.catch_up()
        return Order("team", name, made["metadata"]["uid"], "n0")

    def bind(self, order: Order, acts: dict[type, list[Act]] | None = None, *, by: int = 0) -> None:
        steps = self.world.extenders[by].binder.bind(order)
        self.run(steps, acts or {})

    def sweep(self, node: str, *, by: int = 0) -> None:
        self.run(self.world.extenders[by].binder.sweep(node), {})

    def run(self, steps: Any, acts: dict[type, list[Act]]) -> None:
        call = next(steps, None)
        while call is not None:
            self.calls.append(call)
            try:
                if isinstance(call, Wait):
                    self.world.time.passed += call.seconds
                    call = steps.send(None)
                    continue
                queue = acts.get(type(call))
                answer = queue.pop(0)(call) if queue else self.world.carry_out(call)
                call = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
            except StopIteration:
                return

    def stored(self, order: Order) -> Any:
        return self.world.store.objects[PODS, "team", order.name]

    def node(self) -> Any:
        return self.world.store.objects[NODES, "", "n0"]

    def annotate(self, **marks: str | None) -> None:
        keys = {"lock": names.NODE_LOCK}
        annotations = {keys[name]: value for name, value in marks.items()}
        self.world.store.patch(Target(NODES, None, "n0"), {"metadata": {"annotations": annotations}}, MERGE)
        self.catch_up()

    @property
    def lock(self) -> str | None:
        value: str | None = self.node()["metadata"]["annotations"].get(names.NODE_LOCK)
        return value

    def kinds(self) -> list[type]:
        return [type(call) for call in self.calls]

    def assumed(self) -> int:
        return len(self.world.extenders[0].state.assumed)


@pytest.fixture
def case() -> Case:
    return Case()


@pytest.fixture
def hami() -> Case:
    return Case(DevicePlugin.HAMI)


def carried_out_but(case: Case, error: KubeError) -> Act:
    def act(call: Any) -> Any:
        case.world.carry_out(call)
        return error

    return act


class TestBind:
    def test_two_writes_bind_a_pod_and_the_first_turn_on_a_node_reads_its_pods(self, case: Case) -> None:
        order = case.pod()
        case.bind(order)
        assert case.kinds() == [TakeTurn, ListPods, Bind]
        stored = case.stored(order)
        case.world.serve(stored)
        case.bind(case.pod("another"))
        assert case.kinds()[3:] == [TakeTurn, Bind]
        ticket = stored["metadata"]["annotations"][names.BIND_TICKET]
        assert stored["spec"]["nodeName"] == "n0"
        assert ticket.startswith(f"1,{order.uid},team,p,")
        lease = case.world.store.objects[LEASES, names.TURN_NAMESPACE, "vnpu-turn-n0"]
        assert lease["spec"]["holderIdentity"].startswith("2,")

    def test_a_pod_that_is_bound_as_asked_is_no_error(self, case: Case) -> None:
        order = case.pod()
        case.bind(order, by=1)
        case.bind(order)
        case.catch_up()
        case.bind(order)
        case.world.check()

    def test_a_pod_that_is_bound_elsewhere_gone_deleted_or_another_is_not_bound(self, case: Case) -> None:
        order = case.pod()
        case.bind(order)
        with pytest.raises(BindError, match="bound to n0"):
            case.bind(order._replace(node="n1"))
        with pytest.raises(BindError, match="gone"):
            case.bind(order._replace(name="nobody", uid="nobody"))
        with pytest.raises(BindError, match="gone"):
            case.bind(order._replace(uid="another"))

    def test_a_ticket_that_somebody_wrote_over_is_none(self, case: Case) -> None:
        order = case.pod()
        case.bind(order, by=1)
        case.world.update(PODS, case.stored(order), {"metadata": {"annotations": {names.BIND_TICKET: "mine"}}})
        case.bind(order)
        case.bind(order)
        assert case.assumed() == 1
        case.run(case.world.extenders[0].binder.review(order.uid), {})
        case.world.store.delete(Target(PODS, "team", order.name), {})
        case.run(case.world.extenders[0].binder.review(order.uid), {})
        assert not case.assumed()

    def test_what_does_not_fit_is_told_with_what_is_missing(self, case: Case) -> None:
        for index in range(2):
            case.bind(case.pod(f"whole{index}", 65536, 100))
            case.catch_up()
            case.world.serve(case.world.objects(PODS)[index])
            case.catch_up()
        with pytest.raises(BindError, match=r"CardInsufficientMemory.* 8192 MiB"):
            case.bind(case.pod())
        assert not case.assumed()

    def test_a_pod_that_is_changed_meanwhile_is_bound_in_another_turn(self, case: Case) -> None:
        order = case.pod()

        def touched(call: Any) -> Any:
            case.world.update(PODS, case.stored(order), {"metadata": {"labels": {"a": "b"}}})
            return case.world.carry_out(call)

        case.bind(order, {Bind: [touched]})
        assert case.kinds() == [TakeTurn, ListPods, Bind, GetPod, TakeTurn, Bind]
        assert case.stored(order)["spec"]["nodeName"] == "n0"

    def test_a_refused_binding_gives_everything_back(self, hami: Case) -> None:
        order = hami.pod()
        with pytest.raises(BindError, match="no right"):
            hami.bind(order, {Bind: [lambda _: Forbidden(403, "Forbidden", "no right")]})
        assert not hami.assumed()
        assert hami.lock is None
        hami.bind(order)


class TestUnknown:
    def test_a_binding_that_went_through_is_found_out(self, case: Case) -> None:
        order = case.pod()
        case.bind(order, {Bind: [carried_out_but(case, LOST)]})
        assert case.kinds() == [TakeTurn, ListPods, Bind, GetPod]

    def test_one_that_did_not_never_will(self, case: Case) -> None:
        order = case.pod()
        late: list[Any] = []
        with pytest.raises(BindError, match="lost"):
            case.bind(order, {Bind: [lambda call: late.append(call) or LOST]})
        assert case.kinds() == [TakeTurn, ListPods, Bind, GetPod, Fence]
        assert not case.assumed()
        assert isinstance(case.world.carry_out(late[0]), KubeError), "it comes too late"
        assert not case.stored(order)["spec"].get("nodeName")

    @pytest.mark.parametrize("through", [True, False])
    def test_where_nobody_answers_the_share_is_held_until_a_look_at_the_pod(self, case: Case, *, through: bool) -> None:
        order = case.pod("p", 65536, 100)
        away = [lambda _: LOST] * 200
        with pytest.raises(BindError, match="cannot be told"):
            case.bind(order, {Bind: [carried_out_but(case, LOST) if through else away[0]], GetPod: list(away)})
        state = case.world.extenders[0].state
        assert case.assumed() == 1
        assert state.index.held("n0-c0").slots == 1
        case.run(case.world.extenders[0].binder.review(order.uid), {})
        assert case.assumed() == int(through)
        case.catch_up()
        assert not case.assumed()
        assert state.index.held("n0-c0").slots == int(through)

    def test_a_turn_that_was_taken_but_not_answered_is_ours(self, case: Case) -> None:
        order = case.pod()
        case.bind(order, {TakeTurn: [carried_out_but(case, LOST)]})
        assert case.stored(order)["spec"]["nodeName"] == "n0"


class TestTwoExtenders:
    def test_the_second_knows_what_the_first_bound_though_its_watch_says_nothing(self, case: Case) -> None:
        first, second = case.pod("first", 65536, 100), case.pod("second", 65536, 100)
        case.bind(first)
        case.world.serve(case.stored(first))
        case.bind(second, by=1)
        case.world.check()
        assert case.stored(first)["spec"]["nodeName"] == case.stored(second)["spec"]["nodeName"] == "n0"

    def test_a_binding_that_is_still_on_its_way_is_stopped(self, case: Case) -> None:
        first, second = case.pod("first", 65536, 100), case.pod("second", 65536, 100)
        steps = case.world.extenders[0].binder.bind(first)
        steps.send(case.world.carry_out(next(steps)))
        on_its_way = steps.send([])
        assert isinstance(on_its_way, Bind)
        case.bind(second, by=1)
        assert isinstance(case.world.carry_out(on_its_way), KubeError)
        case.world.check()

    def test_a_lease_that_somebody_spoiled_stops_all_binding_there(self, case: Case) -> None:
        case.bind(case.pod("first"))
        lease = case.world.store.objects[LEASES, names.TURN_NAMESPACE, "vnpu-turn-n0"]
        case.world.update(LEASES, lease, {"spec": {"holderIdentity": "me"}})
        case.catch_up()
        with pytest.raises(BindError, match="holderIdentity"):
            case.bind(case.pod("second"))


class TestSweep:
    def test_the_lease_of_a_node_that_is_gone_is_removed_and_forgotten(self, case: Case) -> None:
        case.bind(case.pod())
        case.catch_up()
        state = case.world.extenders[0].state
        assert not state.strays()
        case.sweep("n0")
        assert self.leases(case)
        case.world.store.delete(Target(NODES, None, "n0"), {})
        case.catch_up()
        assert state.strays() == ["n0"]
        case.sweep("n0")
        assert not self.leases(case)
        assert not state.strays()

    def test_a_binding_on_its_way_to_a_node_that_is_gone_never_arrives(self, case: Case) -> None:
        first, second = case.pod("first", 65536, 100), case.pod("second", 65536, 100)
        steps = case.world.extenders[0].binder.bind(first)
        steps.send(case.world.carry_out(next(steps)))
        on_its_way = steps.send([])
        assert isinstance(on_its_way, Bind)
        case.world.store.delete(Target(NODES, None, "n0"), {})
        case.world.catch_up(case.world.extenders[1])
        case.sweep("n0", by=1)
        assert not self.leases(case)
        case.world.make_node("n0")
        case.world.catch_up(case.world.extenders[1])
        case.bind(second, by=1)
        assert isinstance(case.world.carry_out(on_its_way), KubeError)
        case.world.check()

    def test_whoever_makes_a_lease_knows_what_was_bound_under_the_one_before(self, case: Case) -> None:
        late = case.world.extenders[1]
        first, second = case.pod("first", 65536, 100), case.pod("second", 65536, 100)
        case.bind(first)
        case.world.serve(case.stored(first))
        case.world.store.delete(Target(LEASES, names.TURN_NAMESPACE, "vnpu-turn-n0"), {})
        late.lose_watch(1)
        late.look(1)
        late.look(1)
        assert late.state.turn("n0").ticket is None
        case.bind(second, by=1)
        case.world.check()

    def test_a_turn_that_is_taken_meanwhile_keeps_its_lease(self, case: Case) -> None:
        case.bind(case.pod())
        case.world.store.delete(Target(NODES, None, "n0"), {})
        case.catch_up()
        lease = self.leases(case)[0]
        case.world.update(LEASES, lease, {"spec": {"holderIdentity": "2,u,team,q,m"}})
        with pytest.raises(Conflict):
            case.sweep("n0")
        assert self.leases(case)

    @staticmethod
    def leases(case: Case) -> list[Any]:
        return case.world.objects(LEASES)


class TestDevicePlugin:
    def test_hamis_finds_its_pod_by_the_lock(self, hami: Case) -> None:
        hami.bind(hami.pod())
        assert hami.lock is not None
        lock = locks.decode(hami.lock)
        assert (lock.namespace, lock.pod) == ("team", "p")
        assert hami.kinds() == [TakeTurn, ListPods, LockNode, Bind]

    def test_the_next_pod_waits_until_the_lock_is_released(self, hami: Case) -> None:
        first, second = hami.pod("first"), hami.pod("second")
        hami.bind(first)
        hami.catch_up()
        with pytest.raises(BindError, match="locked for team/first"):
            hami.bind(second)
        assert not hami.assumed()
        hami.world.serve(hami.stored(first))
        hami.catch_up()
        hami.bind(second)

    @pytest.mark.parametrize(("age_s", "owner", "stolen"), [(10, "team,gone", True), (400, "", True), (10, "", False)])
    def test_a_lock_of_a_dead_owner_is_stolen(self, hami: Case, age_s: int, owner: str, *, stolen: bool) -> None:
        time = (hami.world.time.now() - timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        hami.annotate(lock=f"{time},{owner}" if owner else time)
        order = hami.pod()
        if stolen:
            hami.bind(order)
            assert hami.lock is not None
            assert locks.decode(hami.lock).pod == "p"
        else:
            with pytest.raises(BindError, match="is locked since"):
                hami.bind(order)

    def test_a_lock_that_cannot_be_read_is_held(self, hami: Case) -> None:
        hami.annotate(lock="yesterday")
        with pytest.raises(BindError, match="RFC 3339"):
            hami.bind(hami.pod())

    def test_ours_takes_pods_that_get_the_same_at_once(self, case: Case) -> None:
        for name in ("first", "second", "third"):
            case.bind(case.pod(name, 1024, 5, CARD_POLICY="binpack"))
        assert Wait not in case.kinds()
        assert case.lock is None

    def test_ours_waits_between_pods_that_differ_in_how_they_share_only(self, case: Case) -> None:
        case.bind(case.pod("first", 1024, 5, CARD_POLICY="binpack"))
        with pytest.raises(BindError, match="has yet to serve"):
            case.bind(case.pod("second", 1024, 5, CARD_POLICY="binpack", SHARE="ceiling"))

    def test_ours_gets_no_second_pod_that_it_could_take_for_the_first(self, case: Case) -> None:
        first, second = case.pod("first", 8192, 20), case.pod("second", 4096, 10)
        case.bind(first)
        began = case.world.time.passed
        with pytest.raises(BindError, match="has yet to serve team/first"):
            case.bind(second)
        assert case.world.time.passed - began >= PATIENCE_S
        case.world.serve(case.stored(first))
        case.catch_up()
        case.bind(second)

    def test_ours_is_left_no_stale_lock(self, case: Case) -> None:
        case.annotate(lock="2020-01-01T00:00:00Z,team,gone")
        case.bind(case.pod())
        assert case.lock is None
