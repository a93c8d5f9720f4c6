"""Fuzzing of the admission endpoints, led by coverage: ``make fuzz``, or with libFuzzer's own options behind it.

The invariant: any bytes to /mutate or /validate give a well-formed answer, or one of 400, 411, 413 and 415 with a line
of text. Never an exception, never a fault of our own, never a traceback in the body. A patch applies to the object it
is for. Written down as code in ``tests/support/invariant.py``.

The seeds are the recorded reviews. Half of the mutations are libFuzzer's own, of bytes; the other half change one place
of the JSON, because bytes alone rarely get past the parser. What is found lands in ``build/fuzz`` and is kept between
runs.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import atheris

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
with atheris.instrument_imports(include=["vnpu", "webhook"]):
    from tests.support import invariant, reviews
    from vnpu.admission.settings import Settings
    from vnpu.chips import DEFAULT_CHIPS
    from webhook.app import create_app
    from webhook.metrics import Metrics
    from webhook.review import Context, Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPUS = ROOT / "build" / "fuzz"
APP = create_app(lambda: Context(Settings(), DEFAULT_CHIPS), Metrics())
# What a place of a review may become, besides what stands in its other places.
SPICE: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 1e300, "", "-1", "16Gi", "10k", "0.5", "8192", "1e9", "\ud800", "x" * 300),
    *([], {}, [None], {"": None}, "CREATE", "UPDATE", "DELETE", "pods", "jobs", "cronjobs", "batch.volcano.sh"),
    *("batch.volcano.sh/v1alpha1", "apps", "batch", "Pod", "Job", "CronJob", "Deployment", "status", "Always"),
    *("hami-core", "template", "weighted", "ceiling", "volcano", "default-scheduler", "NPU_MEM_QUOTA", "NPU_PRIORITY"),
    *({"exec": {"command": ["a"]}}, {"sleep": {"seconds": 1}}, {"httpGet": {}}, {"privileged": True}),
    *({"huawei.com/Ascend910B3-memory": "8192"}, {"huawei.com/Ascend910C": "1"}, {"huawei.com/Ascend310P-core": "5"}),
    *({"huawei.com/vnpu-mode": "hami-core"}, {"hami.io/Ascend910B3-devices-allocated": "x"}, {"predicate-time": "1"}),
]
KEYS = (
    "annotations",
    "env",
    "envFrom",
    "lifecycle",
    "postStart",
    "resources",
    "limits",
    "requests",
    "nodeName",
    "tasks",
)


def test_one_input(data: bytes) -> None:
    for endpoint in Endpoint:
        status, answer = post(f"/{endpoint.value}", data)
        invariant.check(data, status, answer)


def post(path: str, body: bytes) -> tuple[int, bytes]:
    started: list[str] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }

    def start_response(status: str, *_: Any) -> Any:
        started.append(status)

    answer = b"".join(APP(environ, start_response))
    return int(started[0].partition(" ")[0]), answer


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    choice = random.Random(seed)
    try:
        review = json.loads(data)
    except (ValueError, RecursionError):
        review = None
    if not isinstance(review, dict) or choice.random() < 0.5:
        return bytes(atheris.Mutate(data, max_size))
    for _ in range(choice.randint(1, 3)):
        change_one_place(review, choice)
    changed = reviews.encoded(review)
    return changed if len(changed) <= max_size else bytes(atheris.Mutate(data, max_size))


def change_one_place(review: dict[str, Any], choice: random.Random) -> None:
    places = list(containers(review))
    here = choice.choice(places)
    new = json.loads(json.dumps(choice.choice([*SPICE, choice.choice(places)])))
    if isinstance(here, dict):
        if here and choice.random() < 0.2:
            del here[choice.choice(list(here))]
        else:
            here[choice.choice([*here, *KEYS])] = new
    elif here and choice.random() < 0.7:
        here[choice.randrange(len(here))] = new
    else:
        here.append(new)


def containers(value: Any) -> Iterator[Any]:
    """Every object and list in a document, itself first."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict | list):
            yield here
            waiting += here.values() if isinstance(here, dict) else here


if __name__ == "__main__":
    CORPUS.mkdir(parents=True, exist_ok=True)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the log lines of the reviews
    arguments = [sys.argv[0], "-max_len=65536", *sys.argv[1:], str(CORPUS), str(reviews.FOLDER)]
    atheris.Setup(arguments, test_one_input, custom_mutator=mutate)
    atheris.Fuzz()
