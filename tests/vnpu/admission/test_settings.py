"""The settings file: typed, with defaults, and loud about what it does not know."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu.admission.settings import (
    DEFAULT_ALLOCATORS,
    DevicePlugin,
    Hook,
    Limiter,
    OnTimeout,
    Settings,
    Share,
    Templates,
    UnknownChips,
    parse_settings,
)
from vnpu.errors import ConfigError
from vnpu.mode import Mode


@pytest.mark.parametrize("document", [None, {}, dict.fromkeys(["share", "limiter", "allocators", "maxSoftCards"])])
def test_what_is_left_out_has_its_default(document: Any) -> None:
    settings = parse_settings(document)
    assert settings == Settings()
    assert settings.default_mode is Mode.HARD
    assert settings.scheduler_name == settings.runtime_class_name == ""
    assert settings.limiter == Limiter("/usr/local/hami-vnpu-core/limiter", Hook.NATIVE)
    assert settings.unknown_chips is UnknownChips.IGNORE
    assert settings.templates is Templates.WARN
    assert settings.soft_card_limit == 1
    assert settings.default_core_percent == 0
    assert not (settings.allow_privileged)
    assert not (settings.allow_node_name)
    assert not settings.allow_reserved_env
    assert "system:serviceaccount:volcano-system:volcano-scheduler" in settings.allocators
    assert "system:serviceaccount:kube-system:hami-scheduler" in settings.allocators


def test_every_key_is_read() -> None:
    document = {
        "defaultMode": "hami-core",
        "schedulerName": "s",
        "knownSchedulers": ["k"],
        "volcanoSchedulers": ["v"],
        "runtimeClassName": "ascend",
        "defaultCorePercent": 10,
        "share": "ceiling",
        "onTimeout": "deny",
        "limiter": {"path": "/opt/limiter", "hook": "hami"},
        "unknownChips": "deny",
        "devicePlugin": "vnpu",
        "maxSoftCards": 4,
        "templates": "deny",
        "allocators": ["a"],
        "allowPrivileged": True,
        "allowNodeName": True,
        "allowReservedEnv": True,
    }
    assert parse_settings(document) == Settings(
        Mode.SOFT,
        "s",
        ("k",),
        ("v",),
        "ascend",
        10,
        Share.CEILING,
        OnTimeout.DENY,
        Limiter("/opt/limiter", Hook.HAMI),
        UnknownChips.DENY,
        DevicePlugin.VNPU,
        4,
        Templates.DENY,
        ("a",),
        allow_privileged=True,
        allow_node_name=True,
        allow_reserved_env=True,
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"defaultMod": "template"}, ["defaultMod", "unknown key", "did you mean defaultMode?"]),
        ({"limiter": {"pth": "/x/limiter"}}, ["limiter.pth", "did you mean path?"]),
        ({"zzz": 1}, ["zzz", "known are", "allocators"]),
        ([], ["a mapping is expected"]),
        ("x", ["a mapping is expected"]),
        ({"defaultMode": "soft"}, ["defaultMode", '"soft"', "hami-core, template"]),
        ({"defaultMode": True}, ["defaultMode", "true"]),
        ({"share": ["ceiling"]}, ["share", "weighted, ceiling"]),
        ({"onTimeout": "kill"}, ["onTimeout", "exit, deny"]),
        ({"unknownChips": "refuse"}, ["unknownChips", "ignore, warn, deny"]),
        ({"devicePlugin": "huawei"}, ["devicePlugin", "hami, vnpu"]),
        ({"templates": "ignore"}, ["templates", "warn, deny"]),
        ({"schedulerName": 1}, ["schedulerName"]),
        ({"schedulerName": " volcano"}, ["schedulerName"]),
        ({"schedulerName": "a b"}, ["schedulerName", '"a b"', "letters, digits"]),
        ({"runtimeClassName": "X_Y"}, ["runtimeClassName", '"X_Y"', "lower-case letters"]),
        ({"knownSchedulers": ["a\nb"]}, ["knownSchedulers[0]", "printable"]),
        ({1: 2}, ["1: 2: unknown key", "known are"]),
        ({"knownSchedulers": "volcano"}, ["knownSchedulers", "a list"]),
        ({"allocators": ["a", ""]}, ["allocators[1]"]),
        ({"allocators": [7]}, ["allocators[0]", "7"]),
        ({"defaultCorePercent": 101}, ["defaultCorePercent", "from 0 to 100"]),
        ({"defaultCorePercent": "10"}, ["defaultCorePercent", '"10"']),
        ({"maxSoftCards": 0}, ["maxSoftCards", "from 1"]),
        ({"maxSoftCards": 1.5}, ["maxSoftCards"]),
        ({"allowPrivileged": "true"}, ["allowPrivileged", "without quotes"]),
        ({"allowNodeName": 1}, ["allowNodeName"]),
        ({"limiter": "/x/limiter"}, ["limiter", "a mapping"]),
        ({"limiter": {"hook": "upstream"}}, ["limiter.hook", "native, hami, none"]),
        ({"limiter": {"path": "limiter"}}, ["limiter.path", "absolute path that ends in /limiter"]),
        ({"limiter": {"path": "/usr/bin/limit"}}, ["limiter.path", "absolute path that ends in /limiter"]),
        ({"limiter": {"path": "//x/limiter"}}, ["limiter.path", "absolute path"]),
        ({"limiter": {"path": "/x/../limiter"}}, ["limiter.path", "absolute path"]),
        ({"limiter": {"path": "/x y/limiter"}}, ["limiter.path", "letters, digits"]),
        ({"limiter": {"path": "/$(rm)/limiter"}}, ["limiter.path", "letters, digits"]),
    ],
)
def test_what_is_wrong_is_named(document: Any, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(document)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        ({}, 1),
        ({"devicePlugin": "hami"}, 1),
        ({"devicePlugin": "vnpu"}, None),
        ({"devicePlugin": "hami", "maxSoftCards": 2}, 2),
        ({"devicePlugin": "vnpu", "maxSoftCards": 2}, 2),
    ],
)
def test_the_limit_of_soft_cards_follows_the_device_plugin(document: Any, limit: int | None) -> None:
    assert parse_settings(document).soft_card_limit == limit


@pytest.mark.parametrize(
    ("name", "known", "warned"),
    [
        ("", [], False),
        ("default-scheduler", [], False),
        ("volcano", [], False),
        ("ours", ["ours"], False),
        ("ours", [], True),
        ("hami-scheduler", [], True),
    ],
)
def test_a_scheduler_that_is_written_but_not_known_brings_a_warning(
    name: str, known: list[str], *, warned: bool
) -> None:
    settings = parse_settings({"schedulerName": name, "knownSchedulers": known})
    assert bool(settings.warnings) is warned


def test_nobody_but_schedulers_and_device_plugins_allocates_by_default() -> None:
    assert all(name.startswith("system:serviceaccount:") for name in DEFAULT_ALLOCATORS)
    assert not any(name.startswith("system:node:") for name in DEFAULT_ALLOCATORS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(["defaultMode", "limiter", "allocators", "maxSoftCards", "share", "schedulerName", "other"])


@given(json_values | st.dictionaries(keys, json_values))
def test_any_document_gives_settings_or_the_typed_error(document: Any) -> None:
    try:
        settings = parse_settings(document)
    except ConfigError as error:
        assert error.allowed  # noqa: PT017 - what any other exception would fail is the point
    else:
        assert isinstance(settings, Settings)
