"""Mappings in Kubernetes objects: there, absent, or something else."""

from __future__ import annotations

from typing import Any

import pytest

from vnpu.errors import InputError
from vnpu.objects import annotation_path, annotations_of, mapping_at


def test_what_is_there_is_found() -> None:
    pod = {"metadata": {"annotations": {"a": "b"}}, "status": {"allocatable": {"cpu": "8"}}}
    assert annotations_of(pod) == {"a": "b"}
    assert mapping_at(pod, "status", "allocatable") == {"cpu": "8"}


@pytest.mark.parametrize("pod", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"annotations": None}}])
def test_what_is_absent_or_null_is_empty(pod: dict[str, Any]) -> None:
    assert annotations_of(pod) == {}


@pytest.mark.parametrize("odd", ["x", [], 0, False, 7])
def test_what_is_no_mapping_is_named(odd: Any) -> None:
    for pod, path in (({"metadata": odd}, "metadata"), ({"metadata": {"annotations": odd}}, "metadata.annotations")):
        with pytest.raises(InputError, match="a mapping is expected") as caught:
            annotations_of(pod)
        assert (caught.value.path, caught.value.value) == (path, odd)


def test_where_an_annotation_stands() -> None:
    assert annotation_path("huawei.com/vnpu-mode") == "metadata.annotations[huawei.com/vnpu-mode]"
    assert annotation_path("predicate-time") == "metadata.annotations.predicate-time"
