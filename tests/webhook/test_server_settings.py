"""Settings and chip table change while the server runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.reviews import body_of
from tests.support.server import TIMEOUT_S, Server, running
from tests.support.traffic import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOFT = body_of("mutate-create-pods-soft-910b3.json")
REFUSED = "not loaded, the old goes on"
CHIP = "{commonWord: Ascend910B3, chipName: 910B3, resourceName: huawei.com/Ascend910B3, memoryCapacity: 65536"


class ConfigMap:
    """Files as a kubelet lays them out: links through one link that is swapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0
        for name in ("settings.yaml", "chips.yaml"):
            (folder / name).symlink_to(f"..data/{name}")
        self.put()

    def put(self, settings: str = "", allocatable: int = 65536) -> None:
        self.number += 1
        data = self.folder / f"..{self.number}"
        data.mkdir()
        (data / "settings.yaml").write_text(settings)
        (data / "chips.yaml").write_text(f"vnpus:\n  configs:\n  - {CHIP}, memoryAllocatable: {allocatable}}}\n")
        link = self.folder / "..data_tmp"
        link.symlink_to(data.name)
        link.replace(self.folder / "..data")


@pytest.fixture
def files(tmp_path: Path) -> ConfigMap:
    folder = tmp_path / "config"
    folder.mkdir()
    return ConfigMap(folder)


@pytest.fixture
def server(files: ConfigMap, tmp_path: Path) -> Iterator[Server]:
    options = ("--config", str(files.folder / "settings.yaml"), "--device-config", str(files.folder / "chips.yaml"))
    with running(*options, "--workers", "2", temporary=tmp_path) as started:
        yield started


def answer(server: Server) -> dict[str, Any]:
    with server.session() as session:
        headers = {"Content-Type": "application/json"}
        response = session.post(f"{server.url}/mutate", data=SOFT, headers=headers, timeout=TIMEOUT_S).json()
    found: dict[str, Any] = response["response"]
    return found


def allowed_by_all(server: Server) -> set[bool]:
    """What new connections find; which worker answers is the kernel's choice."""
    return {answer(server)["allowed"] for _ in range(20)}


def test_a_new_chip_table_is_judged_by_in_all_workers(files: ConfigMap, server: Server) -> None:
    assert allowed_by_all(server) == {True}
    assert server.metric("vnpu_webhook_config_generation") == 1
    files.put(allocatable=20000)
    wait_until(lambda: allowed_by_all(server) == {False}, "the new table")
    assert "20000" in answer(server)["status"]["message"]
    wait_until(lambda: server.metric("vnpu_webhook_config_generation") == 2, "its number")


def test_bad_settings_are_refused_once_and_the_old_go_on(files: ConfigMap, server: Server) -> None:
    files.put(settings="defaultmode: template", allocatable=20000)
    wait_until(lambda: bool(server.said(REFUSED)), "a line about it")
    assert "defaultMode" in server.said(REFUSED)[0]["message"]
    assert server.said(REFUSED)[0]["what"] == "settings"
    wait_until(lambda: server.metric('vnpu_webhook_reload_failures_total{what="settings"}') == 3, "all processes")
    assert server.metric('vnpu_webhook_reload_failed{what="settings"}') == 1
    assert allowed_by_all(server) == {True}
    (worker, _) = server.workers()
    server.kill(worker)
    wait_until(lambda: worker not in server.workers() and len(server.workers()) == 2, "another worker")
    assert allowed_by_all(server) == {True}, "one that is started later judges by the old ones as well"
    assert len(server.said(REFUSED)) == 1
    files.put(allocatable=20000)
    wait_until(lambda: allowed_by_all(server) == {False}, "the new table")
    wait_until(lambda: server.metric('vnpu_webhook_reload_failed{what="settings"}') == 0, "the end of it")
