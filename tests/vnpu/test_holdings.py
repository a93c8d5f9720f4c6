from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chips import chip_named
from tests.support.objects import CHIP, container, pod
from vnpu import names
from vnpu.annotations import devices, runtime_info
from vnpu.annotations.devices import DeviceEntry
from vnpu.annotations.runtime_info import RuntimeInfo
from vnpu.cards import Use
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import AnnotationError, FieldError, InputError
from vnpu.holdings import cards_of, held, holdings
from vnpu.mode import Mode

B3 = chip_named(CHIP)
TEXT = "U0,Ascend910B3,8192,20:;"
INFO = '[{"UUID":"U0","memory":8192,"core":20}]'
SLICE = Use(1, 8192, 20, 0, 0, Mode.SOFT)


def uses(document: dict[str, Any]) -> dict[str, Use]:
    return held(document, DEFAULT_CHIPS)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing(phase: str) -> None:
    assert uses(pod(text=TEXT, info=INFO, phase=phase)) == {}
    assert uses(pod(text="garbage", phase=phase)) == {}


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", "", None])
def test_a_pod_in_any_other_phase_holds_its_slice(phase: Any) -> None:
    assert uses(pod(text=TEXT, info=INFO, phase=phase)) == {"U0": SLICE}


def test_a_deleting_pod_still_holds_its_slice() -> None:
    deleting = pod(text=TEXT, info=INFO)
    deleting["metadata"]["deletionTimestamp"] = "2026-08-21T12:00:00Z"
    assert uses(deleting) == {"U0": SLICE}


def test_device_text_alone_and_json_alone_are_enough() -> None:
    assert uses(pod(text=TEXT)) == {"U0": SLICE}
    assert uses(pod(info=INFO)) == {"U0": SLICE}


