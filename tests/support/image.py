"""``python -m tests.support.image``: the steps of Containerfile, and what comes out of them, without an engine.

Needs root, for mounts in a namespace of its own. Exit codes: 0 all is well; 77 it cannot be tried here.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Final

from interceptor import elf
from tests.support.containerfile import Built, parse
from vnpu import names

TOP: Final = Path(__file__).parents[2]
CONTAINERFILE: Final = TOP / "Containerfile"
PROGRAMS: Final = (
    *("webhook", "webhook.extender", "certs"),
    *("interceptor.device_plugin", "interceptor.install", "interceptor.exporter"),
)
"""What the pods of the chart run, and what the webhook itself starts."""
NOT_IN_THE_IMAGE: Final = ("pip", "pytest", "ruff", "mypy", "hypothesis", "ziglang")
_ARCHES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_INSIDE: Final = "VNPU_IMAGE_CHECK"
_CANNOT: Final = 77


def main() -> int:
    """Build and look; returns the exit code."""
    if os.geteuid() != 0:
        sys.stderr.write("the image's steps are not tried: only root may mount\n")
        return _CANNOT
    if _INSIDE in os.environ:
        _check(Path(os.environ[_INSIDE]))
        return 0
    # The folder is made here and mounted upon in there: all mounts are gone before anything is removed.
    folder = tempfile.mkdtemp(prefix="vnpu-image-")
    command = ["unshare", "--mount", sys.executable, "-m", __spec__.name]
    code = subprocess.run(command, env={**os.environ, _INSIDE: folder}, check=False).returncode
    Path(folder).rmdir()
    return code


def _check(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    machine = elf.this_machine()
    stages = parse(CONTAINERFILE)
    native = next(stage for stage in stages if stage.name == "native")
    for other in sorted(set(_ARCHES) - {machine}):
        _say(f"native parts for {other}")
        built = Built(folder / other, native, TOP, {}, _ARCHES[other])
        assert (built.root / "out" / other / "libvnpu.so").exists()
    built_stages: dict[str, Built] = {}
    for index, stage in enumerate(stages):
        _say(f"stage {stage.name or 'of the image'}")
        built_stages[stage.name] = Built(folder / f"{index}", stage, TOP, built_stages, _ARCHES[machine])
    _look(built_stages[""])


def _look(image: Built) -> None:
    image.freeze()
    _say("user, root and packages")
    assert image.run("id", "-u").strip() == image.user.partition(":")[0] != "0"
    absent = f"import importlib.util as u; print([n for n in {NOT_IN_THE_IMAGE!r} if u.find_spec(n)])"
    assert image.run("python", "-c", absent).strip() == "[]"
    assert image.run("python", "-c", "import os; print(os.access('/opt/vnpu', os.W_OK))").strip() == "False"
    for program in PROGRAMS:
        _say(f"python -m {program}")
        assert "usage:" in image.run("python", "-m", program, "--help")
    entries = "import importlib.metadata as m; print(*[e.name for e in m.distribution('ascend-vnpu').entry_points])"
    for script in image.run("python", "-c", entries).split():
        _say(script)
        assert "usage:" in image.run(script, "--help")
    _say("the installer, onto an empty host")
    image.run("mkdir", "-m", "755", "/tmp/host", user="0:0")
    image.run("python", "-m", "interceptor.install", "--host-root=/tmp/host", user="0:0")
    assert list((image.root / "tmp/host").glob(f".{names.CORE_DIR}/*/libvnpu.so"))
    _say("the webhook, from start to end")
    _serve(image)


def _serve(image: Built) -> None:
    with subprocess.Popen(
        image.command("python", "-m", "webhook", "--port=0", "--workers=2"), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            ready = next(line for line in map(json.loads, server.stdout) if line["message"] == "ready")
            context = ssl.create_default_context(cafile=f"{image.root}{ready['ca']}")
            with urllib.request.urlopen(f"{ready['url']}/readyz", timeout=30, context=context) as answer:
                assert answer.status == 200
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0
        finally:
            server.kill()


def _say(what: str) -> None:
    sys.stdout.write(f"image-check: {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
