from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.support.torture import torture

if TYPE_CHECKING:
    from pathlib import Path


def test_promises_hold_whoever_dies_when(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    outcome = torture(tmp_path, seconds=6, processes=8, seed=seed)

    told = f"seed {seed}: {outcome}"
    assert outcome.wrong == (), told
    assert outcome.events > 10, told
