"""What the chart makes is what the doctor knows: its objects of today, on clusters where all is well."""

from __future__ import annotations

import pytest

from tests.support import doctor, helm
from webhook.doctor.case import Case
from webhook.doctor.checks import examine
from webhook.doctor.finding import Severity
from webhook.doctor.programs import ours


@pytest.mark.parametrize("kind", ["kube", "volcano", "hami"])
def test_the_chart_of_today_has_no_finding(kind: str) -> None:
    values = [helm.VALUE_SETS["hami"]] if kind == "hami" else []
    rendered = helm.template(4, *values, settings=[f'scheduler.kind="{kind}"']).objects
    table = next(one["data"] for one in rendered if "device-config.yaml" in (one.get("data") or {}))
    alive = []
    for one in doctor.cluster(kind):
        made = next((new for new in rendered if _key(new) == _key(one)), None)
        if one["metadata"]["name"] == "hami-scheduler-device":
            alive.append(one | {"data": table})
        elif made is None:
            alive.append(one)
        else:
            # What a running cluster adds: status, certificates, bundles.
            added = {field: one[field] for field in ("status", "data") if field in one and one["kind"] != "ConfigMap"}
            for new, old in zip(made.get("webhooks", ()), one.get("webhooks", ()), strict=True):
                new["clientConfig"]["caBundle"] = old["clientConfig"]["caBundle"]
            alive.append(made | added)
    assert {_key(one) for one in alive if ours(one) and one["kind"] != "Pod"} <= {_key(one) for one in rendered}
    findings = examine(Case(doctor.snapshot(alive)))
    assert [one for one in findings if one.severity is not Severity.OK] == []


def _key(obj: doctor.Object) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]
