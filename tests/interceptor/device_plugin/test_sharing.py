"""Sharing is switched on once for each chip, and a chip whose command hangs keeps no other from being offered."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from interceptor.device_plugin import sharing
from interceptor.device_plugin.sharing import Sharing
from interceptor.devices import Device, DevicesError
from tests.support.containers import PATIENCE_S, eventually
from tests.support.device_plugin import device

if TYPE_CHECKING:
    import pytest


def test_each_chip_is_switched_once_and_what_refuses_says_why() -> None:
    asked = []

    def share(one: Device) -> None:
        asked.append(one.uuid)
        if one.uuid == "U1":
            raise DevicesError("busy")

    switch = Sharing(share, lambda: None)
    for _ in range(2):
        assert switch.faults([device(0), device(1)]) == {"U0": "", "U1": "it cannot be shared: busy"}
    assert asked == ["U0", "U1"]


def test_a_chip_with_a_fault_is_asked_for_when_it_is_well_again() -> None:
    asked = []
    switch = Sharing(lambda one: asked.append(one.uuid), lambda: None)
    assert switch.faults([device(0, fault="a major alarm")]) == {}
    assert switch.faults([device(0)]) == {"U0": ""}
    assert asked == ["U0"]


def test_a_command_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_PATIENCE_S", 0.05)
    go_on, changed = threading.Event(), threading.Event()

    def share(_: Device) -> None:
        go_on.wait(PATIENCE_S)

    switch = Sharing(share, changed.set)
    assert "not answered yet" in switch.faults([device(0)])["U0"]
    go_on.set()
    assert changed.wait(PATIENCE_S)
    assert eventually(lambda: switch.faults([device(0)]) == {"U0": ""})
