"""Alerts and dashboard: their queries are PromQL, and ask for metrics and labels that the program has."""

from __future__ import annotations

import itertools
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import promql_parser as promql
import pytest

from interceptor.exporter.families import COUNTERS, GAUGES
from tests.support import helm
from webhook.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET: Final = {"job", "namespace", "instance", "pod", "container"}
"""Labels that Prometheus puts on what it scrapes."""
BUILT_IN: Final = {"up": set[str]()}
RUNBOOK: Final = helm.TOP / "docs" / "runbook.md"
DASHBOARD: Final = json.loads((helm.CHART / "files" / "dashboard.json").read_text())


@cache
def known() -> dict[str, set[str]]:
    """Every series that can be asked for, with its labels."""
    series = dict(BUILT_IN)
    for family in Metrics().collect():
        labels = {label for sample in family.samples for label in sample.labels} | set(
            getattr(family, "_labelnames", ())
        )
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        series |= {family.name + suffix: labels | {"le"} if suffix == "_bucket" else labels for suffix in suffixes}
    series |= {name.value: set(labels) for name, (labels, _) in GAUGES.items()}
    series |= {f"{name.value}_total": set(labels) for name, (labels, _) in COUNTERS.items()}
    return series


def selectors(node: Any) -> Iterator[promql.VectorSelector]:
    """Every selector of a query."""
    if isinstance(node, promql.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vs", "vector_selector"):
        child = getattr(node, name, None)
        if child is not None:
            yield from selectors(child)
    args = getattr(node, "args", None)
    for child in args if args is not None else ():
        yield from selectors(child)


def faults(query: str) -> list[str]:
    """What is wrong with a query: its form, or a series or label that nobody has."""
    try:
        tree = promql.parse(query)
    except ValueError as error:
        return [str(error)]
    found = list(selectors(tree))
    named = {selector.name for selector in found}
    missing = [f"no series {name}" for name in named if name not in known()]
    matched = [
        f"{selector.name} has no label {matcher.name}"
        for selector in found
        for matcher in selector.matchers.matchers
        if matcher.name not in known().get(selector.name, set()) | TARGET
    ]
    return [*missing, *matched, *([] if found else ["it asks for nothing"])]


def rules(values: str = "monitoring", **options: Any) -> list[dict[str, Any]]:
    (found,) = helm.template(4, helm.VALUE_SETS[values], **options).kind("PrometheusRule")
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


def test_every_alert_asks_for_what_there_is() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert faults(rule["expr"]) == [], rule["alert"]
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert re.fullmatch("[1-9][0-9]*m", rule["for"])


def test_every_alert_names_labels_that_its_query_leaves() -> None:
    for rule in rules():
        asked = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        left = {label for name in known() if name in rule["expr"] for label in known()[name]} | TARGET
        assert asked <= left, rule["alert"]


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("sum(up", "unclosed"),
        ("vnpu_limiter_upp == 0", "no series vnpu_limiter_upp"),
        ("vnpu_memory_denials > 0", "no series vnpu_memory_denials"),
        ('vnpu_limiter_up{card="1"}', "no label card"),
        ("absent(sum by (le) (rate(x[5m])) or y) > 1", "no series x"),
        ("1 + 1", "nothing"),
    ],
)
def test_a_wrong_query_is_noticed(query: str, fault: str) -> None:
    assert any(fault in found for found in faults(query))


def test_every_alert_stands_in_the_runbook_and_nothing_else_does() -> None:
    headings = re.findall("^### (Vnpu.*)$", RUNBOOK.read_text(), re.MULTILINE)
    assert headings == [rule["alert"] for rule in rules()]


def test_an_alert_leads_to_its_place_in_the_runbook() -> None:
    for rule in rules():
        url = "https://wiki.example.com/vnpu-runbook"
        assert rule["annotations"]["runbook_url"] == f"{url}#{rule['alert'].lower()}"
    without = rules("default", settings=["monitoring.prometheusRule.enabled=true"])
    assert all("runbook_url" not in rule["annotations"] for rule in without)


def test_alerts_of_what_is_not_installed_are_not_there() -> None:
    settings = ["monitoring.prometheusRule.enabled=true", "webhook.replicas=1"]
    names = {rule["alert"] for rule in rules("hami", settings=settings)}
    assert "VnpuWebhookDown" in names
    assert "VnpuWebhookNotRedundant" not in names
    assert "VnpuLimiterDown" not in names


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_every_panel_answers_its_question(panel: dict[str, Any]) -> None:
    assert panel["title"].endswith("?")
    for target in panel["targets"]:
        assert faults(target["expr"].replace("$__rate_interval", "5m")) == []
        shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        left = {label for name in known() if name in target["expr"] for label in known()[name]} | TARGET
        assert shown <= left


def test_the_dashboard_fits_together() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = set(itertools.product(columns, range(place["y"], place["y"] + place["h"])))
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells


def test_the_dashboard_is_in_the_config_map_as_it_is() -> None:
    carried = helm.template(4, helm.VALUE_SETS["monitoring"]).object("ConfigMap", "vnpu-dashboard")
    assert json.loads(carried["data"]["vnpu.json"]) == DASHBOARD
    assert carried["metadata"]["labels"]["grafana_dashboard"] == "1"
