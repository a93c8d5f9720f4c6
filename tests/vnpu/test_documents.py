"""Documents and the places that errors name."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from vnpu.documents import Document, DocumentError, read
from vnpu.errors import InputError


def write(folder: Path, text: str) -> Path:
    path = folder / "app.yaml"
    path.write_text(text)
    return path


def test_documents_are_numbered(tmp_path: Path) -> None:
    found = list(read(write(tmp_path, "a: 1\n---\n---\nb: 2\n")))
    assert [(one.number, one.path, one.value) for one in found] == [(1, "", {"a": 1}), (2, "", {"b": 2})]


def test_a_list_gives_its_items(tmp_path: Path) -> None:
    text = json.dumps({"kind": "List", "items": [{"kind": "Pod"}, 7]})
    found = list(read(write(tmp_path, text)))
    assert [(one.path, one.value) for one in found] == [("items[0]", {"kind": "Pod"}), ("items[1]", 7)]
    assert found[1].place.endswith("app.yaml, document 1, items[1]")
    assert list(read(write(tmp_path, '{"kind": "List", "items": null}'))) == []
    assert list(read(write(tmp_path, '{"kind": "List"}'))) == []


def test_items_of_a_typed_list_get_their_kind(tmp_path: Path) -> None:
    text = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {}}, {"kind": "Odd"}]})
    found = [one.value for one in read(write(tmp_path, text))]
    assert found == [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
        {"apiVersion": "v1", "kind": "Odd"},
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n---\nb: [\n", r"app\.yaml, document 2: \"line \d+, column \d+: .*YAML or JSON is expected"),
        ("a: 1\na: 2\n", r"app\.yaml, document 1: \"a\": each key may stand once"),
        ('{"kind": "List", "items": {}}', r"app\.yaml, document 1: items: {}: a list is expected"),
    ],
)
def test_unreadable_documents_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        list(read(write(tmp_path, text)))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.yaml: \"No such file"):
        list(read(tmp_path / "gone.yaml"))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a: 1")))
    (one,) = read(Path("-"))
    assert one.place == "standard input, document 1"


def test_the_block_names_the_document() -> None:
    document = Document("app.yaml", 2, "items[3]", {})
    with pytest.raises(DocumentError) as caught, document:
        raise InputError("spec.replicas", "x", "a whole number is expected")
    assert str(caught.value) == 'app.yaml, document 2: items[3].spec.replicas: "x": a whole number is expected'
    with pytest.raises(DocumentError, match=r"items\[3\]: .*nested too deep"), document:
        raise RecursionError
    with pytest.raises(ZeroDivisionError), document:
        _ = 1 / 0
