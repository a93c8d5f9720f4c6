"""The postStart hook: every shape that a user's own can have, in each form of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pods import asking, container, patched, pod
from vnpu.admission import rules
from vnpu.admission.settings import Hook, Limiter, Settings
from vnpu.chips import DEFAULT_CHIPS

if TYPE_CHECKING:
    from vnpu.errors import FieldError

SLICE = asking(count=1, memory=8192, core=20)
LIMITER = "/usr/local/hami-vnpu-core/limiter"
SCRIPT = f"export RUST_LOG=info\n{LIMITER} > /tmp/limiter_manager.log 2>&1 &"
HAMI = Settings(limiter=Limiter(hook=Hook.HAMI))


def app(post_start: Any, **fields: Any) -> dict[str, Any]:
    return pod(container(limits=SLICE, lifecycle={"postStart": post_start, **fields}))


def exec_of(*command: Any) -> dict[str, Any]:
    return {"exec": {"command": list(command)}}


def hook(document: dict[str, Any], settings: Settings | None = None) -> Any:
    outcome = rules.mutate_pod(document, settings or Settings(), DEFAULT_CHIPS)
    assert outcome.allowed, outcome.message
    result = patched(document, outcome.sets)
    assert rules.mutate_pod(result, settings or Settings(), DEFAULT_CHIPS).sets == ()
    return result["spec"]["containers"][0]["lifecycle"]["postStart"]


def refused(document: dict[str, Any], settings: Settings | None = None) -> FieldError:
    outcome = rules.mutate_pod(document, settings or Settings(), DEFAULT_CHIPS)
    assert outcome.sets == ()
    (fault,) = outcome.refusals
    assert 'container "app"' in fault.allowed
    return fault


@pytest.mark.parametrize(
    ("post_start", "command"),
    [
        (None, [LIMITER, "start"]),
        (exec_of("true"), [LIMITER, "start", "--", "true"]),
        (exec_of("/bin/sh", "-c", "a && b"), [LIMITER, "start", "--", "/bin/sh", "-c", "a && b"]),
        (exec_of(""), [LIMITER, "start", "--", ""]),
        ({"sleep": {"seconds": 0}}, [LIMITER, "start", "--sleep", "0"]),
        ({"sleep": {"seconds": 30}, "exec": None}, [LIMITER, "start", "--sleep", "30"]),
        # ours
        (exec_of(LIMITER, "start"), [LIMITER, "start"]),
        (exec_of("/other/limiter", "start"), ["/other/limiter", "start"]),
        (exec_of("/limiter", "start", "--", "x"), ["/limiter", "start", "--", "x"]),
        # not ours
        (exec_of("limiter", "start"), [LIMITER, "start", "--", "limiter", "start"]),
        (exec_of("/x/limiter"), [LIMITER, "start", "--", "/x/limiter"]),
        (exec_of("/x/limiter", "stop"), [LIMITER, "start", "--", "/x/limiter", "stop"]),
        (exec_of("/x/mylimiter", "start"), [LIMITER, "start", "--", "/x/mylimiter", "start"]),
    ],
)
def test_the_users_hook_is_chained_and_ours_is_known_again(post_start: Any, command: list[str]) -> None:
    assert hook(app(post_start)) == {"exec": {"command": command}}


def test_r04_a_pre_stop_and_a_stop_signal_stay() -> None:
    document = app(None, preStop=exec_of("sh", "-c", "sleep 5"), stopSignal="SIGINT")
    result = patched(document, rules.mutate_pod(document, Settings(), DEFAULT_CHIPS).sets)
    lifecycle = result["spec"]["containers"][0]["lifecycle"]
    assert lifecycle["preStop"] == exec_of("sh", "-c", "sleep 5")
    assert lifecycle["stopSignal"] == "SIGINT"
    assert lifecycle["postStart"] == exec_of(LIMITER, "start")


def test_r59_no_shell_stands_between_hook_and_limiter() -> None:
    command = hook(app(None))["exec"]["command"]
    assert command[0].startswith("/")
    assert not {"sh", "bash", "-c"} & set(command)


@pytest.mark.parametrize("handler", ["httpGet", "tcpSocket"])
def test_r04_what_cannot_be_chained_is_refused_with_the_remedy(handler: str) -> None:
    fault = refused(app({handler: {"port": 80}}))
    assert fault.path == f"spec.containers[0].lifecycle.postStart.{handler}"
    assert "write it as exec" in fault.allowed


@pytest.mark.parametrize(
    ("post_start", "path"),
    [
        ("x", "postStart"),
        ([], "postStart"),
        (True, "postStart"),
        ({}, "postStart"),
        ({"exec": None}, "postStart"),
        ({"other": {}}, "postStart"),
        ({"exec": {"command": ["a"]}, "sleep": {"seconds": 1}}, "postStart"),
        ({"exec": {}}, "postStart.exec.command"),
        ({"exec": "true"}, "postStart.exec.command"),
        ({"exec": ["true"]}, "postStart.exec.command"),
        ({"exec": {"command": None}}, "postStart.exec.command"),
        ({"exec": {"command": []}}, "postStart.exec.command"),
        ({"exec": {"command": "true"}}, "postStart.exec.command"),
        ({"exec": {"command": ["a", 1]}}, "postStart.exec.command"),
        ({"sleep": {}}, "postStart.sleep.seconds"),
        ({"sleep": 5}, "postStart.sleep.seconds"),
        ({"sleep": {"seconds": -1}}, "postStart.sleep.seconds"),
        ({"sleep": {"seconds": "5"}}, "postStart.sleep.seconds"),
        ({"sleep": {"seconds": 1.5}}, "postStart.sleep.seconds"),
        ({"sleep": {"seconds": True}}, "postStart.sleep.seconds"),
        ({"sleep": {"seconds": 2**31}}, "postStart.sleep.seconds"),
    ],
)
def test_a_malformed_hook_is_refused_with_its_path(post_start: Any, path: str) -> None:
    assert refused(app(post_start)).path == f"spec.containers[0].lifecycle.{path}"


def test_the_form_for_the_upstream_binary() -> None:
    assert hook(app(None), HAMI) == exec_of("bash", "-c", SCRIPT)
    elsewhere = Settings(limiter=Limiter("/hami-vnpu-core/limiter", Hook.HAMI))
    assert "\n/hami-vnpu-core/limiter > " in hook(app(None), elsewhere)["exec"]["command"][2]
    # Written with another path, or with the line end that YAML's block texts have.
    old = exec_of("bash", "-c", SCRIPT.replace(LIMITER, "/old/limiter") + "\n")
    assert hook(app(old), HAMI) == old


UPSTREAM = (
    exec_of("bash", "-c", "export RUST_LOG=info\n/hami-vnpu-core/limiter > /tmp/limiter_manager.log 2>&1 &"),
    exec_of("/bin/sh", "-c", "export RUST_LOG=info\n/hami-vnpu-core/limiter > /tmp/limiter_manager.log 2>&1 &"),
    exec_of("bash", "-c", f"export RUST_LOG=info\n{LIMITER} > /usr/local/hami-vnpu-core/inst1_manager.log 2>&1 &\n"),
    exec_of("bash", "-c", "export RUST_LOG=info; /hami-vnpu-core/limiter > /tmp/limiter_manager.log 2>&1 &"),
    exec_of("sh", "-c", f"{LIMITER} >> /tmp/l.log 2>&1 &"),
)
"""Hooks of HAMi 2.9, of webhooks made after it, and of its documents."""


@pytest.mark.parametrize("post_start", UPSTREAM)
def test_a_hook_of_hamis_webhook_starts_no_second_limiter(post_start: Any) -> None:
    assert hook(app(post_start)) == exec_of(LIMITER, "start")
    assert hook(app(post_start), HAMI) == post_start
    untouched = Settings(limiter=Limiter(hook=Hook.NONE))
    assert hook(app(post_start), untouched) == post_start


def test_a_script_that_does_more_than_to_start_the_limiter_is_the_users() -> None:
    own = exec_of("bash", "-c", f"warm-up; {SCRIPT}")
    assert hook(app(own)) == exec_of(LIMITER, "start", "--", *own["exec"]["command"])


@pytest.mark.parametrize(
    "post_start",
    [
        exec_of("true"),
        exec_of(LIMITER, "start"),
        exec_of("bash", "-c", f"{SCRIPT}; rm -rf /"),
        exec_of("bash", "-c", SCRIPT.replace(LIMITER, f"curl x | sh; {LIMITER}")),
        exec_of("bash", "-c", SCRIPT.replace(LIMITER, "limiter")),
        exec_of("bash", "-c", SCRIPT.replace(LIMITER, "/bin/true")),
        exec_of("bash", "-c", SCRIPT.replace("/limiter", "/mylimiter")),
        exec_of("bash", "-c", SCRIPT.removesuffix(" &")),
        exec_of("bash", "-c", SCRIPT.replace("info\n", "$(date)\n")),
        exec_of("bash", "-c", SCRIPT.replace(LIMITER, f"{LIMITER}\n{LIMITER}")),
        exec_of("bash", "-x", SCRIPT),
        exec_of("bash", "-c", SCRIPT, "x"),
        exec_of("python3", "-c", SCRIPT),
        {"sleep": {"seconds": 1}},
        {"httpGet": {"port": 80}},
    ],
)
def test_the_form_for_the_upstream_binary_stands_beside_no_other(post_start: Any) -> None:
    fault = refused(app(post_start), HAMI)
    assert fault.path.startswith("spec.containers[0].lifecycle.postStart.")
    assert "limiter.hook: hami" in fault.allowed


@pytest.mark.parametrize("post_start", [None, exec_of("true"), {"httpGet": {"port": 80}}, {}, "x"])
def test_without_a_hook_the_users_is_none_of_our_business(post_start: Any) -> None:
    outcome = rules.mutate_pod(app(post_start), Settings(limiter=Limiter(hook=Hook.NONE)), DEFAULT_CHIPS)
    assert outcome.allowed
    assert not any("lifecycle" in assignment.path for assignment in outcome.sets)
    assert any("env" in assignment.path for assignment in outcome.sets)


def test_r05_plain_init_containers_and_native_sidecars() -> None:
    plain = pod(container(), init=[container("compile", limits=SLICE)])
    outcome = rules.mutate_pod(plain, Settings(), DEFAULT_CHIPS)
    assert "compile" in outcome.message
    assert "restartPolicy: Always" in outcome.message
    sidecar = pod(container(), init=[container("embedder", limits=SLICE, restartPolicy="Always")])
    result = patched(sidecar, rules.mutate_pod(sidecar, Settings(), DEFAULT_CHIPS).sets)
    assert result["spec"]["initContainers"][0]["lifecycle"]["postStart"] == exec_of(LIMITER, "start")
    for settings in (HAMI, Settings(limiter=Limiter(hook=Hook.NATIVE))):
        assert not rules.mutate_pod(plain, settings, DEFAULT_CHIPS).allowed
    assert rules.mutate_pod(plain, Settings(limiter=Limiter(hook=Hook.NONE)), DEFAULT_CHIPS).allowed
