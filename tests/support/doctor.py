"""Clusters for the doctor, from files: a whole one in tests/fixtures/doctor, and what a case changes of it.

A case is a YAML file of tests/fixtures/doctor/findings; its keys:

========  ==============================================================================================================
cluster   which cluster: kube (if nothing is said), volcano or hami, by who places pods
about     what the case is, and the trap's name where a contract has one
patch     JSON patches: ``{of: Kind name, do: [{op, path, value}]}``
text      a piece of a text in an object: ``{of, at: path, old, new}``
add       more objects
gone      objects that are not there: ``Kind name``
unseen    what may not be looked at, with the server's words
calls     what came of dry runs, instead of a cluster where all is well
expect    the findings that are neither ok nor among the cluster's own, each with code, severity, subject and seen
========  ==============================================================================================================

``${ca}``, ``${certificate}`` and so on stand for certificates that are made for the test run.
"""

from __future__ import annotations

import base64
import copy
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import jsonpatch
import yaml

from certs.authority import make_authority, make_serving
from vnpu import names
from webhook.doctor import calls
from webhook.doctor.case import Case
from webhook.doctor.snapshot import Call, Snapshot

FOLDER = Path(__file__).parents[1] / "fixtures" / "doctor"
CASES = {path.stem: path for path in sorted((FOLDER / "findings").glob("*.yaml"))}
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
NAMES = ["vnpu-webhook.vnpu-system.svc"]

Object = dict[str, Any]


@cache
def certificates() -> dict[str, str]:
    """What the placeholders stand for, in base64."""
    ca, other = (make_authority(name, now=NOW) for name in ("test", "other"))
    day, old = timedelta(days=1), NOW - timedelta(days=3650)
    pem = {
        "ca": ca.certificate,
        "other_ca": other.certificate,
        "both_cas": ca.certificate + other.certificate,
        "certificate": make_serving(ca, dns_names=NAMES, now=NOW).certificate,
        "misnamed": make_serving(ca, dns_names=["elsewhere.svc"], now=NOW).certificate,
        "expired": make_serving(ca, dns_names=NAMES, now=old).certificate,
        "ageing": make_serving(ca, dns_names=NAMES, now=NOW - 85 * day).certificate,
        "garbage": b"no certificate",
    }
    return {name: base64.b64encode(value).decode() for name, value in pem.items()}


def cluster(name: str) -> list[Object]:
    """The objects of a cluster where all is well."""
    return copy.deepcopy(_cluster(name))


@cache
def _cluster(name: str) -> list[Object]:
    return _documents(FOLDER / f"cluster-{name}.yaml")


@cache
def _documents(path: Path) -> list[Object]:
    text = Template(path.read_text()).substitute(certificates())
    return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def healthy_calls() -> dict[str, Call]:
    """What dry runs come to where all is well."""
    completed = {"metadata": {"annotations": {names.MODE: "hami-core"}}}
    denial = 'admission webhook "mutate-pods.admission.vnpu.cluster.local" denied the request: 101 is too much'
    return {calls.PLAIN: Call({"metadata": {}}), calls.SLICE: Call(completed), calls.FAULTY: Call(None, 400, denial)}


def snapshot(objects: list[Object], **fields: Any) -> Snapshot:
    by_kind: dict[str, list[Object]] = defaultdict(list)
    for one in objects:
        by_kind[one["kind"]].append(one)
    return Snapshot(NOW, by_kind, **({"calls": healthy_calls()} | fields))


def field(path: Path, name: str) -> Any:
    """What stands under another key of a case, None where nothing does."""
    (document,) = _documents(path)
    return copy.deepcopy(document.get(name))


def expected(path: Path) -> list[dict[str, str]]:
    """The findings of a case."""
    (document,) = _documents(path)
    found: list[dict[str, str]] = document["expect"]
    return found


def case(path: Path, *more: Object) -> Case:
    """A case, and more objects."""
    (document,) = _documents(path)
    objects = {_name(one): one for one in cluster(document.get("cluster", "kube"))}
    for change in document.get("patch", ()):
        objects[change["of"]] = jsonpatch.apply_patch(objects[change["of"]], change["do"])
    for change in document.get("text", ()):
        before = jsonpatch.JsonPointer(change["at"]).resolve(objects[change["of"]])
        assert before.count(change["old"]) == 1, f"{change['old']} stands once in {change['of']}"
        after = {"op": "replace", "path": change["at"], "value": before.replace(change["old"], change["new"])}
        objects[change["of"]] = jsonpatch.apply_patch(objects[change["of"]], [after])
    for gone in document.get("gone", ()):
        del objects[gone]
    fields: dict[str, Any] = {"unseen": document.get("unseen", {})}
    if "calls" in document:
        changed = document["calls"]
        fields["calls"] = changed and healthy_calls() | {what: Call(**call) for what, call in changed.items()}
    found = snapshot([*objects.values(), *document.get("add", ()), *more], **fields)
    return Case(found, document.get("namespace"))


def _name(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"
