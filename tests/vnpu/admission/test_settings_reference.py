"""docs/settings.md says what the settings are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from vnpu.admission.settings import _KEYS, _LIMITER_KEYS, Settings, parse_settings

TEXT = (Path(__file__).parents[3] / "docs" / "settings.md").read_text()
DEFAULTS = yaml.safe_load(TEXT.partition("```yaml\n")[2].partition("```")[0])


def test_the_defaults_are_the_defaults() -> None:
    assert parse_settings(DEFAULTS) == Settings()


def test_every_key_is_explained_and_no_other() -> None:
    leaves = {key for key in _KEYS if key != "limiter"} | {f"limiter.{key}" for key in _LIMITER_KEYS}
    assert set(re.findall(r"^\| `([\w.]+)` \|", TEXT, re.MULTILINE)) == leaves
    assert set(DEFAULTS) == set(_KEYS)
    assert set(DEFAULTS["limiter"]) == set(_LIMITER_KEYS)
