"""The fields of a configuration file: read in their type, refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vnpu.errors import ABSENT, ConfigError, path_of
from vnpu.fields import Fields, Form

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
        ("", lambda fields: fields.name("x"), "non-empty"),
        (" n1", lambda fields: fields.name("x"), "without surrounding spaces"),
        ("n\x1b1", lambda fields: fields.name("x"), "printable"),
        (7, lambda fields: fields.name("x", default="d"), "a non-empty, printable text"),
        ("a b", lambda fields: fields.name("x", form=Form.SCHEDULER), "such as hami-scheduler"),
        ("X_Y", lambda fields: fields.name("x", "", form=Form.SUBDOMAIN), "lower-case"),
        ("volcano", lambda fields: fields.names("x", ()), "a list of names"),
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


def test_a_list_of_names() -> None:
    fields = Fields({"x": ["a", "b c"], "none": None, "empty": []})
    assert [fields.names(name, ("d",)) for name in ("x", "none", "gone", "empty")] == [("a", "b c"), ("d",), ("d",), ()]


@pytest.mark.parametrize("entry", ["", " a", "a\nb", 7, None])
def test_each_entry_of_a_list_names_something(entry: Any) -> None:
    with pytest.raises(ConfigError, match="printable text without surrounding spaces") as caught:
        Fields({"x": ["a", entry]}).names("x", ())
    assert (caught.value.path, caught.value.value) == ("x[1]", entry)


@pytest.mark.parametrize("key", [1, True, None, 2.5, ("a",)])
def test_a_key_that_is_no_text_is_unknown(key: Any) -> None:
    with pytest.raises(ConfigError, match="unknown key; known are name") as caught:
        Fields({key: 2}).refuse_unknown(("name",))
    assert (caught.value.path, caught.value.value) == (path_of([str(key)]), 2)


FORMS = [
    (Form.COMMON_WORD, ["A", "Ascend910B4-1", "a_b.c", "A" * 43], ["", "A" * 44, "-A", "A.", "A/B", "A\n", "٣"]),
    (
        Form.RESOURCE,
        ["huawei.com/Ascend910B3", "a/b", f"{'a' * 63}.b/{'B' * 63}", "a" * 253 + "/b"],
        ["npu", "/npu", "a/", "a/b/c", "A/b", "a_b/c", "-a/b", "a./b", f"a/{'b' * 64}", "a" * 254 + "/b", "a/b\n"],
    ),
    (Form.SCHEDULER, ["volcano", "My_Scheduler.2", "a" * 63], ["a b", "a" * 64, "a/b", "-a", "ä", "a\n"]),
    (Form.SUBDOMAIN, ["ascend", "a.b-c", "a" * 253], ["X_Y", "Ascend", "a b", "a" * 254, "a..b", ".a", "a-", "a\n"]),
]


@pytest.mark.parametrize(("form", "good", "bad"), FORMS, ids=lambda value: getattr(value, "name", ""))
def test_the_forms_of_names(form: Form, good: list[str], bad: list[str]) -> None:
    assert [name for name in good if not form.fits(name)] == []
    assert [name for name in bad if form.fits(name)] == []


@pytest.mark.parametrize("value", [None, [], "text", 7, ABSENT])
def test_only_a_mapping_has_fields(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"nodes\[0\]: .*: a mapping is expected"):
        Fields(value, "nodes[0]")
