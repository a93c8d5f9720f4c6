"""Files that change are taken when they have settled and can be used."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu.errors import InputError
from webhook.reload import Watch


def watch(file: Path) -> Watch[str]:
    def load() -> str:
        text = file.read_text() if file.exists() else "absent"
        if text.startswith("bad") or text == "absent":
            raise InputError(str(file), text, "something good is expected")
        return text

    return Watch((file, None), load)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("one")
    return path


def test_what_cannot_be_used_at_the_start_is_an_error(file: Path) -> None:
    file.write_text("bad")
    with pytest.raises(InputError, match="something good"):
        watch(file)


@pytest.mark.parametrize("odd", ["pipe", "device"])
def test_nobody_waits_for_what_is_no_file(odd: str, file: Path) -> None:
    watched = watch(file)
    file.unlink()
    if odd == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    assert [watched.poll() for _ in range(3)] == [False, True, False]
    assert watched.value == "one"
    assert "a regular file is expected" in str(watched.error)
    file.unlink()
    file.write_text("two")
    assert [watched.poll() for _ in range(2)] == [False, True]
    assert (watched.value, watched.error) == ("two", None)


def test_nothing_new(file: Path) -> None:
    watched = watch(file)
    file.write_text("one")
    assert [watched.poll() for _ in range(3)] == [False, False, False]
    assert (watched.value, watched.generation) == ("one", 1)


def test_it_is_taken_when_it_looked_the_same_twice(file: Path) -> None:
    watched = watch(file)
    file.write_text("two")
    assert not watched.poll()
    file.write_text("three")
    assert not watched.poll()
    assert watched.value == "one"
    assert watched.poll()
    assert (watched.value, watched.generation, watched.error) == ("three", 2, None)
    assert not watched.poll()


def test_a_bad_one_is_told_once_and_the_old_goes_on(file: Path) -> None:
    watched = watch(file)
    file.write_text("bad")
    assert [watched.poll() for _ in range(4)] == [False, True, False, False]
    assert (watched.value, watched.generation) == ("one", 1)
    assert "bad" in str(watched.error)
    file.write_text("one")
    assert [watched.poll() for _ in range(3)] == [False, True, False]
    assert (watched.value, watched.generation, watched.error) == ("one", 1, None), "it is what it was"


def test_one_that_is_gone_and_comes_back(file: Path) -> None:
    watched = watch(file)
    file.unlink()
    assert [watched.poll() for _ in range(3)] == [False, True, False]
    assert watched.error is not None
    file.write_text("two")
    assert [watched.poll() for _ in range(2)] == [False, True]
    assert watched.value == "two"


def test_one_that_changes_while_it_is_loaded_is_not_taken(file: Path) -> None:
    changes = iter(["first half", "second half", "second half"])

    def load() -> str:
        before = file.read_text()
        file.write_text(next(changes, before))
        return before

    watched = Watch((file,), load)
    file.write_text("new")
    taken = [watched.value for _ in range(6) if watched.poll()]
    assert taken == ["second half"]


@given(st.lists(st.sampled_from(["good", "fine", "bad 1", "bad 2", None]), max_size=12))
def test_whatever_happens_the_value_is_the_last_good_one(contents: list[str | None]) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.write_text("good")
        watched = watch(file)
        last_good = "good"
        for content in contents:
            file.write_text(content or file.read_text())
            watched.poll()
            watched.poll()
            bad = file.read_text().startswith("bad")
            last_good = last_good if bad else file.read_text()
            assert watched.value == last_good
            assert (watched.error is not None) == bad
