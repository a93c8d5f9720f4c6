"""Switching sharing on, chip by chip, once in the life of this process. A command that hangs holds up nobody."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from interceptor.devices import DevicesError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from interceptor.devices import Device

_PATIENCE_S: Final = 5.0
"""A chip had better not be called unhealthy for a moment at each start."""
_UNDER_WAY: Final = "its sharing is being switched on, and npu-smi has not answered yet"


class Sharing:
    """Which chips containers can share."""

    def __init__(self, share: Callable[[Device], None], changed: Callable[[], None]) -> None:
        """Take the way to switch.

        Args:
            share: switches sharing of a chip on; raises DevicesError where that fails.
            changed: called when more is known.
        """
        self._share = share
        self._changed = changed
        self._one_at_a_time = threading.Lock()
        self._faults: dict[str, str] = {}

    def faults(self, devices: Iterable[Device]) -> Mapping[str, str]:
        """Why chips cannot be shared, by UUID, ``""`` where they can; the new ones among them are switched first.

        Args:
            devices: those that are to be shared; one with a fault is not asked for, as long as it has that.
        """
        new = [device for device in devices if device.uuid not in self._faults and not device.fault]
        if new:
            self._faults |= {device.uuid: _UNDER_WAY for device in new}
            worker = threading.Thread(target=self._switch, args=(new,), name="sharing", daemon=True)
            worker.start()
            worker.join(_PATIENCE_S)
        return dict(self._faults)

    def _switch(self, devices: Iterable[Device]) -> None:
        for device in devices:
            with self._one_at_a_time:
                try:
                    self._share(device)
                    fault = ""
                except DevicesError as error:
                    fault = f"it cannot be shared: {error}"
            self._faults[device.uuid] = fault
            self._changed()
