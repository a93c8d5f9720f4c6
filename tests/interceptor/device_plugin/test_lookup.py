"""The law of the look-up: whatever kubelet asks for, a container gets what was booked for it, or nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interceptor.device_plugin import lookup, report
from tests.support.device_plugin import B3, NODE, asking, waiting
from tests.support.objects import CHIP
from vnpu import names
from vnpu.chips import DEFAULT_CHIPS

SHARES = ("U0,1024", "U0,2048", "U1,1024")
Pods = dict[str, list[str]]


def card(share: str) -> str:
    uuid, memory = share.split(",")
    return f"{uuid},{CHIP},{memory},0:"


def document(name: str, shares: list[str]) -> dict[str, object]:
    containers = [asking(f"c{index}") for index in range(len(shares))]
    return waiting(name, "".join(f"{card(share)};" for share in shares), *containers)


pods = st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from(SHARES), min_size=1, max_size=3), min_size=1)


@given(pods=pods, data=st.data())
def test_no_container_gets_the_share_of_another(pods: Pods, data: st.DataObject) -> None:
    """kubelet takes the pods one after the other, and may give one up between two containers."""
    api = {name: document(name, shares) for name, shares in pods.items()}
    for name in data.draw(st.permutations(sorted(pods))):
        given_up = data.draw(st.integers(0, len(pods[name])))
        for place, share in enumerate(pods[name]):
            if place == given_up:
                break
            try:
                found = lookup.only(api.values(), NODE, B3, 1, DEFAULT_CHIPS)
            except lookup.NotFoundError:
                break
            (got,) = found.entry.cards
            assert f"{got.uuid},{got.memory_mib}" == share
            take(api, found)
        else:
            continue
        del api[name]  # kubelet says that it failed


def take(api: dict[str, dict[str, object]], found: lookup.Found) -> None:
    """As the API server carries out the plugin's patch."""
    annotations = found.pod["metadata"]["annotations"]
    key = names.to_allocate(CHIP)
    patch = report.served(key, annotations[key], found.entry.slot, found.pod["metadata"]["uid"], last=found.last)
    assert api[found.pod["metadata"]["name"]] is found.pod
    annotations[key] = patch[2]["value"]


@given(shares=st.lists(st.sampled_from(SHARES), min_size=1, max_size=4))
def test_a_pod_that_waits_alone_gets_all_of_it_in_order(shares: list[str]) -> None:
    api = {"a": document("a", shares)}
    for place, share in enumerate(shares):
        found = lookup.only(api.values(), NODE, B3, 1, DEFAULT_CHIPS)
        (got,) = found.entry.cards
        assert (f"{got.uuid},{got.memory_mib}", found.entry.container.name) == (share, f"c{place}")
        assert found.last == (place == len(shares) - 1)
        take(api, found)
    assert lookup.unserved(api["a"], DEFAULT_CHIPS) == []
