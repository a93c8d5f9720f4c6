"""The library as its documentation shows it."""

from __future__ import annotations

import re

import pytest

import vnpu

DOCUMENTED = re.findall(r"^    (from .+)$", vnpu.__doc__ or "", re.MULTILINE)


def test_every_documented_line_works() -> None:
    assert len(DOCUMENTED) == 5
    for line in DOCUMENTED:
        namespace: dict[str, object] = {}
        exec(line, namespace)
        names = line.partition(" import ")[2].split(", ")
        assert set(names) <= namespace.keys()


def test_every_exported_name_is_there_and_is_what_its_home_calls_it() -> None:
    for name in vnpu.__all__:
        value = getattr(vnpu, name)
        assert getattr(value, "__name__", name) == name
    assert sorted(vnpu.__all__) == sorted(vnpu._HOME_OF)


def test_functions_are_functions_whatever_was_imported_before() -> None:
    from vnpu.fit import fit, place, plan  # noqa: PLC0415

    assert all(map(callable, (fit, place, plan)))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Chips'"):
        _ = vnpu.Chips  # type: ignore[attr-defined]
