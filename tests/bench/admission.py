"""The webhook and the library: what a review costs, what a server answers, what an import takes.

What is compared is measured in turns, many times, so that whatever else the machine does hits both alike.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.figure import Figure
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from webhook.review import Context, Decision, Endpoint, review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.bench.figure import Effort

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
POD = ROOT / "tests" / "fixtures" / "admission" / "mutate-create-pods-finetune-0.json"
CONNECTIONS = 8

# Edges of vnpu import what they need when they are called; here is every module, so that none hides one at its top.
IMPORT_ALL = """
import importlib, pkgutil, sys
before = set(sys.modules)
import vnpu
for module in pkgutil.walk_packages(vnpu.__path__, "vnpu."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(new - sys.stdlib_module_names - {"vnpu"}))
"""


def review_figure(_: Effort) -> Iterator[Figure]:
    body = POD.read_bytes()
    context = Context(Settings(), DEFAULT_CHIPS)
    record = review(body, Endpoint.MUTATE, context).record
    assert (record.decision, record.reason) == (Decision.ALLOWED, "patched"), "the pod goes the whole way"
    ours, text = [], []
    for _ in range(300):
        ours.append(microseconds(lambda: review(body, Endpoint.MUTATE, context)))
        text.append(microseconds(lambda: json.dumps(json.loads(body))))
    # The fastest of many: a function is slowed by its neighbours, never sped up.
    note = f"{min(ours):.0f} us, json.loads + json.dumps {min(text):.0f} us, {len(body)} bytes"
    yield Figure("review_to_json", min(ours) / min(text), note)


def microseconds(function: Callable[[], Any], times: int = 5) -> float:
    start = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - start) / times * 1e6


def server_figures(effort: Effort) -> Iterator[Figure]:
    """What the webhook answers beside a bare Flask view: on our worker, and on gunicorn's own.

    Rates are per second that the worker had a processor: per core, whoever else uses the machine.
    """
    with (
        running("-m", "webhook", "--port", "0") as webhook,
        running(str(HERE / "bare.py")) as bare,
        running(str(HERE / "stock.py")) as stock,
    ):
        kept = turns((webhook, bare), effort.rounds, CONNECTIONS)
        new = turns((webhook, bare, stock), effort.rounds, 0)
        alone = turns((webhook, bare), max(2, effort.rounds // 2), 1)
    yield Figure("server_to_bare_flask", ratio(kept, 1), f"{CONNECTIONS} kept connections: {told(kept, 'bare Flask')}")
    yield Figure("new_connections_to_bare_flask", ratio(new, 1), told([turn[:2] for turn in new], "bare Flask"))
    bare_alone = [turn[1:] for turn in new]
    note = f"the bare view on our worker: {told(bare_alone, 'on stock gthread')}"
    yield Figure("new_connections_to_stock", ratio(bare_alone, 1), note)
    latency = statistics.median(turn[0].median / turn[1].median for turn in alone)
    yield Figure("latency_to_bare_flask", latency, f"one kept connection: {told(alone, 'bare Flask')}")


def ratio(turns: Sequence[Sequence[Rate]], other: int) -> float:
    """How many more the first answers than another one."""
    return statistics.median(turn[0].processor / turn[other].processor for turn in turns)


def told(turns: Sequence[Sequence[Rate]], other: str) -> str:
    """The rates and times of the first two, in words."""
    texts = []
    for column in zip(*turns, strict=True):
        rate, median, late = (
            statistics.median(getattr(each, name) for each in column) for name in ("processor", "median", "late")
        )
        texts.append(f"{rate:.0f}/s per core, p50 {median:.2f} ms, p99 {late:.1f} ms")
    return f"{texts[0]}; {other} {texts[1]}"


@dataclass(frozen=True)
class Server:
    """A server in a process of its own: where it listens, its CA, and its one worker."""

    url: str
    ca: str
    worker: int


@dataclass(frozen=True)
class Rate:
    """Answers per second of the clock, and per second of the worker's processor time; milliseconds to an answer."""

    clock: float
    processor: float
    median: float
    late: float


def turns(servers: Sequence[Server], rounds: int, connections: int) -> list[list[Rate]]:
    """The rates of all, again and again; who is first changes from turn to turn, and the first turn warms up."""
    found = []
    for number in range(rounds):
        order = [(number + place) % len(servers) for place in range(len(servers))]
        rates = {place: rate_of(servers[place], connections) for place in order}
        found.append([rates[place] for place in range(len(servers))])
    return found[1:]


def rate_of(server: Server, connections: int, seconds: float = 0.5) -> Rate:
    command = [HERE / "load.py", f"{server.url}/mutate", server.ca, POD, connections, seconds, server.worker]
    done = subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True, text=True)
    return Rate(*map(float, done.stdout.split()))


@contextmanager
def running(*arguments: str) -> Iterator[Server]:
    """A server, until the block ends.

    Its log goes to a file: somebody who took it from a pipe would be measured as well.
    """
    with tempfile.NamedTemporaryFile() as log, subprocess.Popen([sys.executable, *arguments], stdout=log) as process:
        try:
            ready = ready_line(Path(log.name), process)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            yield Server(ready["url"], ready["ca"], int(children))
        finally:
            process.terminate()
            process.wait()


def ready_line(log: Path, process: subprocess.Popen[bytes]) -> Mapping[str, str]:
    while process.poll() is None:
        for text in log.read_bytes().splitlines(keepends=True):
            if text.endswith(b"\n") and (line := json.loads(text))["message"] == "ready":
                return line
        time.sleep(0.02)
    raise RuntimeError(f"{process.args} ended before it was ready")


def import_figures(_: Effort) -> Iterator[Figure]:
    bare, package, everything = [], [], []
    for _ in range(15):
        bare.append(milliseconds_of("pass"))
        package.append(milliseconds_of("import vnpu"))
        everything.append(milliseconds_of(IMPORT_ALL))
    start, value, all_modules = (statistics.median(column) for column in (bare, package, everything))
    note = f"beside a bare start of {start:.0f} ms; every module of vnpu takes {all_modules - start:.0f} ms"
    yield Figure("import_ms", max(value - start, 0.0), note)
    foreign = run_python(IMPORT_ALL).split()
    yield Figure(
        "import_third_party", len(foreign), " ".join(foreign) or "standard library only, in every module of vnpu"
    )


def milliseconds_of(code: str) -> float:
    """Processor time of a Python of its own; by the clock it would measure who else runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_python(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
