"""What ``make run`` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]


def test_the_demonstration_shows_the_main_job_and_ends() -> None:
    command = [sys.executable, "-m", "webhook.demo", str(TOP / "docs" / "examples")]
    result = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
    text = result.stdout
    assert "soft-slice.yaml: allowed" in text
    assert "+    - name: NPU_MEM_QUOTA\n+      value: '28672'" in text
    assert "Warning: spec.containers[0].envFrom" in text
    assert "refused.yaml: refused" in text
    assert "write 16384" in text
    assert "default/inference-2" in text
    assert "Not placed" not in text


def test_a_demonstration_that_does_not_go_as_it_should_says_so(tmp_path: Path) -> None:
    for sample in (TOP / "docs" / "examples").iterdir():
        (tmp_path / sample.name).write_bytes(sample.read_bytes())
    (tmp_path / "refused.yaml").write_bytes((tmp_path / "soft-slice.yaml").read_bytes())
    command = [sys.executable, "-m", "webhook.demo", str(tmp_path)]
    result = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert result.returncode == 1