@pytest.mark.parametrize(
    ("info", "path"),
    [
        ('[{"UUID":"U1","memory":8192,"core":20}]', ""),
        ('[{"UUID":"U0","memory":4096,"core":20}]', "[0].memory"),
        ('[{"UUID":"U0","memory":8192,"core":30}]', "[0].core"),
        ('[{"UUID":"U0"},{"UUID":"U0"}]', "[1]"),
        ('[{"UUID":"U0"},{"memory":8192}]', "[1]"),
        ("[]", ""),
        ("null", ""),
        ("{}", ""),
    ],
)
def test_texts_that_disagree_are_an_error(info: str, path: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        uses(pod(text=TEXT, info=info))
    assert caught.value.path == f"metadata.annotations[huawei.com/Ascend910B3]{path}"


def test_what_the_json_does_not_say_does_not_disagree() -> None:
    assert uses(pod(text=TEXT, info='[{"uuid":"U0"}]')) == {"U0": SLICE}


def test_a_device_text_of_another_chip_is_an_error() -> None:
    # Equality, never a substring: 910B4 is not 910B4-1.
    asks = container("app", chip="Ascend910B4", count=1)
    with pytest.raises(AnnotationError, match="Ascend910B4 is expected in its own text") as caught:
        uses(pod(asks, chip="Ascend910B4", text="U0,Ascend910B4-1,8192,20:;"))
    assert caught.value.path == "metadata.annotations[hami.io/Ascend910B4-devices-allocated][0][0]"


def test_a_bound_pod_that_asks_and_has_no_allocation_cannot_be_told() -> None:
    for document in (pod(), pod(text=";"), pod(text="", info="null")):
        with pytest.raises(AnnotationError, match="container app asks for Ascend910B3") as caught:
            uses(document)
        assert caught.value.path == "metadata.annotations[hami.io/Ascend910B3-devices-allocated]"


def test_a_bound_pod_that_has_only_the_allocation_of_another_chip_cannot_be_told() -> None:
    both = pod(
        container("a", count=1, memory=8192),
        container("b", chip="Ascend310P", count=1, memory=1024),
        text="U0,Ascend910B3,8192,0:;;",
    )
    with pytest.raises(AnnotationError, match="container b asks for Ascend310P"):
        uses(both)


def test_a_pod_that_is_not_bound_and_has_no_allocation_holds_nothing() -> None:
    assert uses(pod(node="")) == {}


def test_a_pod_that_is_not_bound_holds_what_a_scheduler_promised_it() -> None:
    assert uses(pod(node="", text=TEXT, info=INFO)) == {"U0": SLICE}


@pytest.mark.parametrize("zero", [0, "0"])
def test_a_pod_that_asks_for_nothing_holds_nothing(zero: object) -> None:
    assert uses(pod(container("app"))) == {}
    none = container("app")
    none["resources"] = {"limits": {"huawei.com/Ascend910B3": zero, "cpu": "1"}}
    assert uses(pod(none)) == {}


def test_the_allocation_of_a_pod_that_asks_for_nothing_is_an_error() -> None:
    with pytest.raises(AnnotationError, match="asks for this chip in no container"):
        uses(pod(container("app"), text=TEXT))


def test_the_json_of_a_pod_that_asks_for_nothing_still_counts() -> None:
    assert uses(pod(container("app"), info=INFO)) == {"U0": SLICE}


def test_several_containers_and_cards_add_up() -> None:
    document = pod(
        container("a", count=2, memory=1024, core=10),
        container("b"),
        container("c", count=1, memory=2048, core=30),
        text="U0,Ascend910B3,1024,10:U1,Ascend910B3,1024,10:;;U0,Ascend910B3,2048,30:;",
    )
    assert uses(document) == {"U0": Use(2, 3072, 40, 0, 0, Mode.SOFT), "U1": Use(1, 1024, 10, 0, 0, Mode.SOFT)}


@pytest.mark.parametrize(("sidecar_first", "peak_mib"), [(True, 22528), (False, 20480)])
def test_r32_the_peak_follows_the_order_of_init_containers_and_sidecars(*, sidecar_first: bool, peak_mib: int) -> None:
    init = container("init", count=1, memory=20480, core=50)
    sidecar = container("sidecar", count=1, memory=2048, core=20, restartPolicy="Always")
    app = container("app", count=1, memory=10240, core=40)
    first, second = "U0,Ascend910B3,20480,50:;", "U0,Ascend910B3,2048,20:;"
    inits = (init, sidecar)
    if sidecar_first:
        inits, (first, second) = (sidecar, init), (second, first)
    document = pod(app, init=inits, text=f"{first}{second}U0,Ascend910B3,10240,40:;")
    assert uses(document) == {"U0": Use(2, peak_mib, 70 if sidecar_first else 60, 0, 0, Mode.SOFT)}


def test_json_alone_says_nothing_about_containers_so_all_of_it_counts() -> None:
    document = pod(
        container("app", count=1, memory=10240),
        init=(container("init", count=1, memory=20480),),
        info='[{"UUID":"U0","memory":20480},{"UUID":"U0","memory":10240}]',
    )
    assert uses(document) == {"U0": Use(2, 30720, 0, 0, 0, Mode.SOFT)}


def test_the_text_of_volcano_is_booked_on_the_right_containers() -> None:
    # One slot for the one app container that asks: the init container would hold its peak otherwise.
    document = pod(
        container("proxy"),
        container("app", count=1, memory=8192, core=20),
        init=(container("init"),),
        text=TEXT,
        info=INFO,
    )
    assert uses(document) == {"U0": SLICE}
    assert [card.container for card in cards_of([document], "uid-app", "app", B3)] == [2]


@pytest.mark.parametrize(
    ("text", "info", "use"),
    [
        # HAMi: template, memory and, in one of its tests, a core that counts AI cores.
        ("U,Ascend910B3,16384,1:;", '[{"UUID":"U","temp":"vir05_1c_16g","memory":16384,"core":1}]', (16384, 5, 1)),
        # HAMi: whole card.
        ("U,Ascend910B3,65536,0:;", '[{"UUID":"U","memory":65536}]', (65536, 20, 7)),
        # Volcano: only the template, or nothing.
        ("U,Ascend910B3,32768,0:;", '[{"UUID":"U","temp":"vir10_3c_32g"}]', (32768, 10, 3)),
        ("U,Ascend910B3,65536,0:;", '[{"UUID":"U"}]', (65536, 20, 7)),
        (None, '[{"UUID":"U","temp":"vir10_3c_32g"}]', (32768, 10, 3)),
        (None, '[{"UUID":"U"}]', (65536, 20, 7)),
        # Volcano booked 0 MiB and gave a template.
        ("U,Ascend910B3,0,0:;", '[{"UUID":"U","temp":"vir05_1c_16g"}]', (16384, 5, 1)),
        # Without JSON nobody knows the template.
        ("U,Ascend910B3,16384,0:;", None, (16384, 20, 7)),
    ],
)
def test_a_hard_slice_holds_the_cores_of_its_template(text: str, info: str, use: tuple[int, int, int]) -> None:
    memory_mib, ai_core, ai_cpu = use
    document = pod(container("app", count=1), mode="template", text=text, info=info)
    assert uses(document) == {"U": Use(1, memory_mib, 0, ai_core, ai_cpu, Mode.HARD)}


def test_a_template_that_the_chip_does_not_have_is_an_error() -> None:
    with pytest.raises(AnnotationError, match="Ascend910B3 has vir05_1c_16g, vir10_3c_32g") as caught:
        uses(pod(mode="template", info='[{"UUID":"U","temp":"vir02"}]'))
    assert caught.value.path == "metadata.annotations[huawei.com/Ascend910B3][0].temp"


@pytest.mark.parametrize(("text", "info"), [("U,Ascend910B3,0,20:;", None), (None, '[{"UUID":"U","core":20}]')])
def test_a_soft_slice_without_memory_has_no_limit_and_so_holds_the_card(text: str | None, info: str | None) -> None:
    assert uses(pod(text=text, info=info)) == {"U": Use(1, 65536, 20, 0, 0, Mode.SOFT)}


@pytest.mark.parametrize("uuid", ["", '"UUID":null,', '"UUID":"a;b",'])
def test_json_alone_must_name_its_cards(uuid: str) -> None:
    with pytest.raises(AnnotationError, match="a card UUID is expected"):
        uses(pod(info=f'[{{{uuid}"memory":8192}}]'))


@pytest.mark.parametrize(
    ("mode", "text", "info", "expected"),
    [
        ("hami-core", TEXT, INFO, Mode.SOFT),
        ("hami-core", TEXT, '[{"UUID":"U0","temp":"vir05_1c_16g"}]', Mode.SOFT),
        ("template", TEXT, INFO, Mode.HARD),
        ("Hami-Core", TEXT, INFO, Mode.HARD),  # to every scheduler this is not hami-core
        (None, TEXT, INFO, Mode.SOFT),  # hard slices book no core
        ("", TEXT, INFO, Mode.SOFT),
        (None, TEXT, '[{"UUID":"U0","temp":"vir05_1c_16g"}]', Mode.HARD),
        (None, "U0,Ascend910B3,8192,0:;", None, Mode.HARD),
    ],
)
def test_the_mode_is_the_pods_or_judged_by_what_it_holds(
    mode: str | None, text: str, info: str | None, expected: Mode
) -> None:
    assert uses(pod(mode=mode, text=text, info=info))["U0"].mode is expected


def test_two_chips_in_one_pod_are_booked_apart() -> None:
    document = pod(
        container("a", count=1, memory=8192, core=20),
        container("b", chip="Ascend310P", count=1, memory=1024),
        text=TEXT + ";",
        info=INFO,
        annotations={names.allocated("Ascend310P"): ";V,Ascend310P,1024,0:;"},
    )
    assert uses(document) == {"U0": SLICE, "V": Use(1, 1024, 0, 0, 0, Mode.SOFT)}
    assert [holding.chip.common_word for holding in holdings(document, DEFAULT_CHIPS)] == ["Ascend910B3", "Ascend310P"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("status",), []),
        (("metadata",), "x"),
        (("metadata", "annotations"), 1),
        (("spec",), None),
        (("spec", "containers"), {}),
        (("spec", "containers"), [1]),
        (("spec", "containers", 0, "resources"), []),
        (("spec", "containers", 0, "resources", "limits"), "x"),
        (("metadata", "annotations", names.allocated("Ascend910B3")), 7),
        (("metadata", "annotations", names.runtime_info("Ascend910B3")), [{}]),
    ],
)
def test_a_pod_of_another_shape_is_a_typed_error(place: tuple[Any, ...], value: object) -> None:
    document: Any = pod(text=TEXT, info=INFO)
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(FieldError):
        uses(document)


