"""One job at a time, and the others get their turn."""

from __future__ import annotations

import threading
from functools import partial

from tests.support.server import TIMEOUT_S
from webhook.aside import Aside


def test_each_job_is_followed_by_a_rest_as_long_as_its_work() -> None:
    worked, events, done = [0.0], list[tuple[str, float]](), threading.Event()

    def work(seconds: float) -> None:
        worked[0] += seconds
        events.append(("work", seconds))

    aside = Aside(lambda: worked[0], lambda seconds: events.append(("rest", seconds)))
    for seconds in (2.0, 0.5):
        aside.submit(partial(work, seconds))
    aside.submit(done.set)
    assert done.wait(TIMEOUT_S)
    assert events[:4] == [("work", 2.0), ("rest", 2.0), ("work", 0.5), ("rest", 0.5)]


def test_what_has_not_begun_at_the_end_is_not_done() -> None:
    begun, go_on, last = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go_on.wait(TIMEOUT_S)

    aside = Aside(rest=lambda _: last.set())
    second = list[int]()
    aside.submit(first)
    aside.submit(lambda: second.append(1))
    assert begun.wait(TIMEOUT_S)
    aside.end()
    go_on.set()
    assert last.wait(TIMEOUT_S), "the job that had begun is finished"
    assert second == []
