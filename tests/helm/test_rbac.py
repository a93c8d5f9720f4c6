"""The rights that the chart gives are those of ``rbac.yaml``, each with its reason, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support import helm
from vnpu import names

GOLDEN: Final = yaml.safe_load((Path(__file__).parent / "rbac.yaml").read_text())
KNOWN: Final = {
    role: [{key: rule[key] for key in rule if key != "why"} for rule in rules] for role, rules in GOLDEN.items()
}
BUILT_IN: Final = {"system:kube-scheduler", "system:volume-scheduler", "extension-apiserver-authentication-reader"}


def rights(render: helm.Render) -> dict[str, list[dict[str, Any]]]:
    """The rules of every role, without their reasons."""
    return {
        f"{role['kind']} {'/'.join(filter(None, [role['metadata'].get('namespace'), role['metadata']['name']]))}": [
            {
                "can": sorted(rule["verbs"]),
                "resources": rule["resources"],
                **({"names": rule["resourceNames"]} if "resourceNames" in rule else {}),
            }
            for rule in role["rules"]
        ]
        for kind in ("Role", "ClusterRole")
        for role in render.kind(kind)
    }


def test_each_right_is_known_and_has_a_reason() -> None:
    expected = {
        role: [{key: rule[key] for key in rule if key != "why"} for rule in rules] for role, rules in GOLDEN.items()
    }
    assert rights(helm.template(4, helm.VALUE_SETS["default"])) == expected
    assert all(rule["why"] for rules in GOLDEN.values() for rule in rules)


@pytest.mark.parametrize("values", helm.VALUE_SETS)
def test_no_set_of_values_gives_more(values: str) -> None:
    render = helm.template(4, helm.VALUE_SETS[values], settings=['fullnameOverride="vnpu"', 'test.namespace="default"'])
    for role, rules in rights(render).items():
        assert rules == KNOWN[role]
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in render.kind(kind):
            role = binding["roleRef"]["name"]
            assert role in BUILT_IN or any(name.endswith(role) for name in KNOWN)


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        ("files", {"vnpu-webhook"}),
        ("volcano", {"vnpu-scheduler"}),
        ("hami", {"vnpu-scheduler", "vnpu-device-plugin"}),
    ],
)
def test_what_is_not_installed_has_no_rights(values: str, gone: set[str]) -> None:
    render = helm.template(4, helm.VALUE_SETS[values])
    for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"):
        assert gone.isdisjoint(entry["metadata"]["name"] for entry in render.kind(kind))


def test_no_pod_has_a_token_that_it_does_not_use() -> None:
    for account in helm.template(4, helm.VALUE_SETS["default"]).kind("ServiceAccount"):
        if account["metadata"]["name"] == "vnpu-webhook":
            assert account["automountServiceAccountToken"] is False


def test_the_secret_is_made_empty_and_is_the_programs() -> None:
    (secret,) = helm.template(4, helm.VALUE_SETS["default"]).kind("Secret")
    assert secret["metadata"]["labels"][names.OWNER_LABEL] == names.CERTIFICATES_OWNER
    assert not {"data", "stringData"} & set(secret)