@pytest.mark.parametrize("value", [[], {}, True, "8k", -1])
def test_any_amount_but_nothing_counts_as_asking(value: object) -> None:
    asks = container("app")
    asks["resources"] = {"requests": {"huawei.com/Ascend910B3-memory": value}}
    with pytest.raises(AnnotationError, match="container app asks for Ascend910B3"):
        uses(pod(asks))


ENTRIES = st.builds(DeviceEntry, st.sampled_from(["U0", "U1"]), st.just(CHIP), st.integers(1, 9999), st.integers(0, 99))


@given(st.lists(st.lists(ENTRIES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_apps_hold_the_sum_of_their_entries(slots: list[list[DeviceEntry]]) -> None:
    document = pod(*(container(f"c{place}", count=1) for place in range(len(slots))), text=devices.encode(slots))
    entries = list(itertools.chain(*slots))
    infos = (RuntimeInfo(entry.uuid, None, entry.memory_mib, entry.core) for entry in entries)
    document["metadata"]["annotations"][names.runtime_info(CHIP)] = runtime_info.encode(infos)
    found = uses(document)
    assert found.keys() == {entry.uuid for entry in entries}
    for uuid, use in found.items():
        own = [entry for entry in entries if entry.uuid == uuid]
        memory_mib, core = sum(entry.memory_mib for entry in own), sum(entry.core for entry in own)
        assert use == Use(len(own), memory_mib, core, 0, 0, Mode.SOFT)


@given(st.text('U01,Ascend9B3:;-[]{}"UIDmemory '), st.none() | st.text('[]{}"UIDtempmory:,0123456789'))
def test_any_text_is_booked_or_refused(text: str, info: str | None) -> None:
    try:
        found = uses(pod(text=text, info=info))
    except FieldError:
        return
    assert all(use.slots > 0 and use.memory_mib > 0 for use in found.values())


def test_r41_a_container_is_found_by_uid_and_name_never_by_age() -> None:
    # Both bound in the same second; the younger one is meant.
    older = pod(name="older", text="U0,Ascend910B3,8192,20:;", info='[{"UUID":"U0","memory":8192,"core":20}]')
    younger = pod(name="younger", text="U0,Ascend910B3,4096,10:;", info='[{"UUID":"U0","memory":4096,"core":10}]')
    for pods in itertools.permutations((older, younger)):
        (found,) = cards_of(pods, "uid-younger", "app", B3)
        assert (found.uuid, found.memory_mib, found.core) == ("U0", 4096, 10)
    for uid, name in (("uid-other", "app"), ("uid-younger", "other")):
        with pytest.raises(InputError, match="exactly one match is expected, and 0 are there"):
            cards_of([older, younger], uid, name, B3)
    with pytest.raises(InputError, match="and 2 are there"):
        cards_of([older, older], "uid-older", "app", B3)


def test_r41_without_device_text_two_containers_that_ask_cannot_be_told_apart() -> None:
    info = '[{"UUID":"U0","memory":8192},{"UUID":"U0","memory":4096}]'
    both = pod(container("a", count=1), container("b", count=1), info=info)
    with pytest.raises(AnnotationError, match="told by device text only"):
        cards_of([both], "uid-app", "b", B3)
    (only,) = cards_of([pod(info='[{"UUID":"U0","memory":4096}]')], "uid-app", "app", B3)
    assert (only.container, only.memory_mib) == (0, 4096)
    assert cards_of([pod(container("app"), container("b", count=1), text=";" + TEXT)], "uid-app", "app", B3) == ()


@pytest.mark.parametrize(
    ("apps", "allocation"),
    [
        ([{"count": 1}, {"count": 1}], {"text": "U0,Ascend910B3,1000,0:;;"}),
        ([{"count": 1}, {"count": 1}], {"text": "U0,Ascend910B3,1000,0:;"}),
        ([{"count": 2}], {"text": TEXT}),
        ([{"count": 2}], {"info": INFO}),
        ([{"count": 1}, {"count": 1}], {"info": INFO}),
    ],
)
def test_a_bound_pod_that_tells_fewer_cards_than_it_asks_for_cannot_be_told(
    apps: list[dict[str, Any]], allocation: dict[str, str]
) -> None:
    containers = [container(f"c{number}", **asks) for number, asks in enumerate(apps)]
    with pytest.raises(AnnotationError, match="fewer are told"):
        uses(pod(*containers, **allocation))
