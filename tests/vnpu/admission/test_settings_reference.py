"""docs/settings.md says what the settings are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from vnpu.admission.settings import (
    _KEYS,
    _LIMITER_KEYS,
    DevicePlugin,
    Hook,
    OnTimeout,
    Settings,
    Share,
    Templates,
    UnknownChips,
    parse_settings,
)
from vnpu.mode import Mode

TEXT = (Path(__file__).parents[3] / "docs" / "settings.md").read_text()
DEFAULTS = yaml.safe_load(TEXT.partition("```yaml\n")[2].partition("```")[0])


ROW = r"^\| `([\w.]+)` \| (.*?) \|"
WORDS = {
    "defaultMode": Mode,
    "share": Share,
    "onTimeout": OnTimeout,
    "limiter.hook": Hook,
    "unknownChips": UnknownChips,
    "devicePlugin": DevicePlugin,
    "templates": Templates,
}


def test_the_defaults_are_the_defaults() -> None:
    assert parse_settings(DEFAULTS) == Settings()


def test_every_key_is_explained_and_no_other() -> None:
    leaves = {key for key in _KEYS if key != "limiter"} | {f"limiter.{key}" for key in _LIMITER_KEYS}
    assert set(re.findall(r"^\| `([\w.]+)` \|", TEXT, re.MULTILINE)) == leaves
    assert set(DEFAULTS) == set(_KEYS)
    assert set(DEFAULTS["limiter"]) == set(_LIMITER_KEYS)


def test_the_words_that_are_allowed_are_told() -> None:
    told = {key: set(re.findall(r"`([\w-]+)`", allowed)) for key, allowed in re.findall(ROW, TEXT, re.MULTILINE)}
    assert {key: told[key] for key in WORDS} == {key: {word.value for word in words} for key, words in WORDS.items()}
