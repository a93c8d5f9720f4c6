from __future__ import annotations

import pytest

from tests.support.chips import chip_named
from vnpu.annotations import quotas
from vnpu.annotations.quotas import Budget, Enforcer
from vnpu.chips import DEFAULT_CHIPS, ResourceKind
from vnpu.errors import QuantityError


def test_kubernetes_and_hami_read_different_keys() -> None:
    chip = chip_named("Ascend910B3")
    assert quotas.budget_key(Enforcer.KUBERNETES, chip.memory_name) == "requests.huawei.com/Ascend910B3-memory"
    assert quotas.budget_key(Enforcer.HAMI, chip.core_name) == "limits.huawei.com/Ascend910B3-core"


def test_the_budgets_of_the_configured_chips_are_found() -> None:
    chip, dashed = chip_named("Ascend910B4"), chip_named("Ascend910B4-1")
    hard = {
        "requests.huawei.com/Ascend910B4": "8",
        "requests.huawei.com/Ascend910B4-memory": "128k",
        "limits.huawei.com/Ascend910B4-1-core": 0,
        "huawei.com/Ascend910B4": "1",
        "requests.cpu": "10",
        "limits.nvidia.com/gpu": "1",
        "pods": "5",
    }
    assert list(quotas.budgets(hard, DEFAULT_CHIPS)) == [
        Budget(chip, ResourceKind.COUNT, Enforcer.KUBERNETES, 8),
        Budget(chip, ResourceKind.MEMORY, Enforcer.KUBERNETES, 128000),
        Budget(dashed, ResourceKind.CORE, Enforcer.HAMI, 0),
    ]


@pytest.mark.parametrize("value", ["-1", "0.5", "many", True])
def test_an_amount_that_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(QuantityError) as caught:
        list(quotas.budgets({"requests.huawei.com/Ascend910B3-memory": value}, DEFAULT_CHIPS))
    assert caught.value.path == "spec.hard[requests.huawei.com/Ascend910B3-memory]"
