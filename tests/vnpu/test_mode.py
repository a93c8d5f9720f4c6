"""The decision table of the mode, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from vnpu import names
from vnpu.errors import AnnotationError
from vnpu.mode import Mode, decide


@pytest.mark.parametrize("core_asked", [True, False])
@pytest.mark.parametrize("default", list(Mode))
@pytest.mark.parametrize("mode", list(Mode))
def test_the_annotation_rules(mode: Mode, default: Mode, core_asked: bool) -> None:  # noqa: FBT001
    assert decide({names.MODE: mode.value}, core_asked=core_asked, default=default) is mode


@pytest.mark.parametrize("default", list(Mode))
def test_core_means_soft_without_the_annotation(default: Mode) -> None:
    assert decide({}, core_asked=True, default=default) is Mode.SOFT


@pytest.mark.parametrize("default", list(Mode))
def test_neither_gives_the_default(default: Mode) -> None:
    assert decide({"other": "x"}, core_asked=False, default=default) is default


@pytest.mark.parametrize(
    "bad", ["hami_core", "", "HAMI-CORE", "Hami-Core", " hami-core", "soft", None, 1, True, [], {}]
)
def test_every_other_value_is_refused_and_both_are_listed(bad: Any) -> None:
    with pytest.raises(AnnotationError) as caught:
        decide({names.MODE: bad}, core_asked=True, default=Mode.SOFT)
    assert "hami-core" in str(caught.value)
    assert "template" in str(caught.value)
    assert caught.value.path == "metadata.annotations[huawei.com/vnpu-mode]"
