"""docs/metrics.md lists every metric that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interceptor.exporter.families import COUNTERS, GAUGES
from webhook.extender.metrics import Metrics as ExtenderMetrics
from webhook.metrics import Late, Metrics, Shed, Watched
from webhook.review import Decision, Endpoint, Reason
from webhook.wire import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import StrEnum

PAGE = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text()
_HEAD = re.compile(r"^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)$", re.MULTILINE)


def _exposed() -> Iterator[tuple[str, str]]:
    """Name and row of each metric of webhook and extender, as they say it themselves."""
    for text in (Metrics().exposed(), ExtenderMetrics().exposed()):
        for name, say, kind in _HEAD.findall(text.decode()):
            yield name, f"{kind} | {say.removesuffix('.')}"


def _exported() -> Iterator[tuple[str, str]]:
    for name, (labels, say) in GAUGES.items():
        yield name, f"gauge | {', '.join(labels)} | {say}"
    for name, (labels, say) in COUNTERS.items():
        yield f"{name}_total", f"counter | {', '.join(labels)} | {say}"


def test_each_metric_has_its_row() -> None:
    missing = [f"| `{name}` | {rest} |" for name, rest in (*_exposed(), *_exported())]
    missing = [row for row in missing if row not in PAGE]
    assert not missing, "\n".join(["docs/metrics.md lacks", *missing])


@pytest.mark.parametrize("words", [(Endpoint,), (Decision,), (Reason, Unreadable), (Shed,), (Late,), (Watched,)])
def test_the_values_of_each_label_are_listed(words: tuple[type[StrEnum], ...]) -> None:
    assert f"| {', '.join(f'`{word}`' for kind in words for word in kind)} |" in PAGE


def test_no_row_is_of_a_metric_that_is_not_there() -> None:
    known = {name for name, _ in (*_exposed(), *_exported())}
    rows = set(re.findall(r"^\| `((?:vnpu|hami)_\w+)`", PAGE, re.MULTILINE))
    # The extender's gauges are made with its engine.
    assert {name for name in rows - known if not name.startswith("vnpu_extender_")} == set()
