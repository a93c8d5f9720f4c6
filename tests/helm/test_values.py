"""Values: wrong ones are refused, each has a reason beside it, and the README is made from them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import jsonschema
import pytest

from tests.support import chart_readme, helm
from vnpu import device_config
from vnpu.admission.settings import (
    DEFAULT_ALLOCATORS,
    DevicePlugin,
    Hook,
    OnTimeout,
    Settings,
    Share,
    Templates,
    UnknownChips,
    parse_settings,
)
from vnpu.chips import DEFAULT_CHIPS
from vnpu.files import parse_documents
from webhook.extender.binding import PATIENCE_S

SCHEMA: Final = json.loads((helm.CHART / "values.schema.json").read_text())

WRONG: Final = {
    'scheduler.kind="slurm"': "kind",
    "webhook.replica=3": "replica",
    "webhook.replicas=0": "replicas",
    'webhook.replicas="2"': "replicas",
    "webhook.timeoutSeconds=11": "timeoutSeconds",
    "scheduler.extenderTimeoutSeconds=5": "extenderTimeoutSeconds",
    "webhook.port=443": "port",
    'webhook.failurePolicy="fail"': "failurePolicy",
    'webhook.domain="Example.com"': "domain",
    'webhook.excludedNamespaces=["a b"]': "excludedNamespaces",
    'webhook.resources={"limits":{"memory":"12 Mi"}}': "memory",
    'webhook.tolerations=[{"operator":"exists"}]': "operator",
    'tls.mode="cert-manager"': "mode",
    'tls.mode="files"': "tls.secretName: the kubernetes.io/tls Secret to serve is missing",
    'image.digest="sha256:abc"': "digest",
    'image.pullPolicy="IfNotPresents"': "pullPolicy",
    'settings.defaultmode="hami-core"': "defaultmode",
    'settings.defaultMode="soft"': "defaultMode",
    "settings.defaultCorePercent=101": "defaultCorePercent",
    'settings.limiter={"path":"limiter"}': "path",
    "allocators=null": "allocators",
    'allocators="system:admin"': "allocators",
    "allocators=[1]": "allocators",
    "deviceConfig.vnpus.configs=[]": "configs",
    'deviceConfig.vnpus.hamiVnpuCore="true"': "hamiVnpuCore",
    'deviceConfig.vnpus.configs[0].resourceName="nvidia.com/gpu"': "resourceName",
    'deviceConfig.vnpus.configs[0].commonWord="B3"': "commonWord",
    'node.maxUnavailable="0%"': "maxUnavailable",
    "node.maxUnavailable=0": "maxUnavailable",
    "node.pools.soft.nodeSelector=null": "nodeSelector",
    'node.pools.other={"mode":"hami-core","nodeSelector":{"a":"b"}}': "mode",
    'node.pools.other={"mode":"soft","nodeSelector":{}}': "nodeSelector",
    'node.pools.other={"mode":"soft","nodeSelector":{"huawei.com/vnpu-pool":"hard"}}': "select the same nodes",
    'node.nodes=[{"name":"a","hami-vnpu-core":true}]': "hami-vnpu-core",
    'monitoring.prometheusRule.runbookUrl="wiki"': "runbookUrl",
    'monitoring.serviceMonitor.interval="1 min"': "interval",
    'test.namespace="kube-system"': "test.namespace: .* admission never looks at this namespace",
    "node.enabled=false": r"settings\.limiter\.hook: .* none for HAMi 2\.10",
    "netwrkPolicy.enabled=false": "netwrkPolicy",
}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("setting", WRONG)
def test_a_wrong_value_is_refused_by_its_name(version: int, setting: str) -> None:
    with pytest.raises(helm.RefusedError, match=WRONG[setting]):
        helm.template(version, settings=[setting])


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-node-lease", "kube-public"])
def test_a_namespace_that_is_not_its_own_is_refused_by_its_name(namespace: str) -> None:
    with pytest.raises(helm.RefusedError, match=f'"{namespace}".* --namespace vnpu-system --create-namespace'):
        helm.template(4, namespace=namespace)


def test_the_notes_tell_what_was_left_out() -> None:
    def notes(*more: str) -> str:
        arguments = ("install", helm.RELEASE, str(helm.CHART), f"--namespace={helm.NAMESPACE}", "--dry-run=client")
        return helm.run(4, *arguments, *more).stdout.partition("\nNOTES:\n")[2]

    assert "WARNING: the image is localhost/ascend-vnpu, which no registry has" in notes()
    told = notes(
        *("--set", "image.repository=registry.example.com/ascend-vnpu", "--set", "node.enabled=false"),
        *("--set", "settings.limiter.hook=hami"),
    )
    assert "WARNING" not in told
    assert 'set to\n   "hami"' in told


def objects_of(schema: Any) -> list[dict[str, Any]]:
    """Every part of the schema that describes a mapping."""
    if isinstance(schema, list):
        return [found for entry in schema for found in objects_of(entry)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [found for entry in schema.values() for found in objects_of(entry)]


def test_the_schema_is_one_and_takes_no_unknown_key() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    free = [entry for entry in objects_of(SCHEMA) if "additionalProperties" not in entry]
    assert free == [SCHEMA["properties"]["global"]]
    assert all(entry["additionalProperties"] is False for entry in objects_of(SCHEMA) if "properties" in entry)


def known_keys(schema: dict[str, Any], values: Any, path: str = "") -> list[tuple[str, set[str], set[str]]]:
    """For every mapping of fixed keys: its path, the keys of the schema, and those of values.yaml."""
    schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "properties" not in schema or not isinstance(values, dict) or not values:
        return []
    rest = [
        entry
        for key, value in values.items()
        for entry in known_keys(schema["properties"].get(key, {}), value, f"{path}.{key}")
    ]
    return [(path, set(schema["properties"]), set(values)), *rest]


def test_schema_and_values_know_the_same_keys() -> None:
    for path, in_schema, in_values in known_keys(SCHEMA, helm.values()):
        if "esources" not in path:  # there Kubernetes has more than one would name
            assert in_schema == in_values, path


def test_every_value_has_its_reason_beside_it() -> None:
    reasons = {value.path for value in chart_readme.commented()}

    def bare(values: dict[str, Any], path: str = "") -> list[str]:
        found = []
        for key, value in values.items():
            here = f"{path}.{key}" if path else key
            if here in reasons and not (isinstance(value, dict) and key in {"node", "deviceConfig", "pools"}):
                continue
            found += bare(value, here) if isinstance(value, dict) and value else [here]
        return found

    assert bare(helm.values()) == []


def test_the_readme_is_made_from_the_values() -> None:
    assert chart_readme.README.read_text() == chart_readme.document(), "make chart-readme"


def test_chart_and_program_have_one_version() -> None:
    project = re.search(r'^version = "(.*)"$', (helm.TOP / "pyproject.toml").read_text(), re.MULTILINE)
    chart = helm.values(helm.CHART / "Chart.yaml")
    assert project is not None
    assert project[1] == chart["version"] == chart["appVersion"]


# ---- What the values become, read by the program's own parsers


def config_map(values: str, name: str, key: str, **options: Any) -> Any:
    (document,) = parse_documents(
        helm.template(4, helm.VALUE_SETS[values], **options).object("ConfigMap", name)["data"][key].encode(), key
    )
    return document


@pytest.mark.parametrize("values", helm.VALUE_SETS)
def test_every_configuration_is_taken_by_the_program(values: str) -> None:
    prefix = "npu-slices" if values == "everything" else "vnpu"
    parse_settings(config_map(values, f"{prefix}-settings", "settings.yaml"))
    assert device_config.parse(config_map(values, f"{prefix}-device-config", "device-config.yaml")).warnings == ()


def test_the_default_chip_table_is_the_programs() -> None:
    assert device_config.parse(config_map("default", "vnpu-device-config", "device-config.yaml")).table == DEFAULT_CHIPS


@pytest.mark.parametrize(
    ("values", "scheduler", "plugin"),
    [("default", "vnpu-scheduler", "vnpu"), ("volcano", "volcano", "vnpu"), ("hami", "hami-scheduler", "hami")],
)
def test_settings_follow_from_what_is_installed(values: str, scheduler: str, plugin: str) -> None:
    settings = parse_settings(config_map(values, "vnpu-settings", "settings.yaml"))
    assert settings.scheduler_name == scheduler
    assert settings.device_plugin == plugin
    assert scheduler in settings.known_schedulers
    assert settings.allocators == DEFAULT_ALLOCATORS
    assert settings.runtime_class_name == ""


def test_accounts_follow_the_release() -> None:
    settings = parse_settings(config_map("default", "npu-vnpu-settings", "settings.yaml", release="npu", namespace="x"))
    assert "system:serviceaccount:x:npu-vnpu-scheduler" in settings.allocators
    assert "system:serviceaccount:x:npu-vnpu-device-plugin" in settings.allocators


def test_a_runtime_class_that_the_chart_makes_is_written_into_pods() -> None:
    assert parse_settings(config_map("small", "vnpu-settings", "settings.yaml")).runtime_class_name == "ascend"


def test_every_setting_can_be_set_and_nothing_overrules_the_user() -> None:
    settings = parse_settings(config_map("everything", "npu-slices-settings", "settings.yaml"))
    given = helm.values(helm.VALUE_SETS["everything"])["settings"]
    assert set(given) | {"allocators"} == set(SCHEMA["definitions"]["settings"]["properties"])
    assert settings.scheduler_name == ""
    assert settings.known_schedulers == ("npu-scheduler", "yunikorn")
    assert settings.runtime_class_name == "ascend-x"
    default = Settings()
    for name in ("default_mode", "share", "on_timeout", "unknown_chips", "templates", "max_soft_cards", "limiter"):
        assert getattr(settings, name) != getattr(default, name)


def test_the_schema_names_the_words_of_the_program() -> None:
    properties = SCHEMA["definitions"]["settings"]["properties"]
    for key, words in (
        ("share", Share),
        ("onTimeout", OnTimeout),
        ("unknownChips", UnknownChips),
        ("devicePlugin", DevicePlugin),
        ("templates", Templates),
    ):
        assert set(properties[key]["enum"]) == {word.value for word in words}
    assert set(properties["limiter"]["properties"]["hook"]["enum"]) == {word.value for word in Hook}


def test_the_scheduler_asks_about_every_resource_of_every_chip() -> None:
    configuration = config_map("default", "vnpu-scheduler", "configuration.yaml")
    (extender,) = configuration["extenders"]
    managed = {entry["name"]: entry["ignoredByScheduler"] for entry in extender["managedResources"]}
    expected = {}
    for chip in DEFAULT_CHIPS.chips:
        expected |= {chip.resource_name: False, chip.memory_name: True, chip.core_name: True}
    assert managed == expected
    assert extender["urlPrefix"].startswith("http://127.0.0.1:")
    assert int(extender["httpTimeout"].removesuffix("s")) > PATIENCE_S
    assert configuration["percentageOfNodesToScore"] == 100
    (profile,) = configuration["profiles"]
    assert profile["schedulerName"] == "vnpu-scheduler"
