"""What admission answers: assignments, warnings and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from vnpu.errors import FieldError

APPEND: Final = "-"
"""As the last element of a path: one more element at the end of the list."""

_REFUSALS_SHOWN: Final = 20
"""A pod of a thousand faulty containers gets a message that can still be read."""


@dataclass(frozen=True, slots=True)
class Set:
    """One assignment.

    Attributes:
        path: from the document down, keys as texts and places in lists as whole numbers; :data:`APPEND` as the last
            element appends to a list. Parents may be absent or null.
        value: what shall stand there, as JSON.
    """

    path: tuple[str | int, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one object.

    Attributes:
        sets: what is written; empty when nothing changes, and always when the object is refused.
        warnings: sentences for the user that start with the path of the field.
        refusals: every fault that was found; empty when the object is allowed.
    """

    sets: tuple[Set, ...] = ()
    warnings: tuple[str, ...] = ()
    refusals: tuple[FieldError, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.refusals

    @property
    def message(self) -> str:
        """All refusals for people, on one line; ``""`` when there is none."""
        if len(self.refusals) < 2:
            return "".join(map(str, self.refusals))
        shown = [f"({number}) {fault}" for number, fault in enumerate(self.refusals[:_REFUSALS_SHOWN], start=1)]
        more = len(self.refusals) - len(shown)
        return f"{len(self.refusals)} faults: {'; '.join(shown)}" + (f"; and {more} more" if more else "")


NOTHING: Final = Outcome()
"""Allowed as it is."""
