"""Which annotations record an allocation."""

from __future__ import annotations

import pytest

from vnpu import names
from vnpu.admission.guard import records_allocation
from vnpu.chips import DEFAULT_CHIPS


@pytest.mark.parametrize("word", [chip.common_word for chip in DEFAULT_CHIPS])
def test_those_of_every_chip(word: str) -> None:
    for name in (names.to_allocate(word), names.allocated(word), names.runtime_info(word)):
        assert records_allocation(name, DEFAULT_CHIPS)


@pytest.mark.parametrize(
    "name",
    [
        *(names.ASSIGNED_NODE, names.ASSIGNED_TIME, names.BIND_TIME, names.BIND_PHASE, names.PREDICATE_TIME),
        "hami.io/vgpu-devices-allocated",
        "hami.io/bind-anything",
        "hami.io/Ascend910B9-devices-allocated",
        "hami.io/Ascend910B3-devices-",
    ],
)
def test_those_of_no_chip_in_particular(name: str) -> None:
    assert records_allocation(name, DEFAULT_CHIPS)


@pytest.mark.parametrize(
    "name",
    [
        *(names.MODE, names.SHARE, names.NODE_POLICY, names.CARD_POLICY, names.SCORING_WEIGHTS),
        *(names.use_uuid("Ascend910B3"), names.no_use_uuid("Ascend910B3"), names.CORDON, names.SOFT_NODE),
        "huawei.com/AscendReal",
        "huawei.com/Ascend910",
        "huawei.com/Ascend910B3-memory",
        "huawei.com/npu-core",
        "hami.io/mlu-devices-allocated",
        "hami.io/Ascend910B3-foo",
        "predicate-time2",
        "example.com/hami.io/vgpu-node",
        "",
    ],
)
def test_look_alikes_are_left_alone(name: str) -> None:
    assert not records_allocation(name, DEFAULT_CHIPS)
