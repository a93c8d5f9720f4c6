"""How long to wait before a call is tried again."""

from __future__ import annotations

import random
from typing import Final

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0


def pause_s(attempt: int, retry_after_s: float | None = None) -> float:
    """Seconds before the next attempt (from 1): doubled each time, with jitter, never less than the server asks for."""
    pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16))
    return max(retry_after_s or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, guards nothing
