from __future__ import annotations

import pytest

from interceptor.hooks import TABLE, hooks, page
from tests.support import native
from vnpu.errors import InputError


def test_the_page_is_made_from_the_table() -> None:
    assert (native.TOP / "docs" / "hooks.md").read_text() == page(TABLE.read_text()), "python -m interceptor.hooks"


def test_every_row_is_a_hook() -> None:
    rows = [line for line in TABLE.read_text().splitlines() if line.startswith("VNPU_")]
    found = list(hooks(TABLE.read_text()))

    assert len(found) == len(rows) > 100
    assert [hook.name for hook in found if hook.library == "OP_COMPILER"] == [
        "aclopCompileAndExecute",
        "aclopCompileAndExecuteV2",
    ]
    assert {hook.section.partition(".")[0] for hook in found} >= {"Memory, runtime", "What a container sees"}


@pytest.mark.parametrize(
    "row", ["VNPU_LAUNCH(RT)", "VNPU_LAUNCHES(RT, rtKernelLaunch)", "VNPU_LAUNCH(CUDA, rtKernelLaunch, (void), ())"]
)
def test_a_malformed_row_is_told(row: str) -> None:
    with pytest.raises(InputError, match="line 2"):
        list(hooks(f"/* Work. */\n{row}\n"))


def test_a_row_belongs_to_a_section() -> None:
    with pytest.raises(InputError, match="below a comment"):
        list(hooks("VNPU_OWN(HAL, halMemAlloc)\n"))
