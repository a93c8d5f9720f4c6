"""Who holds what, from pods alone."""

from __future__ import annotations

import pytest

from interceptor.exporter.tenants import Slice, tenants
from tests.support.objects import CHIP, container, pod
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import FieldError

MIB = 1 << 20


def granted(*slices: tuple[str, int, int]) -> tuple[Slice, ...]:
    return tuple(Slice(uuid, index, mib * MIB, core) for index, (uuid, mib, core) in enumerate(slices))


def test_plugin_b12_two_containers_on_one_card_keep_what_is_their_own() -> None:
    both = pod(
        container("a", count=1, memory=8192, core=20),
        container("b", count=1, memory=4096, core=10),
        text=f"U0,{CHIP},8192,20:;U0,{CHIP},4096,10:;",
    )
    found = {tenant.container: tenant.slices for tenant in tenants(both, DEFAULT_CHIPS)}
    assert found == {"a": granted(("U0", 8192, 20)), "b": granted(("U0", 4096, 10))}


def test_a_native_sidecar_has_its_own_slice() -> None:
    sidecar = container("side", count=1, memory=1024, core=5, restartPolicy="Always")
    both = pod(
        container("app", count=1, memory=8192, core=20),
        init=(sidecar,),
        text=f"U0,{CHIP},1024,5:;U1,{CHIP},8192,20:;",
    )
    found = {tenant.container: tenant.slices for tenant in tenants(both, DEFAULT_CHIPS)}
    assert found == {"side": granted(("U0", 1024, 5)), "app": granted(("U1", 8192, 20))}


def test_the_cards_of_a_container_are_numbered_as_it_sees_them() -> None:
    wide = pod(container("a", count=2, memory=8192, core=20), text=f"U1,{CHIP},8192,20:U0,{CHIP},8192,20:;")
    (tenant,) = tenants(wide, DEFAULT_CHIPS)
    assert tenant.slices == granted(("U1", 8192, 20), ("U0", 8192, 20))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_holds_nothing(phase: str) -> None:
    assert tenants(pod(phase=phase, text=f"U0,{CHIP},8192,20:;"), DEFAULT_CHIPS) == []


def test_hard_slices_have_no_limiter_to_tell_of() -> None:
    whole = pod(container("a", count=1, memory=65536), mode="template", text=f"U0,{CHIP},65536,0:;")
    assert tenants(whole, DEFAULT_CHIPS) == []


def test_a_pod_without_an_allocation_is_no_tenant() -> None:
    assert tenants(pod(node=""), DEFAULT_CHIPS) == []


def test_the_name_that_the_engine_gave_is_found() -> None:
    here = pod(text=f"U0,{CHIP},8192,20:;")
    here["status"]["containerStatuses"] = [{"name": "app", "containerID": "containerd://" + "ab" * 32}]
    (tenant,) = tenants(here, DEFAULT_CHIPS)
    assert tenant.runtime_id == "ab" * 32


def test_annotations_that_do_not_tell_are_an_error() -> None:
    with pytest.raises(FieldError):
        tenants(pod(text="nonsense"), DEFAULT_CHIPS)
