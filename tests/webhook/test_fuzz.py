"""Any bytes get a well-formed answer or 400, 411, 413, 415: through Flask's test client, in the time of a test.

``tests/fuzz`` looks for longer, led by coverage.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.invariant import check
from tests.support.reviews import NAMES, body_of, encoded, recorded
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from webhook.app import create_app
from webhook.metrics import Metrics
from webhook.review import Context, Endpoint

if TYPE_CHECKING:
    from flask.testing import FlaskClient

CLIENT: FlaskClient = create_app(lambda: Context(Settings(), DEFAULT_CHIPS), Metrics()).test_client()

endpoints = st.sampled_from(list(Endpoint))
words = st.sampled_from(
    [
        *("huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory", "huawei.com/Ascend910C", "huawei.com/vnpu-mode"),
        *("hami-core", "template", "16Gi", "8192", "-1", "1e99999", "\ud800", "NPU_MEM_QUOTA", "Always", "metadata"),
        *("annotations", "spec", "containers", "initContainers", "resources", "limits", "requests", "env", "name"),
        *("value", "lifecycle", "postStart", "exec", "command", "sleep", "seconds", "tasks", "template", "kind"),
    ]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=6)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=10
)


def post(endpoint: Endpoint, body: bytes, content_type: str = "application/json") -> None:
    response = CLIENT.post(f"/{endpoint.value}", data=body, content_type=content_type)
    check(body, response.status_code, response.data)


@given(endpoints, st.binary(max_size=200), st.sampled_from(["application/json", "text/plain", ""]))
def test_any_bytes(endpoint: Endpoint, body: bytes, content_type: str) -> None:
    post(endpoint, body, content_type)


@examples(300)
@given(endpoints, values)
def test_any_json(endpoint: Endpoint, document: Any) -> None:
    post(endpoint, encoded(document))


@examples(300)
@given(
    endpoints,
    st.sampled_from(NAMES),
    st.dictionaries(
        st.sampled_from(["operation", "resource", "subResource", "object", "oldObject", "userInfo", "uid", "name"]),
        values,
        max_size=3,
    ),
)
def test_recorded_reviews_with_fields_of_any_shape(endpoint: Endpoint, name: str, changes: dict[str, Any]) -> None:
    post(endpoint, encoded(recorded(name, **changes)))


@st.composite
def mutilated(draw: st.DrawFn) -> dict[str, Any]:
    """A recorded review in which one place, however deep, holds something else."""
    review = recorded(draw(st.sampled_from(NAMES)))
    here: Any = review["request"]
    while True:
        steps = list(here) if isinstance(here, dict) else list(range(len(here)))
        step = draw(st.sampled_from(steps))
        below = here[step]
        if not isinstance(below, dict | list) or not below or draw(st.integers(0, 4)) == 0:
            here[step] = draw(values)
            return review
        here = below


@examples(500)
@given(endpoints, mutilated())
def test_recorded_reviews_with_one_place_of_any_shape(endpoint: Endpoint, review: dict[str, Any]) -> None:
    post(endpoint, encoded(review))


@given(endpoints, st.sampled_from(NAMES), st.integers(0, 4000), st.binary(max_size=8))
def test_recorded_reviews_with_foreign_bytes(endpoint: Endpoint, name: str, place: int, foreign: bytes) -> None:
    body = body_of(name)
    post(endpoint, body[:place] + foreign + body[place + len(foreign) :])


@given(endpoints, st.sampled_from(["limits", "env", "annotations"]), st.integers(900, 2000))
def test_nested_almost_too_deep(endpoint: Endpoint, field: str, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    body = json.dumps(recorded()).replace(f'"{field}": {{', f'"{field}": {{"deep": {deep}, ', 1)
    post(endpoint, body.encode())
