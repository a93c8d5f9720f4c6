"""Reading documents: YAML and JSON alike, duplicate keys and rubbish loud."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu import files
from vnpu.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


EXPLODING = "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in pairwise("abcdefgh"))


def parse(text: str | bytes) -> list[Any]:
    content = text.encode() if isinstance(text, str) else text
    return list(files.parse_documents(content, "pods.yaml"))


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("a: 1\n---\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ('{"a": {"b": [1, 2]}}', [{"a": {"b": [1, 2]}}]),
        ("[1, 2]", [[1, 2]]),
        ("{a: 1}", [{"a": 1}]),
        ('{"a": 1}\n---\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ("\ufeffa: 1", [{"a": 1}]),
        ("", []),
        ("base: &b {x: 1}\nmore:\n  <<: *b\n  z: 2\n", [{"base": {"x": 1}, "more": {"x": 1, "z": 2}}]),
        ("base: &b {x: 1}\nmore: {<<: *b, x: 2}\n", [{"base": {"x": 1}, "more": {"x": 2}}]),
        ("more: {<<: [{x: 1}, {x: 2, z: 3}]}\n", [{"more": {"x": 1, "z": 3}}]),
        ("one: &a {<<: &b {<<: {x: 1}, x: 2}, x: 3}\ntwo: *b\n", [{"one": {"x": 3}, "two": {"x": 2}}]),
        ("day: 2026-11-29\ntime: 2026-13-45T00:00:00Z\n", [{"day": "2026-11-29", "time": "2026-13-45T00:00:00Z"}]),
        ('{"a": "\\ud83d\\ude00"}', [{"a": "\N{GRINNING FACE}"}]),
        ("8080: a\ntrue: b\n12:30: c\n1.5: d\n", [{"8080": "a", "true": "b", "12:30": "c", "1.5": "d"}]),
        ('{"a": [1.0, 1e3, 1.5, 1e22]}', [{"a": [1, 1000, 1.5, 1e22]}]),
        ("a: !!int '5'\nb: !!float 3\nc: !!str 12:30\n", [{"a": 5, "b": 3, "c": "12:30"}]),
        ('a: "12"\nb: !!str 0x1\nc: >-\n  on\n', [{"a": "12", "b": "0x1", "c": "on"}]),
        ('{"a": NaN}', [{"a": "NaN"}]),
        ('"<<": 1\n', [{"<<": 1}]),
    ],
)
def test_documents(text: str, documents: list[Any]) -> None:
    assert parse(text) == documents


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2\n", "each key may stand once"),
        ('{"a": 1, "a": 2}', "each key may stand once"),
        ("a: [1\n", "line 2"),
        ("a: !!python/object:os.system x", "line 1"),
        (b"\xff\xfe\x00", "UTF-8"),
        ("[" * 100000, "nested too deep"),
        ("? {a: 1}\n: 2\n", "keys of mappings are texts"),
        ("null: 1\n", "keys of mappings are texts"),
        ('{"a": "\\ud83d"}', "Unicode"),
        ('{"\\uDE00": 1}', "Unicode"),
        ('8080: a\n"8080": b\n', "each key may stand once"),
        ("{<<: {a: 0}, a: 1, a: 2}\n", "each key may stand once"),
        ("&a [*a]\n", "recursive"),
        ("&a {x: *a}\n", "recursive"),
        ("!!set {a}\n", "constructor for the tag"),
        ("!!timestamp text\n", "constructor for the tag"),
        ("!!int text\n", "numbers and truth values"),
        ("!!bool text\n", "numbers and truth values"),
        ('!!int ""\n', "numbers and truth values"),
        ("!!int 12:30\n", "numbers and truth values"),
        ("a: .inf\n", "numbers and truth values"),
        ('{"a": %s}' % ("9" * 5000), "numbers and truth values"),
        ("a: %s" % ("9" * 5000), "numbers and truth values"),
        ("a: &a [x, x, x, x, x, x, x, x, x, x]\n" + EXPLODING, "aliases repeat more than"),
    ],
)
def test_faults_name_the_file(text: str | bytes, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        parse(text)
    assert str(caught.value).startswith("pods.yaml: ")


@given(st.binary(max_size=200) | st.text(alphabet=" {}[]:,-\n\"'&*!|>?#a1<=~\t", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        documents = parse(content)
    except InputError:
        return
    assert None not in documents


def test_yaml_without_pyyaml_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert parse('{"a": 1}') == [{"a": 1}]
    with pytest.raises(InputError, match="pip install"):
        parse("a: 1")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.yaml"):
        files.read_bytes(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="readable file"):
        files.read_bytes(tmp_path)


def test_yaml_that_would_take_minutes_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_YAML", 20)
    assert list(files.parse_documents(b'{"a": "as large as it likes to be"}', "f")) == [
        {"a": "as large as it likes to be"}
    ]
    with pytest.raises(InputError, match=r"at most 20 bytes is read: give JSON"):
        list(files.parse_documents(b"a: as large as it likes to be", "f"))
