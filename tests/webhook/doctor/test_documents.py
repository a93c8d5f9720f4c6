"""What the documents say is what the doctor, and the chart, take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.support import doctor, helm
from webhook.doctor.case import Case
from webhook.doctor.checks import examine
from webhook.doctor.finding import Severity

DOCS = Path(__file__).parents[3] / "docs"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", (DOCS / "volcano.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_configuration_of_volcano_in_the_document_has_no_finding() -> None:
    configuration = next(block for block in BLOCKS if "tiers:" in block)
    objects = doctor.cluster("volcano")
    (config_map,) = (one for one in objects if one["metadata"]["name"] == "volcano-scheduler-configmap")
    config_map["data"]["volcano-scheduler.conf"] = configuration
    found = examine(Case(doctor.snapshot(objects)))
    assert [one for one in found if one.severity is not Severity.OK] == []


def test_the_values_in_the_document_are_taken_by_the_chart(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(next(block for block in BLOCKS if "scheduler:" in block))
    rendered = helm.template(4, values)
    settings = yaml.safe_load(rendered.object("ConfigMap", "vnpu-settings")["data"]["settings.yaml"])
    assert settings["schedulerName"] == "volcano"
    assert "system:serviceaccount:volcano-system:volcano-scheduler" in settings["allocators"]


@pytest.mark.parametrize("name", ["fits-nowhere"])
def test_the_explanation_in_the_document_is_what_is_said(name: str) -> None:
    told = (DOCS.parent / "tests" / "fixtures" / "kubectl" / "explain" / f"{name}.expected").read_text()
    assert told in (DOCS / "kubectl.md").read_text()
