"""What a pod asks for: read exactly, completed once, added up by Kubernetes' order rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu import names
from vnpu.cards import NO_USE, Use
from vnpu.chips import DEFAULT_CHIPS, ChipTable, Template
from vnpu.containers import ContainerKind
from vnpu.errors import FieldError, InputError, QuantityError, RequestError
from vnpu.mode import Mode
from vnpu.request import PodRequest, order_rule, pod_request

SOFT = {names.MODE: "hami-core"}
CHIP = "huawei.com/Ascend910B3"


def container(name: str = "app", *, requests: dict[str, Any] | None = None, **limits: Any) -> dict[str, Any]:
    """A container; ``count``, ``memory`` and ``core`` are of Ascend910B3, other keys are words with ``_`` for ``-``."""
    known = {"count": CHIP, "memory": f"{CHIP}-memory", "core": f"{CHIP}-core"}
    resources: dict[str, Any] = {"limits": {known.get(word, f"huawei.com/{word}"): v for word, v in limits.items()}}
    if requests is not None:
        resources["requests"] = {known[word]: value for word, value in requests.items()}
    return {"name": name, "resources": resources}


def pod(*apps: dict[str, Any], init: tuple[dict[str, Any], ...] = (), annotations: Any = None) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "n", "annotations": annotations},
        "spec": {"containers": list(apps), "initContainers": list(init)},
    }


def read(document: dict[str, Any], **settings: Any) -> PodRequest:
    return pod_request(document, DEFAULT_CHIPS, **settings)


def one(document: dict[str, Any], **settings: Any) -> tuple[Mode, int, int, int, str | None]:
    wanted = read(document, **settings).containers[-1].slice
    assert wanted is not None
    return wanted.mode, wanted.count, wanted.memory_mib, wanted.core_percent, wanted.template


@pytest.mark.parametrize(
    ("limits", "annotations", "expected"),
    [
        # soft: to the MiB
        ({"count": 1, "memory": 28672, "core": 20}, None, (Mode.SOFT, 1, 28672, 20, None)),
        ({"count": 1, "memory": "10k"}, SOFT, (Mode.SOFT, 1, 10000, 0, None)),
        ({"memory": 1}, SOFT, (Mode.SOFT, 1, 1, 0, None)),
        ({"core": 30}, None, (Mode.SOFT, 1, 65536, 30, None)),
        ({"count": 1}, SOFT, (Mode.SOFT, 1, 65536, 100, None)),
        ({"count": 1, "memory": 65536}, SOFT, (Mode.SOFT, 1, 65536, 100, None)),
        ({"count": 2, "memory": 8192, "core": 5}, None, (Mode.SOFT, 2, 8192, 5, None)),
        # hard: templates and whole cards
        ({"count": 1}, None, (Mode.HARD, 1, 65536, 0, None)),
        ({"count": 8}, None, (Mode.HARD, 8, 65536, 0, None)),
        ({"memory": 10000}, None, (Mode.HARD, 1, 16384, 0, "vir05_1c_16g")),
        ({"memory": 16384}, None, (Mode.HARD, 1, 16384, 0, "vir05_1c_16g")),
        ({"memory": 16385}, None, (Mode.HARD, 1, 32768, 0, "vir10_3c_32g")),
        ({"memory": 32769}, None, (Mode.HARD, 1, 65536, 0, None)),
        ({"count": 2, "memory": 65536}, None, (Mode.HARD, 2, 65536, 0, None)),
    ],
)
def test_completion(limits: dict[str, Any], annotations: Any, expected: Any) -> None:
    assert one(pod(container(**limits), annotations=annotations)) == expected


def test_a_setting_gives_core_to_parts_of_a_card_only() -> None:
    assert one(pod(container(memory=8192), annotations=SOFT), default_core_percent=7)[3] == 7
    assert one(pod(container(count=1), annotations=SOFT), default_core_percent=7)[3] == 100
    assert one(pod(container(memory=8192)), default_mode=Mode.SOFT)[:3] == (Mode.SOFT, 1, 8192)


def test_limits_and_requests_are_both_read() -> None:
    assert one(pod(container(requests={"memory": 8192, "core": 10}))) == (Mode.SOFT, 1, 8192, 10, None)
    both = container(memory="10k", requests={"memory": 10000})
    assert one(pod(both, annotations=SOFT))[2] == 10000


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 2), (2, 2), (4, 4)], ids=["one becomes two", "a module", "two modules"]
)
def test_cards_of_a_super_pod_go_in_modules(count: int, expected: int) -> None:
    assert one(pod(container(Ascend910C=count)))[1] == expected


@pytest.mark.parametrize(
    ("limits", "annotations", "error", "words"),
    [
        ({"count": 0}, None, QuantityError, [CHIP, "from 1"]),
        ({"count": "0.5"}, None, QuantityError, [CHIP]),
        ({"count": 2**31}, None, QuantityError, [CHIP]),
        ({"memory": 0}, SOFT, QuantityError, ["-memory"]),
        ({"memory": -5}, None, QuantityError, ["-memory"]),
        ({"memory": "16Gi"}, SOFT, QuantityError, ["-memory", "16384", "MiB"]),
        ({"memory": 65537}, SOFT, QuantityError, ["65536"]),
        ({"memory": 65537}, None, QuantityError, ["65536"]),
        ({"core": 0}, None, QuantityError, ["-core", "1 to 100"]),
        ({"core": 101}, None, QuantityError, ["-core"]),
        ({"core": -5}, None, QuantityError, ["-core"]),
        ({"core": "20m"}, None, QuantityError, ["-core"]),
        ({"core": 20}, {names.MODE: "template"}, RequestError, ["-core", "hami-core"]),
        ({"count": 2, "memory": 10000}, None, RequestError, ["whole cards", "-memory"]),
        ({"Ascend910C": 3}, None, RequestError, ["even"]),
        ({"Ascend910C": 1, "Ascend910C-memory": 16384}, None, RequestError, ["whole cards"]),
        ({"Ascend310P-memory": 22000}, SOFT, QuantityError, ["from 1 to 21527 MiB"]),
        ({"Ascend310P-memory": 24577}, None, QuantityError, ["from 1 to 24576 MiB"]),
        ({"count": 1, "Ascend910B4-memory": 8192}, None, RequestError, ["one chip"]),
        ({"count": 1, "Ascend910B2": 1}, None, RequestError, ["one chip"]),
    ],
)
def test_refusals(limits: dict[str, Any], annotations: Any, error: type[FieldError], words: list[str]) -> None:
    with pytest.raises(error) as caught:
        read(pod(container(**limits), annotations=annotations))
    assert caught.value.path.startswith("spec.containers[0]")
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("resource", ["memory", "core", "count"])
def test_limit_and_request_must_be_equal(resource: str) -> None:
    with pytest.raises(RequestError, match="equal"):
        read(pod(container(**{resource: 2}, requests={resource: 1})))


@pytest.mark.parametrize(
    ("requests", "annotations", "resource"),
    [
        ({"memory": 70000}, None, "memory"),
        ({"core": 20}, {names.MODE: "template"}, "core"),
        ({"count": 2, "memory": 10000}, None, "memory"),
    ],
)
def test_a_fault_stands_where_the_number_is_written(requests: dict[str, Any], annotations: Any, resource: str) -> None:
    with pytest.raises(FieldError) as caught:
        read(pod(container(requests=requests), annotations=annotations))
    known = {"memory": f"{CHIP}-memory", "core": f"{CHIP}-core"}
    assert caught.value.path == f"spec.containers[0].resources.requests[{known[resource]}]"


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"metadata": [], "spec": {"containers": []}}, "metadata"),
        ({"metadata": {"annotations": "x"}, "spec": {"containers": []}}, "metadata.annotations"),
    ],
)
def test_metadata_of_an_odd_shape_is_an_error(document: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError, match="a mapping is expected") as caught:
        read(document)
    assert caught.value.path == path


def test_more_than_allocatable_gets_the_whole_card_and_a_warning() -> None:
    request = read(pod(container(**{"Ascend310P-memory": 24000})))
    wanted = request.containers[0].slice
    assert wanted is not None
    assert (wanted.memory_mib, wanted.template) == (21527, None)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {"containers": {}},
        {"containers": ["x"]},
        {"containers": [{"resources": []}]},
        {"containers": [{"resources": {"limits": []}}]},
        {"initContainers": "x", "containers": []},
    ],
)
def test_shapes_that_kubernetes_does_not_give_are_errors(spec: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        read({"metadata": {}, "spec": spec})


@given(st.integers(1, 65536), st.sampled_from(["hami-core", "template"]))
def test_completing_twice_changes_nothing(memory: int, mode: str) -> None:
    first = one(pod(container(memory=memory), annotations={names.MODE: mode}))
    written = {"count": first[1], "memory": first[2]} | ({"core": first[3]} if first[3] else {})
    assert one(pod(container(**written), annotations={names.MODE: mode})) == first
    assert first[2] >= memory


def uses(*rows: tuple[str, int]) -> list[tuple[ContainerKind, Use]]:
    return [(ContainerKind(kind), Use(1, mib, mib // 1024, mode=Mode.SOFT)) for kind, mib in rows]


@pytest.mark.parametrize(
    ("rows", "peak", "steady"),
    [
        ((("sidecar", 2048), ("init", 20480), ("app", 10240)), 22528, 12288),
        ((("init", 20480), ("sidecar", 2048), ("app", 10240)), 20480, 12288),
        ((("init", 1024), ("app", 10240), ("app", 2048)), 12288, 12288),
        ((("init", 4096), ("init", 8192)), 8192, 0),
        ((), 0, 0),
    ],
)
def test_the_order_rule(rows: tuple[tuple[str, int], ...], peak: int, steady: int) -> None:
    got_peak, got_steady = order_rule(uses(*rows))
    assert (got_peak.memory_mib, got_steady.memory_mib) == (peak, steady)
    assert (got_peak.core_percent, got_steady.core_percent) == (peak // 1024, steady // 1024)


@given(st.lists(st.tuples(st.sampled_from(["init", "sidecar", "app"]), st.integers(0, 100)), max_size=8))
def test_the_peak_is_what_runs_together_at_the_worst_moment(rows: list[tuple[str, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[0] == "app")
    moments = [sum(m for kind, m in rows if kind != "init")]
    for position, (kind, memory) in enumerate(rows):
        if kind == "init":
            moments.append(memory + sum(m for before, m in rows[:position] if before == "sidecar"))
    peak, steady = order_rule([(ContainerKind(kind), Use(1, memory)) for kind, memory in rows])
    assert (peak.memory_mib, steady.memory_mib) == (max(moments), moments[0])


def test_a_pod_asks_when_one_of_its_containers_does() -> None:
    assert read(pod(container(count=2, memory=8192, core=5), {"name": "plain"})).asks
    assert not read(pod({"name": "plain"})).asks


@given(*[st.builds(Use, *[st.integers(0, 9)] * 5, st.just(Mode.SOFT))] * 2)
def test_what_is_added_can_be_taken_away(one_use: Use, other: Use) -> None:
    back = one_use.plus(other).minus(other)
    assert (back.slots, back.memory_mib, back.core_percent) == (
        one_use.slots,
        one_use.memory_mib,
        one_use.core_percent,
    )
    assert back.mode is (Mode.SOFT if one_use.slots else None)
    assert NO_USE.plus(one_use) == one_use


@pytest.mark.parametrize(("factor", "template_mib"), [(1, 21527), (1024, 21510)])
def test_a_template_that_is_written_like_the_whole_card_is_the_whole_card(factor: int, template_mib: int) -> None:
    part = Template("half", 10240, 4)
    chip = replace(
        DEFAULT_CHIPS.get("Ascend310P") or pytest.fail("not there"),
        memory_factor=factor,
        templates=(part, Template("nearly", template_mib, 8)),
    )
    whole = 21527 // factor
    for limits in ({chip.resource_name: 1}, {chip.memory_name: whole}, {chip.memory_name: whole - 1}):
        document = pod({"name": "app", "resources": {"limits": limits}})
        wanted = pod_request(document, ChipTable((chip,))).containers[0].slice
        assert wanted is not None
        assert (wanted.template, wanted.memory_mib) == (None, 21527)
