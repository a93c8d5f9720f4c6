from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.native import TOP

if TYPE_CHECKING:
    from pathlib import Path

WIRE = "interceptor/device_plugin/wire"
PROTOS = sorted(path.relative_to(TOP) for path in (TOP / WIRE).glob("*.proto"))


@pytest.mark.parametrize("proto", PROTOS, ids=lambda path: path.stem)
def test_the_committed_messages_are_those_of_the_proto_file(proto: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([*command, str(proto)], cwd=TOP, check=True)
    for suffix in ("_pb2.py", "_pb2.pyi"):
        made = proto.with_name(proto.stem + suffix)
        assert (tmp_path / made).read_text() == (TOP / made).read_text(), f"see {WIRE}/__init__.py"


def test_there_are_messages() -> None:
    assert [path.stem for path in PROTOS] == ["deviceplugin", "podresources"]
