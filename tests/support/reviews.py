"""Recorded reviews, the answers that they must get, and reviews made for a test."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any, Final

from webhook.review import Endpoint

FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "admission"
EXPECTED: Final[dict[str, dict[str, Any]]] = json.loads((FOLDER.parent / "expected.json").read_text())
NAMES: Final = sorted(EXPECTED)
SOFT_POD: Final = "mutate-create-pods-soft-910b3.json"


def endpoint_of(name: str) -> Endpoint:
    """The endpoint to which an API server sent the recorded review."""
    return Endpoint(name.partition("-")[0])


def body_of(name: str) -> bytes:
    """A recorded review as it came over the wire."""
    return (FOLDER / name).read_bytes()


def recorded(file: str = SOFT_POD, **changes: Any) -> dict[str, Any]:
    """A recorded review, with fields of its request replaced."""
    review: dict[str, Any] = json.loads(body_of(file))
    review["request"] |= copy.deepcopy(changes)
    return review


def encoded(review: Any) -> bytes:
    """A review as a body."""
    return json.dumps(review).encode()


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations in an answer; empty where it has none."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    patch: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"], validate=True))
    return patch
