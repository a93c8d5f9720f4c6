"""Numbers that processes share."""

from __future__ import annotations

import os
import threading

import pytest

from webhook.board import Board, Flag


def in_a_child(work: object) -> None:
    """Run something in a forked process, until it ends."""
    pid = os.fork()
    if pid == 0:
        work()  # type: ignore[operator]
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_each_process_has_a_row_and_all_are_added_up() -> None:
    board = Board(("calls", "state"), 3)
    board.add("calls", 5)

    def count(row: int) -> None:
        board.adopt(row)
        board.add("calls")
        board.put("state", row)

    for row in (1, 2, 1):
        in_a_child(lambda row=row: count(row))
    assert board.values("calls") == [5, 2, 1]
    assert board.total("calls") == 8
    assert board.values("state") == [0, 1, 2]
    board.put_in(2, "state", 0)
    assert board.total("state") == 1
    assert board.own("calls") == 5


def test_threads_of_a_process_lose_no_count() -> None:
    board = Board(("calls",), 1)

    def count() -> None:
        for _ in range(20_000):
            board.add("calls")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert board.total("calls") == 80_000


def test_two_columns_of_one_name() -> None:
    with pytest.raises(AssertionError, match="two columns"):
        Board((("a", 1), ("a", 1)), 1)


def test_a_flag_is_seen_by_all() -> None:
    flag = Flag()
    assert not flag
    in_a_child(flag.raise_)
    assert flag
