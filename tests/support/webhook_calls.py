"""Whom an API server would ask about a request, by the webhook configurations of a chart.

Rules, namespace selector and matchConditions are judged as Kubernetes does; the conditions by a CEL engine that raises
where Kubernetes fails (absent keys, operators on null).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import cel

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = Mapping[str, Any]


def called(configuration: Object, request: Object, namespace: Mapping[str, str]) -> list[str]:
    """The first part of the name of each webhook that is asked.

    Args:
        configuration: a Mutating- or ValidatingWebhookConfiguration.
        request: the ``request`` of an AdmissionReview.
        namespace: labels of the request's namespace, without the name's.
    """
    labels = {"kubernetes.io/metadata.name": request["namespace"], **namespace}
    return [
        webhook["name"].split(".")[0]
        for webhook in configuration["webhooks"]
        if any(_matches(rule, request) for rule in webhook["rules"])
        and selected(webhook["namespaceSelector"], labels)
        and _holds(webhook, request)
    ]


def conditions(configuration: Object) -> Iterator[tuple[str, str, str]]:
    """Webhook, name and expression of every condition."""
    for webhook in configuration["webhooks"]:
        for condition in webhook["matchConditions"]:
            yield webhook["name"].split(".")[0], condition["name"], condition["expression"]


def evaluate(expression: str, request: Object) -> bool:
    """What an expression says about a request.

    Raises:
        Exception: it cannot be evaluated, or is no truth value.
    """
    variables = {"object": request["object"], "oldObject": request["oldObject"], "request": request}
    result = _program(expression).execute(variables)
    if not isinstance(result, bool):
        raise TypeError(f"{result!r} is no truth value: {expression}")
    return result


def selected(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels; NotIn takes those that lack the key as well."""
    assert set(selector) <= {"matchLabels", "matchExpressions"}
    equal = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return equal and all(_requirement(entry, labels) for entry in selector.get("matchExpressions", []))


def _requirement(requirement: Object, labels: Mapping[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values", [])
    match requirement["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise ValueError(requirement["operator"])


def _matches(rule: Object, request: Object) -> bool:
    resource = request["resource"]
    name = "/".join(filter(None, [resource["resource"], request.get("subResource")]))
    return (
        rule["scope"] == "Namespaced"
        and resource["group"] in rule["apiGroups"]
        and resource["version"] in rule["apiVersions"]
        and request["operation"] in rule["operations"]
        and name in rule["resources"]
    )


def _holds(webhook: Object, request: Object) -> bool:
    """All conditions; one that is false wins over another that fails."""
    failure = None
    for condition in webhook["matchConditions"]:
        try:
            if not evaluate(condition["expression"], request):
                return False
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is a failed condition
            failure = error
    if failure is not None:
        raise failure
    return True


@cache
def _program(expression: str) -> Any:
    return cel.compile(expression)
