"""npu-smi, the driver's command: chips where libdcmi cannot be loaded, and the switch for sharing a chip."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from interceptor.devices import Device, DevicesError, Machine, machine_of, uuid_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TIMEOUT_S: Final = 30.0
_COLUMNS: Final = re.compile(r"\s{2,}|\t")
_WORDS: Final = 5
"""Of a die."""


@dataclass(frozen=True, slots=True)
class NpuSmi:
    """The command that runs it, for example ``("/usr/local/sbin/npu-smi",)``."""

    command: tuple[str, ...]

    def machine(self) -> Machine:
        """The chips and their health, as they are now.

        Raises:
            DevicesError: it cannot be run, or names no chip.
        """
        chips = list(_chips(self._run("info", "-m")))
        if not chips:
            raise DevicesError("npu-smi info -m: no chip is listed")
        devices, faults = [], []
        for card, device, physical in chips:
            try:
                devices.append(self._device(card, device, physical))
            except DevicesError as error:
                faults.append(f"chip {device} of card {card}: {error}")
        driver = _field(self._fields("info", "-t", "board", "-i", str(chips[0][0])), "Software Version")
        return machine_of("npu-smi", driver, devices, faults)

    def share(self, card: int, device: int) -> None:
        """Let containers share a chip: ``device-share``, which stays on until the machine starts again.

        A chip may refuse because it is in use; where it is shared already, that is no fault.

        Raises:
            DevicesError: npu-smi refuses, or does not say that it did it, and the chip is not shared.
        """
        where = ("-t", "device-share", "-i", str(card), "-c", str(device))
        try:
            self._switch("set", *where, "-d", "1")
        except DevicesError:
            with suppress(DevicesError):
                if self._fields("info", *where).get("Device-share Status") == "True":
                    return
            raise

    def _switch(self, *arguments: str) -> None:
        output = self._run(*arguments, answer="Y\n")
        if dict(_pairs(output)).get("Status") != "OK":
            raise DevicesError(f"npu-smi {' '.join(arguments)}: OK is expected, and it says {_brief(output)}")

    def _device(self, card: int, device: int, physical: int) -> Device:
        where = ("-i", str(card), "-c", str(device))
        board = self._fields("info", "-t", "board", *where)
        words = (board.get("VDie ID") or _field(board, "Die ID")).split()
        try:
            uuid = uuid_of([int(word, 16) for word in words])
        except ValueError as error:
            raise DevicesError(f"the die is called {' '.join(words)}, hexadecimal words are expected") from error
        if len(words) != _WORDS:
            raise DevicesError(f"the die is called {' '.join(words)}, {_WORDS} words are expected")
        return Device(uuid, _field(board, "Chip Name"), card, device, physical, self._fault(where))

    def _fault(self, where: Sequence[str]) -> str:
        try:
            fields = self._fields("info", "-t", "health", *where)
        except DevicesError as error:
            return str(error)
        health = next((value for name, value in fields.items() if name.startswith("Health")), "nothing")
        return "" if health == "OK" else f"npu-smi says of its health: {health}"

    def _fields(self, *arguments: str) -> Mapping[str, str]:
        return dict(_pairs(self._run(*arguments)))

    def _run(self, *arguments: str, answer: str = "") -> str:
        said = f"npu-smi {' '.join(arguments)}"
        try:
            done = subprocess.run(  # noqa: S603 - the command is the administrator's, the arguments are numbers
                [*self.command, *arguments],
                input=answer,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise DevicesError(f"{said}: no answer within {_TIMEOUT_S:g} s") from error
        except OSError as error:
            raise DevicesError(f"{said}: {error}") from error
        if done.returncode:
            raise DevicesError(f"{said}: exit {done.returncode}: {_brief(done.stderr or done.stdout)}")
        return done.stdout


def _chips(table: str) -> Iterator[tuple[int, int, int]]:
    """Card, chip and physical number of each row of ``info -m``; microcontrollers have no logic id.

    Newer versions have a column for the physical number. Without it the logic id stands for it: on the host the two
    are the same, as long as every chip has started.
    """
    rows = [_COLUMNS.split(line.strip()) for line in table.splitlines() if line.strip()]
    head = rows[0] if rows else []
    column = next((index for index, name in enumerate(head) if "Phy" in name), 2)
    for row in rows[1:]:
        if len(row) >= len(head) > column and all(row[index].isdecimal() for index in (0, 1, 2, column)):
            yield int(row[0]), int(row[1]), int(row[column])


def _pairs(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _field(fields: Mapping[str, str], name: str) -> str:
    value = fields.get(name)
    if not value:
        raise DevicesError(f"npu-smi does not tell the {name}")
    return value


def _brief(output: str) -> str:
    return " ".join(output.split())[:200] or "nothing"
