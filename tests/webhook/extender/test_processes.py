"""Real processes, real sockets: two extenders against the stand-in of the API server, which breaks things."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.support import extender_process, objects
from tests.support.api_stand_in import ApiStandIn, Fault
from tests.support.background import repeating
from vnpu import ledger, names
from vnpu.chips import DEFAULT_CHIPS
from vnpu.kube import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.extender_process import Extender

pytestmark = pytest.mark.timeout(180)
NODE_NAMES = ("n0", "n1", "n2")
CARDS = 2
HALVES = len(NODE_NAMES) * CARDS * 2
DEADLINE_S = 100


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiStandIn]:
    with ApiStandIn() as made:
        for name in NODE_NAMES:
            made.put(
                NODES, objects.node(*(objects.card(f"{name}-{index}", index) for index in range(CARDS)), name=name)
            )
        made.kubeconfig(tmp_path)
        yield made


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    settings = tmp_path / "settings.yaml"
    settings.write_text("devicePlugin: vnpu\n")
    return ["--config", str(settings)]


def put_pod(api: ApiStandIn, name: str, memory: int = 30000, core: int = 45) -> Any:
    container = objects.container("app", count=1, memory=memory, core=core)
    return api.put(PODS, objects.pod(container, name=name, node="", phase="Pending"))


@contextmanager
def device_plugin(api: ApiStandIn) -> Iterator[None]:
    def serve() -> None:
        for pod in api.objects(PODS):
            annotations = pod["metadata"]["annotations"]
            if annotations.get(names.BIND_PHASE) == names.BIND_PHASE_ALLOCATING:
                annotations = annotations | {names.BIND_PHASE: names.BIND_PHASE_SUCCESS}
                api.put(PODS, pod | {"metadata": pod["metadata"] | {"annotations": annotations}})

    with repeating(serve, 0.02):
        yield


def books(api: ApiStandIn) -> ledger.Ledger:
    nodes = [ledger.read_node(node, DEFAULT_CHIPS)[0] for node in api.objects(NODES)]
    return ledger.book(nodes, api.objects(PODS), DEFAULT_CHIPS)


def check(api: ApiStandIn) -> None:
    found = books(api)
    assert not found.warnings
    assert [node.unsafe for node in found.nodes] == [""] * len(NODE_NAMES)
    for use in found.used.values():
        assert use.memory_mib <= 65536
        assert use.core_percent <= 100


def unbound(api: ApiStandIn) -> list[Any]:
    return [pod for pod in api.objects(PODS) if not pod["spec"].get("nodeName")]


def schedule(api: ApiStandIn, extenders: list[Extender], chance: random.Random) -> None:
    """One turn of a scheduler that asks any of the extenders, and forgets what it asked when that one is gone."""
    waiting = unbound(api)
    if not waiting:
        return
    pod, extender = chance.choice(waiting), chance.choice(extenders)
    try:
        fits = extender.filter(pod, NODE_NAMES).get("nodenames") or ()
        if fits:
            extender.bind(pod, chance.choice(fits))
    except requests.ConnectionError:
        time.sleep(0.05)


def test_two_extenders_share_the_cards_while_one_is_killed_and_calls_get_lost(
    api: ApiStandIn, arguments: list[str], tmp_path: Path
) -> None:
    kubeconfig = str(tmp_path / "kubeconfig")
    chance = random.Random(7)
    for index in range(HALVES + 4):  # four more than there is room for
        put_pod(api, f"p{index}")
    with ExitStack() as stack:
        stack.enter_context(device_plugin(api))
        extenders = [stack.enter_context(extender_process.running(*arguments, kubeconfig=kubeconfig)) for _ in range(2)]
        for path in ("/binding", "leases"):
            api.fail(Fault("POST", path, cut="after", times=2))
            api.fail(Fault("POST", path, status=409, reason="Conflict"))
        deadline = time.monotonic() + DEADLINE_S
        restarted = False
        with ThreadPoolExecutor(4) as pool:
            while len(unbound(api)) > 4:
                assert time.monotonic() < deadline, [extender.log[-3:] for extender in extenders]
                seeds = [chance.random() for _ in range(4)]
                list(pool.map(lambda seed: schedule(api, extenders, random.Random(seed)), seeds))
                check(api)
                if not restarted and len(unbound(api)) <= HALVES // 2:
                    restarted = True
                    extenders[0].kill()
                    api.compact()
                    api.cut_watches()
                    extenders[0] = stack.enter_context(extender_process.running(*arguments, kubeconfig=kubeconfig))
        assert restarted
        left = unbound(api)[0]
        for extender in extenders:
            wait_settled(extender, deadline)
            refused = extender.filter(left, NODE_NAMES)["failedAndUnresolvableNodes"]
            assert sorted(refused) == list(NODE_NAMES)
    check(api)
    assert sum(use.memory_mib for use in books(api).used.values()) == 30000 * HALVES


def wait_settled(extender: Extender, deadline: float) -> None:
    """Until every share that was spoken for is shown by the watch."""
    while "vnpu_extender_assumed_shares 0.0" not in extender.get("/metrics").text:
        assert time.monotonic() < deadline, extender.log[-3:]
        time.sleep(0.1)


def test_a_share_whose_binding_was_never_answered_is_held_until_a_look_at_the_pod(
    api: ApiStandIn, arguments: list[str], tmp_path: Path
) -> None:
    with extender_process.running(*arguments, kubeconfig=str(tmp_path / "kubeconfig")) as extender:
        done, lost = put_pod(api, "done", 65536, 100), put_pod(api, "lost", 65536, 100)
        api.fail(Fault("POST", "/done/binding", cut="after"))
        assert extender.bind(done, "n0") == "", "it went through, and a look at the pod tells"
        api.fail(Fault("POST", "/lost/binding", cut="before"))
        assert "RemoteDisconnected" in extender.bind(lost, "n1"), "it did not, and its share is given back"
        assert extender.filter(lost, ["n1"])["nodenames"] == ["n1"]
        assert extender.bind(lost, "n1") == ""
    check(api)


def test_the_same_pod_bound_twice_is_bound_once(api: ApiStandIn, arguments: list[str], tmp_path: Path) -> None:
    kubeconfig = str(tmp_path / "kubeconfig")
    with (
        extender_process.running(*arguments, kubeconfig=kubeconfig) as one,
        extender_process.running(*arguments, kubeconfig=kubeconfig) as other,
        ThreadPoolExecutor(2) as pool,
    ):
        pod = put_pod(api, "p")
        answers = list(pool.map(lambda extender: extender.bind(pod, "n0"), (one, other)))
        assert answers.count("") >= 1
        assert all(answer == "" or "being bound" in answer for answer in answers), answers
    check(api)
    assert sum(use.slots for use in books(api).used.values()) == 1


def test_it_is_ready_only_once_it_knows_the_cluster(api: ApiStandIn, arguments: list[str], tmp_path: Path) -> None:
    release = threading.Event()
    api.fail(Fault("GET", "/api/v1/pods", act=lambda: release.wait(60), times=1))
    pod = put_pod(api, "p")

    def started(extender: Extender) -> None:
        assert extender.get("/healthz").status_code == 200
        assert extender.get("/readyz").status_code == 503
        assert "has just started" in extender.filter(pod, ["n0"])["error"]
        assert "has just started" in extender.bind(pod, "n0")
        release.set()

    kubeconfig = str(tmp_path / "kubeconfig")
    with extender_process.running(*arguments, kubeconfig=kubeconfig, before=started) as extender:
        assert extender.get("/readyz").status_code == 200
        assert extender.filter(pod, ["n0"])["nodenames"] == ["n0"]
