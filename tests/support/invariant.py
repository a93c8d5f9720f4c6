"""What holds for every answer of the admission endpoints, whatever they were sent."""

from __future__ import annotations

import base64
import json

import jsonpatch

UNREADABLE = (400, 411, 413, 415)


def check(body: bytes, status: int, answer: bytes) -> None:
    """Fail where the answer to ``body`` is not well-formed, shows a traceback, or blames a fault of our own.

    A review that could be read is answered with its own uid, kind and version; a patch is applied to its object.
    """
    assert b"Traceback" not in answer
    if status != 200:
        assert status in UNREADABLE, status
        assert answer.endswith(b"\n"), "a line of text"
        assert answer.count(b"\n") == 1
        return
    review = json.loads(body)
    document = json.loads(answer.decode("ascii"))
    assert document["kind"] == "AdmissionReview"
    assert document["apiVersion"] == review["apiVersion"]
    response = document["response"]
    assert response["uid"] == review["request"]["uid"]
    assert isinstance(response["allowed"], bool)
    assert isinstance(response["status"]["message"], str)
    assert response["status"]["code"] == (200 if response["allowed"] else 403), "500 is a fault of ours"
    assert all(isinstance(warning, str) for warning in response.get("warnings", ()))
    assert ("patch" in response) == ("patchType" in response)
    if "patch" in response:
        assert response["allowed"]
        patch = json.loads(base64.b64decode(response["patch"], validate=True))
        jsonpatch.apply_patch(review["request"]["object"], patch, in_place=True)
