from __future__ import annotations

import base64
import json
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook import wire
from webhook.wire import Unreadable, UnreadableError


def body(**request: Any) -> bytes:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **request}}
    return json.dumps(review).encode()


class TestHead:
    @pytest.mark.parametrize("length", [0, 1, wire.LARGEST_BODY])
    def test_a_length_within_the_limit(self, length: int) -> None:
        assert wire.body_length(str(length), None) == length

    @pytest.mark.parametrize(
        ("length", "encoding", "status", "reason"),
        [
            (None, None, 411, Unreadable.LENGTH),
            ("", None, 411, Unreadable.LENGTH),
            ("-1", None, 411, Unreadable.LENGTH),
            ("1e3", None, 411, Unreadable.LENGTH),
            ("²", None, 411, Unreadable.LENGTH),
            (None, "chunked", 411, Unreadable.CHUNKED),
            ("5", "gzip, chunked", 411, Unreadable.CHUNKED),
            (str(wire.LARGEST_BODY + 1), None, 413, Unreadable.TOO_LARGE),
            ("9" * 5000, None, 413, Unreadable.TOO_LARGE),
        ],
    )
    def test_what_is_refused_before_a_byte_is_read(
        self, length: str | None, encoding: str | None, status: int, reason: Unreadable
    ) -> None:
        with pytest.raises(UnreadableError) as raised:
            wire.body_length(length, encoding)
        assert (raised.value.status, raised.value.reason) == (status, reason)

    @pytest.mark.parametrize(
        ("media_type", "encoding"),
        [
            ("application/json", None),
            ("application/json; charset=utf-8", None),
            (" Application/JSON ;q=1", "identity"),
        ],
    )
    def test_json_is_let_through(self, media_type: str, encoding: str | None) -> None:
        wire.check_media_type(media_type, encoding)

    @pytest.mark.parametrize(
        ("media_type", "encoding"),
        [
            (None, None),
            ("", None),
            ("text/plain", None),
            ("application/jsonx", None),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json", "gzip"),
        ],
    )
    def test_other_media_types(self, media_type: str | None, encoding: str | None) -> None:
        with pytest.raises(UnreadableError) as raised:
            wire.check_media_type(media_type, encoding)
        assert (raised.value.status, raised.value.reason) == (415, Unreadable.MEDIA_TYPE)


class TestRead:
    @pytest.mark.parametrize("values", [b"{},", b"[],", b"1.5,", b'{"":1},'])
    def test_more_values_than_are_read(self, values: bytes) -> None:
        content = body().replace(b'"u"', b"[" + values * (wire.LARGEST_BODY // 8) + b"0]")
        with pytest.raises(UnreadableError) as raised:
            wire.read(content)
        assert (raised.value.status, raised.value.reason) == (413, Unreadable.TOO_LARGE)

    def test_a_long_text_is_one_value(self) -> None:
        text = "x" * (wire.LARGEST_BODY - 1000)
        assert wire.read(body(name=text)).name == text

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"\xff\xfe{}",
            '{"é": 1}'.encode("utf-16"),
            b"\xef\xbb\xbf{}",
            body().replace(b'"u"', b"NaN"),
            body().replace(b'"u"', b"-Infinity"),
            body() + b"x",
            b"[" * 100_000,
            b'{"a":' * 100_000,
            body().replace(b'"u"', b"9" * 5000),
        ],
        ids=lambda content: repr(content[:20]),
    )
    def test_what_is_no_json(self, content: bytes) -> None:
        with pytest.raises(UnreadableError) as raised:
            wire.read(content)
        assert (raised.value.status, raised.value.reason) == (400, Unreadable.NOT_JSON)

    @pytest.mark.parametrize(
        "document",
        [
            [],
            None,
            "text",
            {},
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": None},
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": []},
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}},
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": ""}},
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": 7}},
            {"apiVersion": "admission.k8s.io/v2", "kind": "AdmissionReview", "request": {"uid": "u"}},
            {"apiVersion": ["admission.k8s.io/v1"], "kind": "AdmissionReview", "request": {"uid": "u"}},
            {"apiVersion": "admission.k8s.io/v1", "kind": "Review", "request": {"uid": "u"}},
        ],
    )
    def test_r18_what_is_no_review_that_could_be_answered(self, document: Any) -> None:
        with pytest.raises(UnreadableError) as raised:
            wire.read(json.dumps(document).encode())
        assert (raised.value.status, raised.value.reason) == (400, Unreadable.NOT_A_REVIEW)

    def test_every_field_that_is_used(self) -> None:
        request = wire.read(
            body(
                operation="UPDATE",
                resource={"group": "", "version": "v1", "resource": "pods"},
                subResource="status",
                namespace="npu-team",
                name="pod-0",
                userInfo={"username": "alice"},
                dryRun=True,
                object={"metadata": {"name": "other"}},
                oldObject={"metadata": {}},
            )
        )
        assert request == wire.Request(
            api_version="admission.k8s.io/v1",
            uid="u",
            operation="UPDATE",
            resource=("", "pods", "status"),
            namespace="npu-team",
            name="pod-0",
            username="alice",
            dry_run=True,
            object={"metadata": {"name": "other"}},
            old_object={"metadata": {}},
        )

    @pytest.mark.parametrize(
        ("metadata", "name"),
        [
            ({"name": "pod-0"}, "pod-0"),
            ({"generateName": "infer-"}, "infer-"),
            ({"name": "", "generateName": "infer-"}, "infer-"),
            ({"name": 7}, ""),
            (None, ""),
            ([], ""),
        ],
    )
    def test_a_pod_of_a_controller_is_known_by_its_generate_name(self, metadata: Any, name: str) -> None:
        assert wire.read(body(object={"metadata": metadata})).name == name

    @pytest.mark.parametrize(
        "request_fields",
        [
            {"operation": ["CREATE"]},
            {"operation": {}},
            {"operation": "PATCH"},
            {"resource": "pods"},
            {"resource": {"group": 1, "resource": "pods"}},
            {"resource": {"resource": ["pods"]}},
            {"resource": {"resource": "pods"}, "subResource": {"a": 1}},
            {"namespace": 1, "name": {}, "userInfo": "x", "dryRun": "yes"},
        ],
    )
    def test_fields_of_another_shape_tell_nothing(self, request_fields: dict[str, Any]) -> None:
        request = wire.read(body(**request_fields))
        assert (request.operation, request.resource) == ("", ("", "", ""))
        assert (request.namespace, request.name, request.username, request.dry_run) == ("", "", "", False)


