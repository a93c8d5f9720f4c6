"""Allocate, with a real HTTP API server beside it: whose turn it is, what is booked, what becomes of a failure."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interceptor.device_plugin.kubelet import KubeletError
from interceptor.device_plugin.lookup import Shown
from tests.support.api_stand_in import Fault
from tests.support.device_plugin import B3, asking, device, inventory, waiting
from tests.support.objects import CHIP
from vnpu import kube, names
from vnpu.annotations import allocated

if TYPE_CHECKING:
    from tests.support.device_plugin import Bench

ONE = f"U0,{CHIP},8192,20:;"
OTHER = f"U1,{CHIP},4096,40:;"
TWO = f"U0,{CHIP},8192,20:;U1,{CHIP},4096,40:;"


def two_containers(name: str = "app") -> dict[str, object]:
    return waiting(name, TWO, asking("first", memory=8192, core=20), asking("second", memory=4096, core=40))


# ---- whose turn it is


def test_the_owner_of_the_node_lock_is_served_whatever_its_age(bench: Bench) -> None:
    bench.put(waiting("old", ONE), waiting("young", OTHER))
    bench.lock_of("young")
    assert bench.allocate().env[names.ENV_MEMORY] == "4096"
    assert (bench.phase("young"), bench.phase("old")) == ("success", None)
    assert bench.locked is None


def test_without_a_lock_the_only_pod_that_waits_for_so_many_cards_is_served(bench: Bench) -> None:
    both = waiting("two", f"U0,{CHIP},1024,0:U1,{CHIP},1024,0:;", asking(count=2, memory=1024))
    bench.put(waiting("one", ONE), both)
    assert bench.allocate(2).env[names.ENV_VISIBLE_DEVICES] == "0,1"
    assert bench.allocate(1).env[names.ENV_VISIBLE_DEVICES] == "0"
    assert (bench.phase("one"), bench.phase("two")) == ("success", "success")


@pytest.mark.parametrize("lock", ["", "2026-08-21T10:00:00Z", "2026-08-21T10:00:00Z,team,gone", "nonsense"])
def test_pods_with_different_shares_cannot_be_told_apart(bench: Bench, lock: str) -> None:
    bench.put(waiting("a", ONE), waiting("b", OTHER))
    if lock:
        bench.lock(lock)
    reason = bench.refused()
    assert "team/a, team/b" in reason
    assert "node lock names none" in reason
    assert (bench.phase("a"), bench.phase("b")) == (None, None)
    assert [event[:2] for event in bench.events()] == [("Pod", "a"), ("Pod", "b")]
    assert (bench.left("a"), bench.left("b")) == (ONE, OTHER)


def test_equal_pods_stand_for_each_other(bench: Bench) -> None:
    bench.put(waiting("a", ONE), waiting("b", ONE))
    assert bench.allocate().env == bench.allocate().env
    assert (bench.phase("a"), bench.phase("b")) == ("success", "success")
    assert "no pending pod" in bench.refused()


def test_pods_with_more_or_less_of_the_same_stand_for_each_other(bench: Bench) -> None:
    bench.put(waiting("a", ONE), waiting("b", f"{ONE}{ONE}", asking("first"), asking("second")))
    assert [bench.allocate().env[names.ENV_MEMORY] for _ in range(3)] == ["8192"] * 3
    assert (bench.phase("a"), bench.phase("b")) == ("success", "success")


def test_pods_whose_later_entries_differ_are_not_equal(bench: Bench) -> None:
    """kubelet asks for the rest of the same pod next, and would then get the rest of the other."""
    longer = waiting("b", f"{ONE}{OTHER}", asking("first"), asking("second"))
    bench.put(waiting("a", ONE), longer)
    assert "different shares" in bench.refused()


def test_pods_in_another_mode_or_with_another_ceiling_are_not_equal(bench: Bench) -> None:
    bench.put(waiting("a", ONE), waiting("b", ONE, annotations={names.SHARE: "ceiling"}))
    assert "different shares" in bench.refused()


def test_a_pod_that_kubelet_shows_as_served_does_not_wait(bench: Bench) -> None:
    bench.put(waiting("a", ONE), waiting("b", OTHER))
    bench.shown = frozenset({Shown("team", "a", "app", B3.resource_name)})
    assert bench.allocate().env[names.ENV_MEMORY] == "4096"


def test_another_resource_of_a_pod_that_kubelet_shows_says_nothing(bench: Bench) -> None:
    bench.put(waiting("a", ONE), waiting("b", OTHER))
    bench.shown = frozenset({Shown("team", "a", "app", "example.com/other")})
    assert "different shares" in bench.refused()


def test_annotations_decide_alone_while_kubelets_list_is_away(bench: Bench) -> None:
    def away() -> frozenset[Shown]:
        raise KubeletError("no socket")

    bench.put(waiting("a", ONE))
    bench.allocator._served = away
    assert bench.allocate().env[names.ENV_MEMORY] == "8192"


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_pods_that_are_not_pending_do_not_wait(bench: Bench, phase: str) -> None:
    bench.put(waiting("a", ONE, phase=phase))
    bench.lock_of("a")
    assert "no pending pod" in bench.refused()
    assert bench.events()[0][:2] == ("Node", "n1")
    assert bench.locked is not None


def test_pods_of_other_nodes_do_not_wait(bench: Bench) -> None:
    bench.put(waiting("a", ONE, node="n2"))
    bench.lock_of("a")
    assert "no pending pod" in bench.refused()


def test_a_lock_of_a_pod_that_has_all_it_gets_hides_nobody(bench: Bench) -> None:
    bench.put(waiting("done", ONE, left=";"), waiting("next", OTHER))
    bench.lock_of("done")
    assert bench.allocate().env[names.ENV_MEMORY] == "4096"
    assert bench.locked is not None


def test_a_waiting_pod_whose_share_nobody_told_makes_every_guess_unsafe(bench: Bench) -> None:
    untold = waiting("untold", ONE)
    for name in (names.allocated(CHIP), names.to_allocate(CHIP), names.runtime_info(CHIP)):
        untold["metadata"]["annotations"].pop(name, None)
    bench.put(waiting("a", ONE), untold)
    reason = bench.refused()
    assert "team/untold" in reason
    assert "no scheduler told" in reason
    bench.lock_of("a")
    assert bench.allocate().env[names.ENV_MEMORY] == "8192"


def test_a_pod_that_was_refused_is_not_waited_for_any_more(bench: Bench) -> None:
    """kubelet never asks for it again, and needs a moment until the API server says that it failed."""
    bench.put(waiting("bad", f"Unknown,{CHIP},8192,20:;"))
    assert "a card of this node is expected" in bench.refused()
    bench.put(waiting("good", OTHER))
    assert bench.allocate().env[names.ENV_MEMORY] == "4096"


# ---- what is booked


def test_containers_are_served_one_after_the_other_and_the_lock_goes_with_the_last(bench: Bench) -> None:
    bench.put(two_containers())
    bench.lock_of("app")
    first = bench.allocate()
    assert (first.env[names.ENV_MEMORY], first.env[names.ENV_PRIORITY], first.env[names.ENV_VISIBLE_DEVICES]) == (
        "8192",
        "20",
        "0",
    )
    assert (bench.left("app"), bench.phase("app")) == (f";U1,{CHIP},4096,40:;", None)
    assert bench.locked is not None
    second = bench.allocate()
    assert (second.env[names.ENV_MEMORY], second.env[names.ENV_VISIBLE_DEVICES]) == ("4096", "1")
    assert (bench.left("app"), bench.phase("app"), bench.locked) == (";;", "success", None)
    assert bench.annotations("app")[names.allocated(CHIP)] == TWO


def test_a_restart_between_two_containers_changes_nothing(bench: Bench) -> None:
    bench.put(two_containers())
    bench.lock_of("app")
    bench.allocate()
    bench.again()
    assert bench.allocate().env[names.ENV_MEMORY] == "4096"
    assert (bench.phase("app"), bench.locked) == ("success", None)


def test_several_containers_in_one_request_are_served_in_order(bench: Bench) -> None:
    bench.put(two_containers())
    responses = bench.allocator.allocate(B3, [1, 1])
    assert [response.env[names.ENV_MEMORY] for response in responses] == ["8192", "4096"]
    assert bench.phase("app") == "success"


def test_init_containers_have_their_own_entry(bench: Bench) -> None:
    pod = waiting("app", TWO, asking("main", memory=4096), init=(asking("prepare", memory=8192),))
    bench.put(pod)
    assert bench.allocate().env[names.ENV_MEMORY] == "8192"
    assert bench.allocate().env[names.ENV_MEMORY] == "4096"


def test_volcanos_text_has_slots_for_askers_only(bench: Bench) -> None:
    sidecar = {"name": "proxy", "resources": {}}
    bench.put(waiting("app", TWO, sidecar, asking("first"), sidecar | {"name": "log"}, asking("second")))
    assert [bench.allocate().env[names.ENV_MEMORY] for _ in range(2)] == ["8192", "4096"]
    assert bench.left("app") == ";;"


def test_a_pod_with_two_kinds_of_chips_keeps_the_lock_until_both_are_served(bench: Bench) -> None:
    other = "Ascend310P"
    bench.inventory = inventory(device(0), device(1, chip="310P3"))
    both = asking("app", memory=8192)
    both["resources"]["limits"] |= {f"huawei.com/{other}": "1"}
    text = f"U1,{other},3072,10:;"
    pod = waiting("app", ONE, both, annotations={names.allocated(other): text, names.to_allocate(other): text})
    bench.put(pod)
    bench.lock_of("app")
    bench.allocate()
    assert (bench.phase("app"), bench.locked is None) == (None, False)
    chip = next(chip for chip in bench.inventory.chips if chip.common_word == other)
    assert bench.allocate(chip=chip).env[names.ENV_MEMORY] == "3072"
    assert (bench.phase("app"), bench.locked) == ("success", None)


def test_a_lock_without_a_name_goes_with_the_last_container_too(bench: Bench) -> None:
    bench.put(two_containers())
    bench.lock("2026-08-21T10:00:00Z")
    bench.allocate()
    assert bench.locked is not None
    bench.allocate()
    assert bench.locked is None


def test_the_lock_of_somebody_else_stays(bench: Bench) -> None:
    bench.put(waiting("app", ONE))
    bench.lock_of("another")
    bench.allocate()
    assert bench.locked is not None
    assert bench.phase("app") == "success"


def test_a_lock_that_changed_hands_meanwhile_stays(bench: Bench) -> None:
    bench.put(waiting("app", ONE))
    bench.lock_of("app")
    bench.api.fail(Fault("PATCH", "/pods/app", act=lambda: bench.lock_of("another")))
    bench.allocate()
    assert bench.locked is not None
    assert bench.locked.endswith(",another")


# ---- files


def test_a_soft_container_has_its_files_on_the_host(bench: Bench) -> None:
    pod = waiting("app", ONE, annotations={names.SHARE: "ceiling"})
    bench.put(pod)
    old = os.umask(0o077)
    try:
        response = bench.allocate()
    finally:
        os.umask(old)
    quota = bench.tree.at(names.quota_host(bench.uid("app"), "app"))
    assert json.loads(quota.read_text()) == {"memory_mib": 8192, "priority": 20, "fixed_share_ratio": True}
    assert stat.S_IMODE(quota.stat().st_mode) == 0o444
    assert stat.S_IMODE(bench.tree.at(names.local_shm_host(bench.uid("app"), "app")).stat().st_mode) == 0o777
    assert stat.S_IMODE(bench.tree.at(names.SHARED_REGION_HOST).stat().st_mode) == 0o1777
    where = {mount.container_path: (mount.host_path, mount.read_only) for mount in response.mounts}
    assert where[names.QUOTA_FILE] == (names.quota_host(bench.uid("app"), "app"), True)
    assert not quota.is_relative_to(bench.tree.at(where[names.LOCAL_SHM_DIR][0]))


def test_the_ceiling_that_admission_wrote_into_the_environment_counts(bench: Bench) -> None:
    one = asking(memory=8192) | {"env": [{"name": names.ENV_CEILING, "value": "1"}]}
    bench.put(waiting("app", ONE, one))
    bench.allocate()
    assert json.loads(bench.tree.at(names.quota_host(bench.uid("app"), "app")).read_text())["fixed_share_ratio"] is True


def test_a_shared_region_that_is_missing_is_made(bench: Bench) -> None:
    bench.tree.at(names.SHARED_REGION_HOST).rmdir()
    bench.put(waiting("app", ONE))
    bench.allocate()
    assert stat.S_IMODE(bench.tree.at(names.SHARED_REGION_HOST).stat().st_mode) == 0o1777


def test_a_hard_container_leaves_no_files(bench: Bench) -> None:
    info = '[{"UUID":"U0","temp":"vir05_1c_16g"}]'
    bench.put(waiting("app", f"U0,{CHIP},16384,0:;", asking(memory=16384), mode="template", info=info))
    response = bench.allocate()
    assert response.env == {names.ENV_VISIBLE_DEVICES: "0", names.ENV_VNPU_SPECS: "vir05_1c_16g"}
    assert response.mounts == ()
    assert not bench.tree.at(names.QUOTAS_HOST).exists()


# ---- failures


def failed(bench: Bench, reason: str) -> None:
    """The pod is marked, the lock is off, an event says why."""
    assert bench.phase("app") == "failed"
    assert bench.locked is None
    ((kind, name, message),) = bench.events()
    assert (kind, name) == ("Pod", "app")
    assert reason in message


def test_a_card_that_cannot_be_used_is_given_to_nobody(bench: Bench) -> None:
    bench.put(waiting("app", ONE))
    bench.lock_of("app")
    bench.sicken("U0", "the driver reports a major alarm")
    assert "a major alarm" in bench.refused()
    failed(bench, "a major alarm")
    assert bench.left("app") == ONE


def test_a_soft_pod_on_a_node_that_refuses_them_hears_why(bench: Bench) -> None:
    bench.inventory = inventory(soft=False, refused="the driver is 24.1.0, and 25.5 or newer is needed")
    bench.put(waiting("app", ONE))
    bench.lock_of("app")
    assert "the driver is 24.1.0" in bench.refused()
    failed(bench, "the driver is 24.1.0")


def test_a_part_of_a_card_without_a_template_is_not_given_as_a_whole_card(bench: Bench) -> None:
    bench.put(waiting("app", f"U0,{CHIP},16384,0:;", asking(memory=16384), mode="template"))
    bench.lock_of("app")
    assert "needs a template" in bench.refused()
    failed(bench, "needs a template")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_host_is_a_reason_and_leaves_nothing_half_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    bench.put(waiting("app", ONE))
    bench.lock_of("app")
    with monkeypatch.context() as patched:

        def refuse(path: Path, *_: object, **__: object) -> None:
            path.touch()
            raise OSError(code, os.strerror(code), str(path))

        patched.setattr(Path, "write_text", refuse)
        assert os.strerror(code) in bench.refused()
    failed(bench, os.strerror(code))
    assert list(bench.tree.at(names.QUOTAS_HOST).iterdir()) == []
    assert bench.left("app") == ONE


def test_something_that_stands_in_the_way_on_the_host_is_named(bench: Bench) -> None:
    bench.tree.at(names.QUOTAS_HOST).write_text("")
    bench.put(waiting("app", ONE))
    bench.lock_of("app")
    assert names.QUOTAS_HOST in bench.refused()
    failed(bench, names.QUOTAS_HOST)


def test_texts_that_disagree_are_named(bench: Bench) -> None:
    bench.put(waiting("app", ONE, left=OTHER))
    bench.lock_of("app")
    assert "other cards than what is booked" in bench.refused()
    failed(bench, "other cards than what is booked")


def test_nothing_is_given_that_could_not_be_booked(bench: Bench) -> None:
    bench.put(waiting("app", ONE))
    bench.lock_of("app")
    bench.api.fail(Fault("PATCH", "/pods/app", status=403, reason="Forbidden"))
    assert "Forbidden" in bench.refused()
    failed(bench, "Forbidden")
    assert bench.left("app") == ONE


def test_what_was_booked_meanwhile_by_somebody_else_is_not_given_twice(bench: Bench) -> None:
    bench.put(waiting("app", ONE))
    changed = waiting("app", ONE, left=";")
    bench.api.fail(Fault("PATCH", "/pods/app", act=lambda: bench.put(changed)))
    bench.refused()
    assert bench.left("app") == ";"


@pytest.mark.parametrize("step", ["lookup.of_owner", "answer.respond"])
def test_a_fault_of_ours_is_a_failure_like_any_other_and_its_traceback_is_in_the_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    bench.put(waiting("app", ONE))
    bench.lock_of("app")

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("what nobody foresaw")

    monkeypatch.setattr(f"interceptor.device_plugin.{step}", fail)
    assert "ZeroDivisionError: what nobody foresaw" in bench.refused()
    failed(bench, "what nobody foresaw")
    assert 'raise ZeroDivisionError("what nobody foresaw")' in caplog.text


def test_a_fault_of_ours_among_several_pods_is_told_on_the_node(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench.put(waiting("app", ONE))
    bench.lock("2026-08-21T10:00:00Z")
    monkeypatch.setattr("interceptor.device_plugin.lookup.only", lambda *_: 1 // 0)
    assert "ZeroDivisionError" in bench.refused()
    assert bench.locked is None
    assert [event[:2] for event in bench.events()] == [("Node", "n1")]
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("failing", ["POST", "PATCH"])
def test_one_step_of_a_refusal_that_fails_keeps_no_other_from_being_done(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    bench.put(waiting("app", f"Unknown,{CHIP},8192,20:;"))
    bench.lock_of("app")
    step = {"POST": "event", "PATCH": "patch"}[failing]
    whole = getattr(bench.allocator._cluster, step)

    def fail(resource: kube.Resource, *rest: object, **options: object) -> object:
        if resource == kube.PODS:
            raise ZeroDivisionError
        return whole(resource, *rest, **options)

    monkeypatch.setattr(bench.allocator._cluster, step, fail)
    assert "a card of this node is expected" in bench.refused()
    assert bench.locked is None
    assert (bench.phase("app") == "failed", len(bench.events())) == ((True, 0) if failing == "POST" else (False, 1))


def test_a_card_that_stands_twice_in_a_container_is_not_given(bench: Bench) -> None:
    bench.put(waiting("app", f"U0,{CHIP},8192,20:U0,{CHIP},8192,20:;", asking(count=2, memory=8192)))
    bench.lock_of("app")
    assert "a container holds a card once" in bench.refused(2)
    failed(bench, "a container holds a card once")


def test_a_pod_of_very_many_containers_is_served_in_time_of_its_length(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = 60
    bench.put(waiting("app", ONE * many, *(asking(f"c{index}") for index in range(many))))
    reads = []
    whole = allocated.read
    monkeypatch.setattr(allocated, "read", lambda *given: reads.append(1) or whole(*given))
    assert bench.allocate().env[names.ENV_MEMORY] == "8192"
    assert len(reads) == 1


# ---- what an end in the middle of a call leaves behind


def settle(bench: Bench) -> None:
    """As the plugin does each time it reads its node object."""
    node = bench.api.object(kube.NODES, "n1")
    assert node is not None
    bench.allocator.settle(node)


@pytest.mark.parametrize(
    ("node", "phase", "bound", "lock", "marked"),
    [
        ("n1", "Pending", "allocating", "there", "allocating"),
        ("n1", "Pending", "success", "off", "success"),
        ("n1", "Pending", "failed", "off", "failed"),
        ("n1", "Running", "success", "off", "success"),
        ("n1", "Failed", "allocating", "off", "failed"),
        ("n2", "Pending", "allocating", "off", "allocating"),
        ("", "Pending", "success", "there", "success"),
    ],
)
def test_the_lock_of_a_pod_that_needs_it_no_more_is_taken_off(
    bench: Bench, node: str, phase: str, bound: str, lock: str, marked: str
) -> None:
    bench.put(waiting("app", ONE, node=node, phase=phase, annotations={names.BIND_PHASE: bound}))
    bench.lock_of("app")
    settle(bench)
    assert ("there" if bench.locked else "off", bench.phase("app")) == (lock, marked)


def test_the_lock_of_a_pod_that_is_gone_is_taken_off(bench: Bench) -> None:
    bench.lock_of("gone")
    settle(bench)
    assert bench.locked is None


@pytest.mark.parametrize("lock", ["2026-08-21T10:00:00Z", "nonsense"])
def test_a_lock_that_names_nobody_is_left_to_schedulers(bench: Bench, lock: str) -> None:
    bench.lock(lock)
    settle(bench)
    assert bench.locked == lock


def test_the_lock_is_left_to_a_call_that_is_under_way(bench: Bench) -> None:
    bench.put(waiting("app", ONE))
    bench.lock_of("app")
    bench.api.fail(Fault("PATCH", "/nodes/n1", act=lambda: settle(bench)))
    bench.allocate()
    assert bench.locked is None
    assert sum(request.method == "PATCH" and "/nodes/" in request.path for request in bench.api.requests) == 1


def test_an_api_server_that_is_away_gives_a_reason(bench: Bench) -> None:
    bench.put(waiting("app", ONE))
    bench.allocator._cluster = bench.api.cluster(bench.folder, timeout_s=0.2)
    bench.api.away()
    assert "the node object cannot be read" in bench.refused()
    bench.api.back()
    assert bench.allocate().env[names.ENV_MEMORY] == "8192"


def test_a_node_object_that_is_missing_gives_a_reason(bench: Bench) -> None:
    bench.api.remove(kube.NODES, "n1")
    assert "n1" in bench.refused()


# ---- preferred slots


def test_kubelet_is_told_the_slots_of_the_chosen_cards(bench: Bench) -> None:
    bench.put(waiting("app", OTHER))
    assert bench.allocator.wanted(B3, 1) == ["U1"]
    assert bench.left("app") == OTHER
    assert bench.allocator.wanted(B3, 2) == []
