"""One pod costs the webhook no more than a pod may, whatever it names."""

from __future__ import annotations

from tests.support.pods import CHIP, MEMORY, container, pod
from vnpu.admission import Settings, mutate_pod
from vnpu.chips import DEFAULT_CHIPS


def test_a_thousand_unknown_chips_are_not_told_one_by_one() -> None:
    limits = {MEMORY: 8192, **{f"huawei.com/Ascend9{number}": 1 for number in range(1000)}}
    outcome = mutate_pod(pod(container(limits=limits)), Settings(), DEFAULT_CHIPS)
    assert len(outcome.refusals) == 20


def test_a_name_of_any_length_is_cut_and_stays_on_one_line() -> None:
    name = "evil\x1b[31m\nFAKE LINE: allowed" + "x" * 100_000
    outcome = mutate_pod(pod(container(name, limits={CHIP: 0})), Settings(), DEFAULT_CHIPS)
    assert not outcome.allowed
    assert outcome.message.isprintable()
    assert len(outcome.message) < 1000
