from __future__ import annotations

from typing import Any

import pytest

from tests.support.chips import chip_named
from tests.support.objects import CHIP, container, pod
from vnpu import names
from vnpu.allocation import ContainerResponse, HostPaths, Mount, binding_annotations, container_response
from vnpu.annotations.allocated import AllocatedCard
from vnpu.cards import Card
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import AnnotationError, InputError, RequestError
from vnpu.holdings import cards_of, held
from vnpu.mode import Mode
from vnpu.placement import CardShare, ContainerPlacement, Placement
from vnpu.request import pod_request

B3 = chip_named(CHIP)
HOST = HostPaths(
    ("/usr/local/Ascend/driver/lib64/driver", "/usr/local/sbin/npu-smi"), "/usr/local/hami-vnpu-core/1.0.0"
)


def card(uuid: str, index: int = 0, chip: str = CHIP) -> Card:
    return Card(uuid, index, chip, 65536, 10)


def placed(document: dict[str, Any], *shares: tuple[CardShare, ...]) -> Placement:
    request = pod_request(document, DEFAULT_CHIPS)
    return Placement(
        request,
        "n1",
        tuple(ContainerPlacement(c.name, cards) for c, cards in zip(request.containers, shares, strict=True)),
    )


def soft_pod() -> dict[str, Any]:
    return pod(container("proxy"), container("app", count=1, memory=28672, core=20), node="")


def test_a_binding_carries_what_hamis_scheduler_writes() -> None:
    placement = placed(soft_pod(), (), (CardShare(card("U0"), 28672, 20, None),))
    assert binding_annotations(placement, 1767225600) == {
        "hami.io/Ascend910B3-devices-to-allocate": ";U0,Ascend910B3,28672,20:;",
        "hami.io/Ascend910B3-devices-allocated": ";U0,Ascend910B3,28672,20:;",
        "huawei.com/Ascend910B3": '[{"UUID":"U0","memory":28672,"core":20}]',
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-time": "1767225600",
        "hami.io/bind-time": "1767225600",
        "hami.io/bind-phase": "allocating",
        "predicate-time": "1767225600",
    }


def test_a_plan_has_no_times_and_no_phase() -> None:
    placement = placed(soft_pod(), (), (CardShare(card("U0"), 28672, 20, None),))
    assert binding_annotations(placement).keys() == {
        "hami.io/Ascend910B3-devices-to-allocate",
        "hami.io/Ascend910B3-devices-allocated",
        "huawei.com/Ascend910B3",
        "hami.io/vgpu-node",
    }


@pytest.mark.parametrize(
    ("share", "info"),
    [
        (CardShare(card("U0"), 8192, 0, None), '[{"UUID":"U0","memory":8192}]'),
        (
            CardShare(card("U0"), 16384, 0, "vir05_1c_16g"),
            '[{"UUID":"U0","temp":"vir05_1c_16g","memory":16384}]',
        ),
        (CardShare(card("U0"), 65536, 0, None), '[{"UUID":"U0","memory":65536}]'),
    ],
)
def test_the_json_is_that_of_hami_in_every_mode(share: CardShare, info: str) -> None:
    document = pod(container("app", count=1, memory=share.memory_mib), mode="template", node="")
    assert binding_annotations(placed(document, (share,)), 1)["huawei.com/Ascend910B3"] == info


def test_init_containers_come_first_and_each_chip_has_its_own_text() -> None:
    document = pod(
        container("a", count=2, memory=1024),
        container("b", chip="Ascend310P", count=1, memory=2048),
        init=(container("sidecar", count=1, memory=512, restartPolicy="Always"),),
        node="",
    )
    placement = placed(
        document,
        (CardShare(card("U1", 1), 512, 0, None),),
        (CardShare(card("U0"), 1024, 0, None), CardShare(card("U1", 1), 1024, 0, None)),
        (CardShare(card("V", 0, "Ascend310P"), 2048, 0, None),),
    )
    found = binding_annotations(placement, 1)
    assert found[names.allocated(CHIP)] == "U1,Ascend910B3,512,0:;U0,Ascend910B3,1024,0:U1,Ascend910B3,1024,0:;;"
    assert found[names.allocated("Ascend310P")] == ";;V,Ascend310P,2048,0:;"
    assert found[names.runtime_info("Ascend310P")] == '[{"UUID":"V","memory":2048}]'


def test_a_pod_without_an_npu_is_bound_without_annotations() -> None:
    assert binding_annotations(placed(pod(container("web"), node=""), ()), 1) == {}


def test_a_card_that_device_text_cannot_name_is_refused() -> None:
    with pytest.raises(AnnotationError, match="UUID"):
        binding_annotations(placed(soft_pod(), (), (CardShare(card("U;0"), 1, 0, None),)), 1)


def test_what_is_written_is_what_the_ledger_reads_back() -> None:
    document = soft_pod()
    document["metadata"]["annotations"] |= binding_annotations(
        placed(document, (), (CardShare(card("U0"), 28672, 20, None),)), 1
    )
    uses = held(document, DEFAULT_CHIPS)
    assert {uuid: (use.memory_mib, use.core_percent, use.mode) for uuid, use in uses.items()} == {
        "U0": (28672, 20, Mode.SOFT)
    }


# ---- What a container gets


def soft_card(uuid: str, memory_mib: int | None = 8192, core: int = 20) -> AllocatedCard:
    return AllocatedCard(uuid, 0, memory_mib, core, None)


