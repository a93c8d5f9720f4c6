"""Golden cases: each file in tests/golden/ is one sentence about admission, told as an object and its answer.

============  =========================================================================================================
``says``      the sentence
``call``      ``mutate`` (the default), ``validate``, ``update``, ``workload`` or ``volcano-job``
``settings``  as in the settings file; the defaults where it is left out
``chips``     a device config; the default table where it is left out
``object``    what is judged; ``old`` what it was, and ``user`` who changes it
``patch``     the whole patch; left out where nothing may change
``refused``   words that the message holds; left out where the object is allowed
``warns``     words that the warnings hold; left out where there must be none
============  =========================================================================================================

An allowed pod goes on: its patch applies, breaks no rule of the API server, completes once and not twice, also after
the API server put in its defaults, and passes the validator. A refused one is refused by the validator too.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonpatch
import pytest
import yaml

from tests.support import api_rules
from tests.support.api_server import defaulted
from vnpu import device_config
from vnpu.admission import rules
from vnpu.admission.settings import Settings, parse_settings
from vnpu.chips import DEFAULT_CHIPS, ChipTable
from webhook.patch import operations

if TYPE_CHECKING:
    from vnpu.admission.rules import Outcome

CASES: Final = sorted((Path(__file__).parents[2] / "golden").glob("*.yaml"))
KEYS: Final = {"says", "call", "settings", "chips", "object", "old", "user", "patch", "refused", "warns"}


def answer(case: dict[str, Any], document: Any, settings: Settings, chips: ChipTable) -> Outcome:
    match case.get("call", "mutate"):
        case "mutate":
            return rules.mutate_pod(document, settings, chips)
        case "validate":
            return rules.validate_pod(document, settings, chips)
        case "update":
            return rules.validate_pod_update(document, case["old"], case["user"], settings, chips)
        case "workload":
            return rules.validate_workload(document, case.get("old"), settings, chips)
        case "volcano-job":
            return rules.mutate_volcano_job(document, settings, chips)
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    case: dict[str, Any] = yaml.safe_load(path.read_text())
    assert case.keys() <= KEYS
    settings = parse_settings(case.get("settings"))
    chips = device_config.parse(case["chips"]).table if "chips" in case else DEFAULT_CHIPS
    document = case["object"]
    before = copy.deepcopy(document)

    outcome = answer(case, document, settings, chips)

    assert document == before, "the object itself is left alone"
    assert outcome.allowed == ("refused" not in case), outcome.message
    for word in case.get("refused", ()):
        assert word in outcome.message
    for word in case.get("warns", ()):
        assert word in "\n".join(outcome.warnings)
    # The API server cuts longer ones.
    assert all(len(warning) <= 256 for warning in outcome.warnings)
    if "warns" not in case and outcome.allowed:
        assert outcome.warnings == ()
    patch = operations(document, outcome.sets)
    assert patch == case.get("patch", [])
    if case.get("call", "mutate") == "mutate":
        if outcome.allowed:
            completes_once(jsonpatch.apply_patch(document, patch), settings, chips)
            completes_once(after_first_pass(defaulted(document), settings, chips), settings, chips)
        else:
            assert not rules.validate_pod(defaulted(document), settings, chips).allowed
    if case.get("call") == "volcano-job":
        assert answer(case, jsonpatch.apply_patch(document, patch), settings, chips).sets == ()


def after_first_pass(pod: dict[str, Any], settings: Settings, chips: ChipTable) -> dict[str, Any]:
    outcome = rules.mutate_pod(pod, settings, chips)
    assert outcome.allowed, outcome.message
    result: dict[str, Any] = jsonpatch.apply_patch(pod, operations(pod, outcome.sets))
    return result


def completes_once(pod: dict[str, Any], settings: Settings, chips: ChipTable) -> None:
    assert api_rules.faults(pod) == []
    for state in (pod, defaulted(pod)):
        assert rules.mutate_pod(state, settings, chips).sets == ()
    checked = rules.validate_pod(defaulted(pod), settings, chips)
    assert checked.allowed, checked.message
    assert checked.sets == ()
