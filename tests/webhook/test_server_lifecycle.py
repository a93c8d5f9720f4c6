"""Servers and their processes come and go; what can be answered is answered."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.mounts import NAME, Mount
from tests.support.reviews import body_of
from tests.support.server import TIMEOUT_S, Server, running
from tests.support.switch import Switch, is_ready
from tests.support.traffic import Client, post, traffic, wait_until

MESSAGE = post(body_of("mutate-create-pods-soft-910b3.json"))

REVIEWS = 'vnpu_webhook_reviews_total{decision="allowed",endpoint="mutate",reason="patched"}'


class TestDrain:
    def test_new_connections_are_served_while_it_is_not_ready(self, tmp_path: Path) -> None:
        with running("--drain-seconds", "3", "--workers", "2", temporary=tmp_path) as server:
            assert is_ready(server)
            server.process.terminate()
            wait_until(lambda: not is_ready(server), "the end of readiness")
            assert server.process.poll() is None
            with server.session() as session:
                response = session.get(f"{server.url}/readyz", timeout=TIMEOUT_S)
            assert "draining" in response.text
            with server.connect() as client:
                client.send(MESSAGE)
                status, headers, _ = client.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert server.process.wait(TIMEOUT_S) == 0
            assert server.said("draining")

    def test_a_second_signal_ends_it_at_once(self, tmp_path: Path) -> None:
        with running("--drain-seconds", "600", temporary=tmp_path) as server:
            server.process.terminate()
            wait_until(lambda: not is_ready(server), "the end of readiness")
            server.process.terminate()
            assert server.process.wait(TIMEOUT_S) == 0

    def test_a_worker_that_dies_meanwhile_is_replaced(self, tmp_path: Path) -> None:
        with running("--drain-seconds", "600", temporary=tmp_path) as server:
            server.process.terminate()
            wait_until(lambda: not is_ready(server), "the end of readiness")
            (worker,) = server.workers()
            server.kill(worker)
            wait_until(lambda: worker not in server.workers() and bool(server.workers()), "another worker")
            with Client(server.address, server.trust()) as client:
                assert client.call(MESSAGE)[0] == 200
            server.process.terminate()
            assert server.process.wait(TIMEOUT_S) == 0

    def test_a_rolling_restart_behind_a_switch_fails_no_call(self, mount: Mount, tmp_path: Path) -> None:
        arguments = (*mount.options, "--drain-seconds", "2")
        with ExitStack() as stack:

            def start() -> Server:
                return stack.enter_context(running(*arguments, temporary=tmp_path, ca=mount.bundle))

            servers = [start(), start()]
            switch = stack.enter_context(Switch(lambda: [each.address for each in tuple(servers) if is_ready(each)]))
            with traffic(switch.address, mount.trust, MESSAGE, kept=2, new=2, pause_s=0.02, name=NAME) as calls:
                for _ in range(2):
                    servers.append(start())
                    old = servers[0]
                    old.process.terminate()
                    assert old.process.wait(TIMEOUT_S) == 0
                    servers.remove(old)
        assert calls.failures == []
        assert set(calls.statuses) == {200}
        assert calls.number > 100


class TestWorkers:
    def test_a_hangup_starts_others_and_fails_no_call(self, tmp_path: Path) -> None:
        with running("--workers", "2", temporary=tmp_path) as server:
            before = set(server.workers())
            context = server.trust()
            with traffic(server.address, lambda: context, MESSAGE, kept=2, new=2, pause_s=0.01) as calls:
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: not before & set(server.workers()), "the end of the first workers")
            assert calls.failures == []
            assert set(calls.statuses) == {200}
            counted = server.metric('vnpu_webhook_reviews_total{decision="allowed",endpoint="mutate",reason="patched"}')
            assert counted == calls.number, "what the first ones counted stays"
            wait_until(lambda: server.metric("vnpu_webhook_workers") == 2, "the new ones alone")

    def test_one_that_is_killed_is_replaced(self, tmp_path: Path) -> None:
        with running("--workers", "2", temporary=tmp_path) as server:
            with Client(server.address, server.trust()) as client:
                assert client.call(MESSAGE)[0] == 200
            one, other = server.workers()
            server.kill(one)
            wait_until(lambda: one not in server.workers() and len(server.workers()) == 2, "another worker")
            assert other in server.workers()
            wait_until(lambda: server.metric("vnpu_webhook_workers") == 2, "its numbers")
            assert (
                server.metric('vnpu_webhook_reviews_total{decision="allowed",endpoint="mutate",reason="patched"}') == 1
            )
            assert server.stop() == 0

    def test_one_that_hangs_is_replaced(self, tmp_path: Path) -> None:
        with running(temporary=tmp_path) as server:
            (worker,) = server.workers()
            os.kill(worker, signal.SIGSTOP)
            wait_until(lambda: worker not in server.workers(), "its end")
            with Client(server.address, server.trust()) as client:
                assert client.call(MESSAGE)[0] == 200


class TestMaster:
    def test_workers_let_go_of_the_port_when_it_is_killed(self, tmp_path: Path) -> None:
        with running("--workers", "2", temporary=tmp_path) as server:
            workers = server.workers()
            server.process.kill()
            server.process.wait(TIMEOUT_S)

            def free() -> bool:
                with socket.socket() as other:
                    return other.connect_ex(server.address) != 0

            wait_until(free, "a free port")
            wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), "the end of workers")

    @pytest.mark.parametrize("number", [signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU])
    def test_what_is_refused_is_told(self, number: signal.Signals, tmp_path: Path) -> None:
        with running(temporary=tmp_path) as server:
            before = server.workers()
            server.process.send_signal(number)
            wait_until(lambda: bool([line for line in server.log if line["level"] == "warning"]), "a word about it")
            assert server.workers() == before
            assert server.stop() == 0


class TestLogThatNobodyReads:
    def test_it_answers_and_ends_all_the_same(self, tmp_path: Path) -> None:
        with running(temporary=tmp_path, read=False) as server, Client(server.address, server.trust()) as client:
            for _ in range(400):  # more than a pipe takes
                assert client.call(MESSAGE)[0] == 200
            server.process.terminate()
            assert server.process.wait(TIMEOUT_S) == 0

    def test_it_is_written_when_somebody_reads_again(self, tmp_path: Path) -> None:
        with running(temporary=tmp_path, read=False) as server:
            with Client(server.address, server.trust()) as client:
                for _ in range(400):
                    assert client.call(MESSAGE)[0] == 200
            server.reader.start()
            wait_until(lambda: len(server.said("review")) == 400, "a line for each review")
            assert server.metric("vnpu_log_lines_dropped_total") == 0


class TestRestrictedPod:
    """User 65532, and nothing but /dev/shm can be written to."""

    AS_USER = (
        *("setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups"),
        # Python may live below a home that is not this user's: it may read everything.
        *("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search"),
    )

    @pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root may become somebody else")
    def test_it_needs_no_folder_to_write_to(self, mount: Mount, tmp_path: Path) -> None:
        unwritable = tmp_path / "tmp"
        unwritable.mkdir(mode=0o555)
        options = (*mount.options, "--workers", "2")
        with running(*options, temporary=unwritable, ca=mount.bundle, prefix=self.AS_USER) as server:
            assert Path(f"/proc/{server.process.pid}").stat().st_uid == 65532
            with Client(server.address, server.trust(), NAME) as client:
                assert client.call(MESSAGE)[0] == 200
            mount.swap(mount.next())
            wait_until(lambda: bool(server.said("loaded")), "the new pair")
            assert server.stop() == 0
