"""``helm test``: the API server is asked for two pods, dry: one is to come back completed, the other to be refused.

Nothing is created. Only the standard library is used: this runs in whatever image is installed.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TIMEOUT_S = 15


def main(namespace: str, resource: str, account: str = "/var/run/secrets/kubernetes.io/serviceaccount") -> int:
    """Ask for both pods; returns 1 where an answer is not the expected one.

    Args:
        namespace: in which they are asked for.
        resource: the extended resource of a chip.
        account: folder of a service account: token, and CA of the API server.
    """
    faults = []
    status, pod = ask(namespace, slice_of(resource, core=10), Path(account))
    mode = pod.get("metadata", {}).get("annotations", {}).get("huawei.com/vnpu-mode")
    if status >= 300:
        faults.append(f"a pod that asks for a slice was refused ({status}): {pod.get('message')}")
    elif mode != "hami-core":
        faults.append("a pod that asks for a slice came back as it was: no webhook saw it")
    status, answer = ask(namespace, slice_of(resource, core=101), Path(account))
    if status < 300:
        faults.append("a pod that asks for 101 percent of a card was let through")
    elif "101" not in answer.get("message", ""):
        faults.append(f"a pod that asks for 101 percent of a card was refused for another reason: {answer}")
    sys.stdout.write("\n".join(faults) or f"admission works: slices of {resource} are completed and checked")
    sys.stdout.write("\n")
    return 1 if faults else 0


def slice_of(resource: str, core: int) -> dict[str, str]:
    """The limits of a container that asks for a soft slice."""
    return {resource: "1", f"{resource}-memory": "1024", f"{resource}-core": str(core)}


def ask(namespace: str, limits: dict[str, str], account: Path) -> tuple[int, dict[str, Any]]:
    """The API server's answer to the dry creation of a pod with these limits: HTTP status and object."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "vnpu-test-"},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]},
    }
    request = urllib.request.Request(
        f"https://{f'[{host}]' if ':' in host else host}:{port}/api/v1/namespaces/{namespace}/pods?dryRun=All",
        json.dumps(pod).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {(account / 'token').read_text().strip()}"},
    )
    context = ssl.create_default_context(cafile=str(account / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as response:  # noqa: S310 - as above
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
