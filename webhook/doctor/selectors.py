"""Label selectors, as the API server reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vnpu.fit.terms import Requirement
from webhook.doctor.snapshot import items

if TYPE_CHECKING:
    from collections.abc import Mapping


def selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes what has these labels; one that is absent or empty takes everything."""
    if not isinstance(selector, dict):
        return True
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(name) == value for name, value in wanted.items()) and all(
        Requirement(one["key"], one["operator"], tuple(one.get("values") or ())).matches(labels)
        for one in items(selector.get("matchExpressions"))
    )
