"""The rules as tables: the same question in every shape, and odd objects that must not make them stumble."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import api_rules
from tests.support.api_server import defaulted
from tests.support.chips import chip_named
from tests.support.pods import CHIP, CORE, MEMORY, asking, container, patched, pod
from vnpu import names
from vnpu.admission import rules
from vnpu.admission.outcome import Outcome
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS, ChipTable
from vnpu.errors import QuantityError
from vnpu.mode import Mode
from vnpu.request import pod_request

if TYPE_CHECKING:
    from collections.abc import Callable

SLICE = asking(count=1, memory=8192, core=20)
DEFAULTS = Settings()


def mutated(document: Any, settings: Settings = DEFAULTS) -> Outcome:
    return rules.mutate_pod(document, settings, DEFAULT_CHIPS)


def completed(document: dict[str, Any], settings: Settings = DEFAULTS) -> dict[str, Any]:
    outcome = mutated(document, settings)
    assert outcome.allowed, outcome.message
    return patched(document, outcome.sets)


def deep(levels: int) -> Any:
    value: Any = "1"
    for _ in range(levels):
        value = [value]
    return value


class TestShapes:
    @pytest.mark.parametrize("env", [{}, {"env": None}, {"env": []}, {"env": [{"name": "A", "value": "1"}]}])
    @pytest.mark.parametrize("lifecycle", [{}, {"lifecycle": None}, {"lifecycle": {}}, {"lifecycle": {"preStop": {}}}])
    @pytest.mark.parametrize("requests", [{}, {"requests": None}, {"requests": {}}, {"requests": SLICE}])
    @pytest.mark.parametrize("annotations", [None, {}, {"a.b/c": "kept"}])
    def test_r01_r03_parents_in_every_shape(
        self, env: dict[str, Any], lifecycle: dict[str, Any], requests: dict[str, Any], annotations: Any
    ) -> None:
        app = container(resources={"limits": SLICE, **requests}, **env, **lifecycle)
        result = completed(pod(container("other"), app, annotations=annotations))
        other, npu = result["spec"]["containers"]
        assert other == container("other")
        assert result["metadata"]["annotations"] == {**(annotations or {}), names.MODE: "hami-core"}
        assert [entry["name"] for entry in npu["env"]] == [
            *(entry["name"] for entry in env.get("env") or []),
            "NPU_MEM_QUOTA",
            "NPU_PRIORITY",
        ]
        assert npu["lifecycle"]["postStart"]["exec"]["command"] == [names.LIMITER, "start"]
        assert npu["lifecycle"].get("preStop") == (lifecycle.get("lifecycle") or {}).get("preStop")
        assert {name: int(value) for name, value in npu["resources"]["requests"].items()} == SLICE
        assert mutated(result).sets == ()

    @pytest.mark.parametrize(
        "metadata", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"annotations": None}}]
    )
    def test_r01_metadata_that_is_not_there(self, metadata: dict[str, Any]) -> None:
        result = completed({**metadata, "spec": {"containers": [container(limits=SLICE)]}})
        assert result["metadata"]["annotations"] == {names.MODE: "hami-core"}

    @pytest.mark.parametrize("document", [None, [], "pod", 7, True, {}, {"spec": None}, {"spec": []}, {"metadata": []}])
    def test_what_is_no_pod_is_left_to_the_api_server(self, document: Any) -> None:
        assert mutated(document) == Outcome()
        assert rules.validate_pod(document, DEFAULTS, DEFAULT_CHIPS) == Outcome()

    @pytest.mark.parametrize(
        "change",
        [
            {"containers": None},
            {"containers": [None, "x", {"name": 5, "resources": [], "env": "x", "lifecycle": 1}]},
            {"containers": [{"resources": {"limits": []}}]},
            {"initContainers": {}},
            {"nodeName": 5, "schedulerName": [], "securityContext": "x"},
        ],
    )
    def test_a_pod_without_an_npu_may_have_any_shape(self, change: dict[str, Any]) -> None:
        document = pod(container()) | {"metadata": {"labels": ["x"], "annotations": "y"}}
        document["spec"] |= change
        assert mutated(document) == Outcome()

    @pytest.mark.parametrize(
        ("change", "path"),
        [
            (lambda p: p.update(metadata="x"), "metadata"),
            (lambda p: p["metadata"].update(annotations=["x"]), "metadata.annotations"),
            (lambda p: p["metadata"].update(labels=7), "metadata.labels"),
            (lambda p: p["spec"].update(schedulerName=7), "spec.schedulerName"),
            (lambda p: p["spec"].update(initContainers="x"), "spec.initContainers"),
            (lambda p: p["spec"]["containers"].append("x"), "spec.containers[1]"),
            (lambda p: p["spec"]["containers"].append({"resources": 1}), "spec.containers[1].resources"),
            (
                lambda p: p["spec"]["containers"][0]["resources"].update(requests=[]),
                "spec.containers[0].resources.requests",
            ),
            (lambda p: p["spec"]["containers"][0].update(env={"A": "1"}), "spec.containers[0].env"),
            (lambda p: p["spec"]["containers"][0].update(lifecycle=[]), "spec.containers[0].lifecycle"),
            (lambda p: p["metadata"].update(annotations={names.MODE: 1}), f"metadata.annotations[{names.MODE}]"),
            (lambda p: p["metadata"].update(annotations={names.SHARE: None}), f"metadata.annotations[{names.SHARE}]"),
        ],
    )
    def test_an_npu_pod_of_an_odd_shape_is_refused_with_the_path(
        self, change: Callable[[dict[str, Any]], None], path: str
    ) -> None:
        document = pod(container(limits=SLICE))
        change(document)
        assert path in [fault.path for fault in mutated(document).refusals]

    @pytest.mark.parametrize("levels", [50, 900])
    def test_deep_values_and_huge_numbers_are_refused_like_any_other(self, levels: int) -> None:
        for value in (deep(levels), 10**5000, -(10**5000), 1e308, float("nan"), "9" * 100_000):
            outcome = mutated(pod(container(limits={CHIP: 1, MEMORY: value})))
            assert [fault.path for fault in outcome.refusals] == [f"spec.containers[0].resources.limits[{MEMORY}]"]
            assert len(outcome.message) < 500
            both = container(resources={"limits": {CHIP: value}, "requests": {CHIP: 1}})
            assert len(mutated(pod(both)).message) < 500

    def test_annotations_too_deep_to_compare_have_changed(self) -> None:
        old, new = (pod(container(), annotations={CHIP: deep(100_000)}) for _ in range(2))
        assert not rules.validate_pod_update(new, old, "alice", DEFAULTS, DEFAULT_CHIPS).allowed

    def test_templates_too_deep_to_compare_are_judged_as_new(self) -> None:
        def deployment() -> dict[str, Any]:
            app = container(limits=asking(memory="8Gi"), args=deep(100_000))
            return {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [app]}}}}

        outcome = rules.validate_workload(deployment(), deployment(), DEFAULTS, DEFAULT_CHIPS)
        assert "8192" in "".join(outcome.warnings)


SPELLINGS = [
    *((8192, 8192), ("8192", 8192), ("8k", 8000), ("10k", 10000), ("8Ki", 8192), ("8192000m", 8192), ("10e3", 10000)),
    *(("8192.0", 8192), ("16Gi", None), ("1500m", None), ("0.5", None), ("-1", None), ("0", None), ("", None)),
    *((True, None), (2147483648, None), (99999999999999999999, None), ("99999999999999999999", None)),
]


class TestNumbers:
    @pytest.mark.parametrize(("written", "number"), SPELLINGS)
    @pytest.mark.parametrize("section", ["limits", "requests"])
    def test_r22_webhook_and_fit_read_the_same_number(self, written: Any, number: int | None, section: str) -> None:
        document = pod(container(resources={section: {CHIP: 1, MEMORY: written, CORE: 20}}))
        outcome = mutated(document)
        if number is None:
            assert isinstance(outcome.refusals[0], QuantityError)
            assert MEMORY in outcome.message
            with pytest.raises(QuantityError):
                pod_request(document, DEFAULT_CHIPS)
            return
        result = patched(document, outcome.sets)
        wanted = pod_request(result, DEFAULT_CHIPS).containers[0].slice
        assert wanted is not None
        assert wanted.memory_mib == number
        assert {"name": "NPU_MEM_QUOTA", "value": str(number)} in result["spec"]["containers"][0]["env"]

    @pytest.mark.parametrize("written", [101, 150, -5, 2147483648, "20m", 0, "", None, True, "20%"])
    def test_r23_core_out_of_range_is_refused_by_webhook_and_fit(self, written: Any) -> None:
        document = pod(container(limits={CHIP: 1, MEMORY: 8192, CORE: written}))
        assert [fault.path for fault in mutated(document).refusals] == [f"spec.containers[0].resources.limits[{CORE}]"]
        with pytest.raises(QuantityError):
            pod_request(document, DEFAULT_CHIPS)

    @pytest.mark.parametrize("written", [0, -1, "1.5", "", False, 2**31])
    def test_counts_are_whole_and_positive(self, written: Any) -> None:
        assert not mutated(pod(container(limits={CHIP: written}))).allowed

    @pytest.mark.parametrize(
        ("limits", "requests", "allowed"),
        [
            (SLICE, None, True),
            (None, SLICE, True),
            (SLICE, SLICE, True),
            ({CHIP: 2}, {CHIP: 1}, False),
            ({CHIP: 1, MEMORY: 8192}, {CHIP: 1, MEMORY: "8Ki"}, True),
            ({CHIP: 1, MEMORY: 8192}, {CHIP: 1, MEMORY: "8k"}, False),
            ({CHIP: 1}, {MEMORY: 16384}, True),
        ],
    )
    def test_r24_limits_and_requests_agree(self, limits: Any, requests: Any, allowed: bool) -> None:  # noqa: FBT001
        document = pod(container(resources={"limits": limits, "requests": requests}))
        outcome = mutated(document)
        assert outcome.allowed is allowed, outcome.message
        if allowed:
            assert api_rules.faults(patched(document, outcome.sets)) == []

    @pytest.mark.parametrize("annotated", [True, False])
    @pytest.mark.parametrize("core", [True, False])
    def test_r26_the_mode_is_one_decision(self, annotated: bool, core: bool) -> None:  # noqa: FBT001
        limits = asking(count=1, memory=10000, **({"core": 20} if core else {}))
        document = pod(container(limits=limits), annotations={names.MODE: "hami-core"} if annotated else None)
        result = completed(document)
        soft = annotated or core
        assert result["metadata"]["annotations"][names.MODE] == ("hami-core" if soft else "template")
        request = pod_request(result, DEFAULT_CHIPS)
        wanted = request.containers[0].slice
        assert wanted is not None
        assert request.mode is (Mode.SOFT if soft else Mode.HARD)
        assert wanted.memory_mib == (10000 if soft else 16384)
        assert int(result["spec"]["containers"][0]["resources"]["limits"][MEMORY]) == wanted.memory_mib

    @pytest.mark.parametrize(("count", "paired", "expected"), [
        *((1, True, 2), (2, True, 2), (3, True, None), (4, True, 4)),
        *((1, False, 1), (2, False, 2), (3, False, 3), (4, False, 4)),
    ])  # fmt: skip
    def test_r28_modules_of_two(self, count: int, paired: bool, expected: int | None) -> None:  # noqa: FBT001
        chip = chip_named("Ascend910C")
        chips = ChipTable((replace(chip, super_pod=paired),))
        document = pod(
            container(resources={"limits": {chip.resource_name: count}, "requests": {chip.resource_name: count}})
        )
        outcome = rules.mutate_pod(document, DEFAULTS, chips)
        if expected is None:
            assert "even" in outcome.message
            return
        result = patched(document, outcome.sets)
        for section in ("limits", "requests"):
            assert int(result["spec"]["containers"][0]["resources"][section][chip.resource_name]) == expected
        wanted = pod_request(result, chips).containers[0].slice
        assert wanted is not None
        assert wanted.count == expected


class TestWhoAsks:
    @pytest.mark.parametrize("kind", [{}, {"restartPolicy": "Always"}])
    def test_r06_an_npu_in_an_init_container_alone_makes_an_npu_pod(self, kind: dict[str, Any]) -> None:
        document = pod(container(), init=[container("init", limits=asking(memory=16384), **kind)])
        settings = Settings(scheduler_name="hami-scheduler", runtime_class_name="ascend")
        result = completed(document, settings)
        assert result["spec"]["schedulerName"] == "hami-scheduler"
        assert result["spec"]["runtimeClassName"] == "ascend"
        assert rules.validate_pod(defaulted(result), settings, DEFAULT_CHIPS).allowed
        assert [one.name for one in pod_request(result, DEFAULT_CHIPS).containers if one.slice] == ["init"]
        forced = copy.deepcopy(document)
        forced["spec"]["nodeName"] = "n1"
        assert not mutated(forced).allowed

    def test_r08_what_was_added_later_is_completed_and_the_rest_is_left(self) -> None:
        first = completed(pod(container("a", limits=SLICE), container("b")))
        first["spec"]["containers"].append(container("late", limits=asking(memory=1024, core=5)))
        outcome = mutated(first)
        assert {assignment.path[2] for assignment in outcome.sets} == {2}
        result = patched(first, outcome.sets)
        assert result["spec"]["containers"][:2] == first["spec"]["containers"][:2]
        assert mutated(result).sets == ()

    @pytest.mark.parametrize("allowed", [True, False])
    @pytest.mark.parametrize("npu", [True, False])
    @pytest.mark.parametrize("where", ["the container", "another", "an init container"])
    def test_r11_privileged(self, where: str, npu: bool, allowed: bool) -> None:  # noqa: FBT001
        privileged: dict[str, Any] = {"securityContext": {"privileged": True}}
        document = pod(
            container(limits=SLICE if npu else None, **(privileged if where == "the container" else {})),
            container("b", **(privileged if where == "another" else {})),
            init=[container("c", **(privileged if where == "an init container" else {}))],
        )
        outcome = mutated(document, Settings(allow_privileged=allowed))
        assert outcome.allowed is (allowed or not npu)
        if not npu:
            assert outcome == Outcome()

    @pytest.mark.parametrize("value", [None, False, "true", 1, {}])
    def test_not_privileged(self, value: Any) -> None:
        assert mutated(pod(container(limits=SLICE, securityContext={"privileged": value}))).allowed

    @pytest.mark.parametrize(
        ("named", "ours", "kept", "warned"),
        [
            (None, "hami-scheduler", False, False),
            ("", "hami-scheduler", False, False),
            ("default-scheduler", "hami-scheduler", False, False),
            ("hami-scheduler", "hami-scheduler", True, False),
            ("volcano", "hami-scheduler", True, True),  # soft slices need 1.16
            ("my-sched", "hami-scheduler", True, True),
            ("default-scheduler", "", True, False),
            ("my-sched", "", True, True),
        ],
    )
    def test_r13_schedulers(self, named: str | None, ours: str, kept: bool, warned: bool) -> None:  # noqa: FBT001
        document = pod(container(limits=SLICE), schedulerName=named)
        outcome = mutated(document, Settings(scheduler_name=ours))
        assert patched(document, outcome.sets)["spec"]["schedulerName"] == (named if kept else ours)
        assert bool(outcome.warnings) is warned

    def test_r21_forged_allocations_whatever_the_scheduler(self) -> None:
        forged = {
            CHIP: '[{"UUID":"x","memory":1,"core":1}]',
            "hami.io/Ascend910B3-devices-allocated": "x,Ascend910B3,1,1:;",
        }
        for (name, value), scheduler, limits in product(
            forged.items(), (None, "volcano", "default-scheduler"), (None, SLICE)
        ):
            outcome = mutated(pod(container(limits=limits), annotations={name: value}, schedulerName=scheduler))
            assert [fault.path for fault in outcome.refusals] == [f"metadata.annotations[{name}]"]
            assert outcome.sets == ()
