"""The fields of a configuration file: read in their type, refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vnpu.errors import ABSENT, ConfigError
from vnpu.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable


def test_values_in_their_type() -> None:
    fields = Fields({"name": "n1", "cards": 8, "soft": True, "empty": "", "none": None}, "nodes[0]")
    assert (fields.name("name"), fields.number("cards", low=1), fields.boolean("soft")) == ("n1", 8, True)
    assert (fields.text("name"), fields.text("none"), fields.text("gone")) == ("n1", "", "")
    assert (fields.name("empty", default="d"), fields.number("none", low=1, default=3)) == ("d", 3)
    assert (fields.boolean("gone"), fields.boolean("none", default=True)) == (False, True)
    assert fields.get("none") is None
    assert fields.get("gone") is ABSENT
    assert fields.key("a.b") == "nodes[0][a.b]"


@pytest.mark.parametrize(
    ("value", "read", "words"),
    [
        ("", lambda fields: fields.name("x"), "non-empty text"),
        (" n1", lambda fields: fields.name("x"), "without surrounding spaces"),
        ("n\x1b1", lambda fields: fields.name("x"), "non-empty text"),
        (7, lambda fields: fields.name("x", default="d"), "non-empty text"),
        (7, lambda fields: fields.text("x"), "a text is expected"),
        ("8", lambda fields: fields.number("x", low=1), "a whole number from 1 to 2147483647"),
        (True, lambda fields: fields.number("x", low=0), "a whole number"),
        (8.0, lambda fields: fields.number("x", low=0), "a whole number"),
        (0, lambda fields: fields.number("x", low=1, high=4), "from 1 to 4"),
        (None, lambda fields: fields.number("x", low=1), "a whole number"),
        ("true", lambda fields: fields.boolean("x"), "without quotes"),
        (1, lambda fields: fields.boolean("x"), "true or false"),
    ],
)
def test_faults_name_the_field(value: Any, read: Callable[[Fields], Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read(Fields({"x": value}, "nodes[0]"))
    assert (caught.value.path, caught.value.value) == ("nodes[0].x", value)


def test_an_unknown_key_is_refused_with_the_nearest_name() -> None:
    fields = Fields({"name": "n1", "card": 8}, "nodes[0]")
    with pytest.raises(ConfigError, match=r"nodes\[0\]\.card: 8: unknown key; did you mean cards\?; known are name, "):
        fields.refuse_unknown(("name", "cards"))
    Fields({"name": "n1"}).refuse_unknown(("name", "cards"))
    assert list(Fields({"zzz": 1}).unknown(("name",))) == [("zzz", "")]


@pytest.mark.parametrize("value", [None, [], "text", 7, ABSENT])
def test_only_a_mapping_has_fields(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"nodes\[0\]: .*: a mapping is expected"):
        Fields(value, "nodes[0]")
