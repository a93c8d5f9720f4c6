"""What the limiter refuses, in which words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from vnpu import names

if TYPE_CHECKING:
    from tests.support.containers import Container

BAD_SETTINGS = [
    ({"memory": None}, names.ENV_MEMORY, "absent"),
    ({"memory": "0"}, names.ENV_MEMORY, '"0"'),
    ({"memory": "8Gi"}, names.ENV_MEMORY, '"8Gi"'),
    ({"memory": ""}, names.ENV_MEMORY, '""'),
    ({"priority": "0"}, names.ENV_PRIORITY, '"0"'),
    ({"priority": "101"}, names.ENV_PRIORITY, '"101"'),
    ({"devices": None}, names.ENV_VISIBLE_DEVICES, "absent"),
    ({"devices": "all"}, names.ENV_VISIBLE_DEVICES, '"all"'),
    ({"extra": {names.ENV_CEILING: "yes"}}, names.ENV_CEILING, '"yes"'),
    ({"extra": {names.ENV_GLOBAL_SHM: "registry"}}, names.ENV_GLOBAL_SHM, '"registry"'),
    ({"extra": {names.ENV_GLOBAL_SHM: None}}, names.ENV_GLOBAL_SHM, "absent"),
    ({"extra": {names.ENV_LOCAL_SHM: "mirror"}}, names.ENV_LOCAL_SHM, '"mirror"'),
]


@pytest.mark.parametrize("verb", ["start", "run"])
@pytest.mark.parametrize(("change", "name", "value"), BAD_SETTINGS)
def test_bad_settings_are_refused_by_name(
    container: Container, verb: str, change: dict[str, str | None], name: str, value: str
) -> None:
    for attribute, text in change.items():
        setattr(container, attribute, text)
    refused = container.limiter(verb)

    assert refused.returncode == 2
    assert re.fullmatch(rf"limiter: {name}: {re.escape(value)}: .*(is|are) allowed\n", refused.stderr)
    assert not container.region_path.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("begin",),
        ("start", "--sleep"),
        ("start", "--sleep", "-1"),
        ("start", "--sleep", "1s"),
        ("start", "--sleep", "99999999999999999999"),
        ("start", "--"),
        ("start", "now"),
        ("status", "--yaml"),
        ("stop", "--json"),
        ("run", "fast"),
        ("check", "all"),
    ],
)
def test_usage(container: Container, arguments: tuple[str, ...]) -> None:
    refused = container.limiter(*arguments)

    assert refused.returncode == 100
    assert refused.stderr.startswith("usage: limiter")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_is_no_fault(container: Container, option: str) -> None:
    told = container.limiter(option)

    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("usage: limiter")
