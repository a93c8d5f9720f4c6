"""A driver that hangs holds up nobody, and is heard again when it answers."""

from __future__ import annotations

import threading

import pytest

from interceptor.devices import DevicesError
from interceptor.patience import Question
from tests.support.containers import PATIENCE_S, eventually


def test_an_answer_is_handed_on_each_time_anew() -> None:
    answers = iter((1, 2))
    ask = Question("it", lambda: next(answers), PATIENCE_S)
    assert (ask(), ask()) == (1, 2)


def test_what_goes_wrong_is_raised_where_it_is_waited_for() -> None:
    def refuse() -> None:
        raise DevicesError("no driver")

    ask = Question("it", refuse, PATIENCE_S)
    for _ in range(2):
        with pytest.raises(DevicesError, match="no driver"):
            ask()


def test_one_question_hangs_at_a_time_and_a_late_answer_is_not_taken_for_a_new_one() -> None:
    go_on = threading.Event()
    asked = []

    def hang() -> int:
        asked.append(threading.current_thread())
        go_on.wait(PATIENCE_S)
        return len(asked)

    ask = Question("libdcmi", hang, 0.05)
    for _ in range(3):
        with pytest.raises(DevicesError, match=r"libdcmi: no answer within 0\.05 s"):
            ask()
    assert len(asked) == 1
    go_on.set()
    asked[0].join(PATIENCE_S)
    ask._patience_s = PATIENCE_S
    assert eventually(lambda: ask() == len(asked) > 1)
