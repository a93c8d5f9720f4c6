"""``python -m webhook.demo FOLDER``: the main job, shown on one machine without a cluster.

Starts the webhook over TLS with certificates of its own making, sends it the sample pods of a folder as an API server
would, shows what comes back, and plans the same manifests onto a small inventory. Exit 0 when everything went as it
should, 1 otherwise.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import jsonpatch

from vnpu import files
from vnpu.fit.__main__ import main as plan
from webhook.preview import diff

if TYPE_CHECKING:
    from collections.abc import Iterator

_ACCEPTED: Final = "soft-slice.yaml"
_REFUSED: Final = "refused.yaml"
_WORKLOAD: Final = "inference.yaml"
_INVENTORY: Final = "inventory.yaml"
_TIMEOUT_S: Final = 30


def main(folder: Path) -> int:
    """Run the demonstration with the samples of a folder; returns the exit code."""
    with _webhook() as (url, ca_file):
        _say(f"The webhook serves {url}; its CA is {ca_file}")
        accepted = _show(folder / _ACCEPTED, url, ca_file)
        refused = _show(folder / _REFUSED, url, ca_file)
    _say(f"The first pod and {_WORKLOAD}, planned onto {_INVENTORY}")
    manifests = [str(folder / name) for name in (_ACCEPTED, _WORKLOAD)]
    planned = plan(["--nodes", str(folder / _INVENTORY), *manifests])
    return 0 if accepted and not refused and planned == 0 else 1


@contextmanager
def _webhook() -> Iterator[tuple[str, str]]:
    """A webhook of our own on a free port: its address and the file of its CA."""
    command = [sys.executable, "-m", "webhook", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - our own program
        assert server.stdout is not None
        try:
            for line in server.stdout:
                ready = json.loads(line)
                if ready["message"] == "ready":
                    yield ready["url"], ready["ca"]
                    return
            raise RuntimeError(f"the webhook ended with exit code {server.wait()}")
        finally:
            server.terminate()


def _show(manifest: Path, url: str, ca_file: str) -> bool:
    """Send the pod of a manifest, print what comes back; whether it was allowed."""
    (pod,) = files.parse_documents(files.read_bytes(manifest), str(manifest))
    answer = _post(_review(pod), url, ca_file)["response"]
    allowed: bool = answer["allowed"]
    _say(f"{manifest}: {'allowed' if allowed else 'refused'}")
    if not allowed:
        sys.stdout.write(f"{answer['status']['message']}\n")
    for warning in answer.get("warnings", ()):
        sys.stdout.write(f"Warning: {warning}\n")
    if "patch" in answer:
        completed = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(answer["patch"])))
        sys.stdout.write(diff(pod, completed, f"pod {pod['metadata']['name']}"))
    return allowed


def _review(pod: Any) -> dict[str, Any]:
    """The question that an API server asks when the pod is created."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(uuid.uuid4()),
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": pod["metadata"]["name"],
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "demo"},
            "object": pod,
            "oldObject": None,
            "dryRun": False,
        },
    }


def _post(review: dict[str, Any], url: str, ca_file: str) -> dict[str, Any]:
    server = urlsplit(url)
    trust = ssl.create_default_context(cafile=ca_file)
    connection = http.client.HTTPSConnection(server.hostname or "", server.port, timeout=_TIMEOUT_S, context=trust)
    try:
        connection.request("POST", "/mutate", json.dumps(review), {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.load(connection.getresponse())
    finally:
        connection.close()
    return answer


def _say(title: str) -> None:
    sys.stdout.write(f"\n== {title}\n\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