def request_of(uid: str, version: str = "admission.k8s.io/v1") -> wire.Request:
    review = {"apiVersion": version, "kind": "AdmissionReview", "request": {"uid": uid}}
    return wire.read(json.dumps(review).encode())


class TestAnswer:
    @pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
    def test_r18_the_answer_is_of_the_kind_of_the_question(self, version: str) -> None:
        content = wire.answer(request_of("u", version), allowed=False, code=HTTPStatus.FORBIDDEN, message="no")
        assert json.loads(content) == {
            "kind": "AdmissionReview",
            "apiVersion": version,
            "response": {"uid": "u", "allowed": False, "status": {"code": 403, "message": "no"}},
        }

    def test_patch_and_its_type_come_together(self) -> None:
        patch: Any = [{"op": "add", "path": "/a~1b", "value": "ü"}]
        content = wire.answer(request_of("u"), allowed=True, code=HTTPStatus.OK, message="", patch=patch)
        response = json.loads(content)["response"]
        assert response["patchType"] == "JSONPatch"
        assert json.loads(base64.b64decode(response["patch"])) == patch

    @given(st.text(st.characters(), min_size=1, max_size=40), st.text(st.characters()))
    def test_any_text_goes_back_as_it_came(self, uid: str, message: str) -> None:
        content = wire.answer(request_of(uid), allowed=True, code=HTTPStatus.OK, message=message, warnings=[message])
        response = json.loads(content.decode("ascii"))["response"]
        assert (response["uid"], response["status"]["message"]) == (uid, message)

    def test_a_lone_surrogate_goes_back_as_it_came(self) -> None:
        request = wire.read(body().replace(b'"u"', rb'"\ud800"'))
        assert json.loads(wire.answer(request, allowed=True, code=HTTPStatus.OK, message="")) == {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "response": {"uid": "\ud800", "allowed": True, "status": {"code": 200, "message": ""}},
        }


class TestWarnings:
    @given(st.lists(st.text(min_size=1, max_size=400), max_size=60))
    def test_they_stay_within_what_an_api_server_passes_on(self, warnings: list[str]) -> None:
        kept = wire.shortened(warnings)
        different = list(dict.fromkeys(warnings))
        assert sum(map(len, kept)) <= 4096
        if sum(map(len, different)) <= 4096:
            assert kept == different
        for warning, original in zip(kept, different, strict=False):
            assert warning in (original, "and further warnings") or warning == f"{original[:255]}…"

    def test_a_long_one_alone_stays_whole(self) -> None:
        assert wire.shortened(["x" * 4096]) == ["x" * 4096]

    def test_what_is_left_out_is_told(self) -> None:
        kept = wire.shortened([f"{number:0300}" for number in range(40)])
        assert kept[-1] == "and further warnings"
        assert [len(warning) for warning in kept[:-1]] == [256] * 15