def respond(*cards: AllocatedCard, mode: Mode = Mode.SOFT, host: HostPaths = HOST, **parts: str) -> ContainerResponse:
    owner = {"pod_uid": "0d1e2f3a-4b5c", "container": "app"} | parts
    return container_response(cards, {"U0": 6, "U1": 3, "V0": 0}, mode, host=host, **owner)


def test_a_soft_container_gets_its_quota_and_its_mounts() -> None:
    assert respond(soft_card("U0")) == ContainerResponse(
        {
            "ASCEND_VISIBLE_DEVICES": "6",
            "NPU_MEM_QUOTA": "8192",
            "NPU_PRIORITY": "20",
            "NPU_GLOBAL_SHM_PATH": "/hami-shared-region/6_global_registry",
            "NPU_LOCAL_SHM_PATH": "/hami-vnpu-shmem/vnpu_local_shmem",
        },
        (
            Mount("/usr/local/Ascend/driver/lib64/driver", "/usr/local/Ascend/driver/lib64/driver"),
            Mount("/usr/local/sbin/npu-smi", "/usr/local/sbin/npu-smi"),
            Mount("/usr/local/hami-vnpu-core/1.0.0", "/usr/local/hami-vnpu-core"),
            Mount("/usr/local/hami-vnpu-core/1.0.0/ld.so.preload", "/etc/ld.so.preload"),
            Mount("/usr/local/hami-shared-region", "/hami-shared-region", read_only=False),
            Mount(
                "/usr/local/hami-vnpu-core/containers/0d1e2f3a-4b5c_app",
                "/hami-vnpu-shmem",
                read_only=False,
            ),
        ),
    )


def test_the_quota_file_is_mounted_read_only_where_there_is_one() -> None:
    host = HostPaths(HOST.driver, HOST.core_dir, quota_file="/run/vnpu/0d1e.json")
    assert respond(soft_card("U0"), host=host).mounts[-1] == Mount("/run/vnpu/0d1e.json", "/etc/vnpu/quota.json")


def test_no_core_means_no_priority() -> None:
    assert "NPU_PRIORITY" not in respond(soft_card("U0", core=0)).env


def test_several_cards_are_named_in_order_and_the_quota_is_per_card() -> None:
    env = respond(soft_card("U0"), soft_card("U1")).env
    assert env["ASCEND_VISIBLE_DEVICES"] == "6,3"
    assert env["NPU_MEM_QUOTA"] == "8192"
    assert env["NPU_GLOBAL_SHM_PATH"] == "/hami-shared-region/6_global_registry"


def test_card_zero_is_a_card() -> None:
    assert respond(soft_card("V0")).env["ASCEND_VISIBLE_DEVICES"] == "0"


def test_a_hard_container_gets_its_template_and_no_mounts() -> None:
    template = B3.template_named("vir05_1c_16g")
    sliced = AllocatedCard("U0", 0, None, 0, template)
    assert respond(sliced, mode=Mode.HARD) == ContainerResponse(
        {"ASCEND_VISIBLE_DEVICES": "6", "ASCEND_VNPU_SPECS": "vir05_1c_16g"}, ()
    )
    assert respond(soft_card("U0", 65536, 0), mode=Mode.HARD) == ContainerResponse({"ASCEND_VISIBLE_DEVICES": "6"}, ())
    with pytest.raises(RequestError, match="several cards come as whole ones"):
        respond(sliced, soft_card("U1"), mode=Mode.HARD)


@pytest.mark.parametrize(
    ("cards", "reason"),
    [
        ((), "at least one card"),
        ((soft_card("GONE"),), "a card of this node"),
        ((soft_card("U0", None),), "0 is no limit"),
        ((soft_card("U0", 0),), "0 is no limit"),
        ((soft_card("U0"), soft_card("U1", 4096)), "the same memory and core"),
        ((soft_card("U0"), soft_card("U1", core=10)), "the same memory and core"),
        ((soft_card("U0", core=101),), "at most 100 percent"),
        ((soft_card("U0"), soft_card("U0")), "a card once"),
    ],
)
def test_a_soft_container_is_never_answered_without_its_quota(cards: tuple[AllocatedCard, ...], reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        respond(*cards)
    assert caught.value.path == "container app"


@pytest.mark.parametrize("part", ["", "..", "a/b", "../x", "a\n", "-a", ".a"])
def test_no_name_leads_out_of_the_directory_of_containers(part: str) -> None:
    with pytest.raises(InputError, match="letters, digits"):
        respond(soft_card("U0"), pod_uid=part)
    with pytest.raises(InputError, match="letters, digits"):
        respond(soft_card("U0"), container=part)


def test_every_name_that_kubernetes_allows_is_allowed() -> None:
    mounts = respond(soft_card("U0"), pod_uid="3f2504e0-4f89-11d3-9a0c-0305e82c3301", container="my-app-0").mounts
    assert mounts[-1].host_path.endswith("/3f2504e0-4f89-11d3-9a0c-0305e82c3301_my-app-0")


def test_the_allocation_of_a_pod_leads_to_the_response_of_its_container() -> None:
    document = pod(
        container("proxy"),
        container("app", count=1, memory=8192, core=20),
        text=";U1,Ascend910B3,8192,20:;",
        info='[{"UUID":"U1","memory":8192,"core":20}]',
    )
    env = respond(*cards_of([document], "uid-app", "app", B3)).env
    assert (env["ASCEND_VISIBLE_DEVICES"], env["NPU_MEM_QUOTA"], env["NPU_PRIORITY"]) == ("3", "8192", "20")
