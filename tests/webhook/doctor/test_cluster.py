"""The doctor on a real API server, where the chart is installed and its webhook runs from the checkout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.doctor import certificates
from tests.support.release import Release, installed
from vnpu.kube import MUTATING
from webhook.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture
def release(real_kubeconfig: str, tmp_path: Path) -> Iterator[Release]:
    with installed(4, real_kubeconfig, tmp_path) as made:
        yield made


def looked(release: Release, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, dict[str, Any]]:
    """The findings by code; those that are well by their subject."""
    own = ("--kubeconfig", release.kubeconfig, "--namespace", release.namespace, "--dry-run-namespace", release.team)
    code = main(["doctor", *own, "--json", *more])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert code == any(one["severity"] == "error" for one in found)
    return {one["code"] if one["severity"] != "ok" else one["subject"]: one for one in found}


def test_the_doctor_sees_what_the_api_server_does(release: Release, capsys: pytest.CaptureFixture[str]) -> None:
    before = looked(release, capsys)
    assert before["ca-bundle-missing"]["severity"] == "error"
    assert "certificate-missing" in before
    assert "failed calling webhook" in before["webhook-call-fails"]["seen"]
    with release.webhook():
        release.wait_until_published()
        found = looked(release, capsys)
        # Nobody runs the pods of the Deployments here.
        assert {one["code"] for one in found.values() if one["severity"] == "error"} == {"deployment-down"}
        well = {"webhook configurations", "certificates", "admission, by dry runs", "our scheduler", "allocators"}
        assert well <= set(found)
        # A bundle of someone else's.
        foreign = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": certificates()["other_ca"]}
    release.cluster.patch(MUTATING, f"zz-{release.name}", [foreign])
    assert "ca-bundle-foreign" in looked(release, capsys)


def test_an_account_that_may_read_nothing_learns_that_it_knows_nothing(
    release: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = release.account("default", release.namespace)
    found = looked(release, capsys, "--kubeconfig", reader)
    assert not [one for one in found.values() if one["severity"] in ("ok", "warning")]
    assert "cannot list resource" in found["could-not-look"]["seen"]
