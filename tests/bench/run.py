"""``make bench``: measure, print a table, exit 1 where a figure leaves the range that ranges.toml gives it.

``make bench FIGURES='share launch'`` measures what has one of these words in its name, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import admission, costs, extender, node, planning, reliability, shares
from tests.bench.figure import Effort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.bench.figure import Figure

RANGES = Path(__file__).parent / "ranges.toml"

MEASUREMENTS: Mapping[str, Callable[[Effort], Iterator[Figure]]] = {
    "review": admission.review_figure,
    "server": admission.server_figures,
    "rotation": reliability.rotation_figures,
    "restart": reliability.restart_figures,
    "slow": reliability.slow_figures,
    "overload": reliability.overload_figures,
    "start": reliability.start_figures,
    "import": admission.import_figures,
    "plan_curve": planning.curve_figures,
    "plan_memory": planning.memory_figure,
    "filter": planning.filter_figures,
    "launch": costs.launch_figures,
    "memory": costs.memory_figures,
    "preload": costs.preload_figure,
    "crowd": costs.crowd_figure,
    "lone": shares.lone_figures,
    **{f"share_{name}": partial(shares.share_figures, name) for name in shares.CASES},
    "share_sync_loop": shares.sync_loop_figure,
    "share_after_pause": shares.pause_figure,
    "share_collectives": shares.collectives_figure,
    "share_after_soak": shares.soak_figure,
    "ceiling": shares.ceiling_figure,
    "recovery": shares.recovery_figures,
    "scrape": node.scrape_figure,
    "extender_filter": extender.filter_figures,
    "extender_process": extender.process_figures,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure, and compare with ranges.toml.")
    parser.add_argument("names", nargs="*", help="words of which a measurement's name has one (default: all)")
    parser.add_argument("--rounds", type=int, default=20, help="turns of what is compared (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="how long a card is watched (default %(default)s)")
    options = parser.parse_args()
    chosen = [
        measure
        for name, measure in MEASUREMENTS.items()
        if not options.names or any(word in name for word in options.names)
    ]
    if not chosen:
        parser.error(f"nothing has one of these words in its name: {', '.join(MEASUREMENTS)}")
    ranges = tomllib.loads(RANGES.read_text())
    effort = Effort(options.rounds, options.seconds)
    say_load()
    missed = False
    for measure in chosen:
        for figure in measure(effort):
            right = within(figure.value, ranges[figure.name])
            missed = missed or not right
            say(figure, ranges, right=right)
    say_load()
    return 1 if missed else 0


def within(value: float, limits: Mapping[str, float]) -> bool:
    return limits.get("min", value) <= value <= limits.get("max", value)


def say(figure: Figure, ranges: Mapping[str, Mapping[str, float]], *, right: bool) -> None:
    limits = ", ".join(f"{word} {number:g}" for word, number in ranges[figure.name].items())
    width = max(map(len, ranges))
    mark, disturbed = ("ok", "") if right else ("MISSED", f"; load average {os.getloadavg()[0]:.1f}")
    sys.stdout.write(f"{figure.name:{width}}  {figure.value:8.2f}  {limits:16}  {mark:6}  {figure.note}{disturbed}\n")
    sys.stdout.flush()


def say_load() -> None:
    """Who else uses the machine decides how far times of the clock can be believed."""
    load = " ".join(f"{average:.1f}" for average in os.getloadavg())
    sys.stdout.write(f"{os.cpu_count()} processors, load average {load}\n")


if __name__ == "__main__":
    sys.exit(main())
