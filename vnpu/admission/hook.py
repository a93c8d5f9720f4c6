"""The postStart hook that starts the limiter in a soft container.

============  ========================================================================================================
``native``    ``exec.command: [<limiter path>, start]``, without a shell, since an image may have none. The user's own
              exec is chained behind ``--``, their ``sleep`` behind ``--sleep``. A hook that HAMi's webhook wrote is
              replaced: each container has one limiter.
``hami``      the form of HAMi 2.9 for the upstream binary, which knows no ``start``: a shell puts it in the background.
              A user's own hook cannot be chained here. One that HAMi's webhook wrote stays.
``none``      nothing: newer libraries of HAMi start their manager themselves.
============  ========================================================================================================

The API server refuses a lifecycle on a plain init container, so a soft slice cannot stand there while a hook is needed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.admission.outcome import Set
from vnpu.admission.settings import Hook
from vnpu.containers import ContainerKind
from vnpu.errors import ABSENT, InputError, RequestError
from vnpu.mode import Mode
from vnpu.quantity import is_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.admission.settings import Limiter
    from vnpu.containers import Container

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_LIMITER_NAME: Final = "/limiter"
_SHELL: Final = ("bash", "-c")
_SHELL_BEFORE: Final = "export RUST_LOG=info\n"
_SHELL_AFTER: Final = f" > {names.LIMITER_LOG_UPSTREAM} 2>&1 &"
_SHELLS: Final = ("bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh")
_PATH: Final = r"/[A-Za-z0-9._/-]*"
_SCRIPT: Final = re.compile(rf"(export RUST_LOG=[a-z]+ *[\n;] *)?{_PATH}(?<=/)limiter *>>? *{_PATH} +2>&1 *&", re.ASCII)
"""What HAMi's webhooks and documents start the limiter with: several shells, paths and logs."""
_REMEDY: Final = "write it as exec, or do its work in the container's own command"


def start(container: Container, limiter: Limiter) -> Set | None:
    """What starts the limiter in a soft container; None where nothing is to be written.

    Raises:
        RequestError: a plain init container, or a postStart of the user that cannot be chained.
        InputError: a lifecycle without the shape that Kubernetes gives it.
    """
    if limiter.hook is Hook.NONE:
        return None
    path = f"{container.path}.lifecycle"
    if container.kind is ContainerKind.INIT:
        raise RequestError(
            f"{container.path}.resources",
            container.name,
            "a soft slice needs a postStart hook, which Kubernetes refuses on a plain init container; make it a native "
            f"sidecar (restartPolicy: Always), or set the annotation {names.MODE}: {Mode.HARD.value} "
            "and leave core out",
        )
    lifecycle = container.raw.get("lifecycle")
    if lifecycle is None:
        lifecycle = {}
    if not isinstance(lifecycle, dict):
        raise InputError(path, lifecycle, "a mapping with postStart and preStop is expected")
    path = f"{path}.postStart"
    handlers = _handlers(lifecycle.get("postStart"), path)
    keys = (*container.keys, "lifecycle", "postStart")
    return (
        _native(handlers, limiter.path, path, keys)
        if limiter.hook is Hook.NATIVE
        else _hami(handlers, limiter.path, path, keys)
    )


def _handlers(post_start: Any, path: str) -> Mapping[str, Any]:
    """The user's handler; empty without a hook."""
    if post_start is None:
        return {}
    if not isinstance(post_start, dict):
        raise InputError(path, post_start, f"a mapping with one of {', '.join(_HANDLERS)} is expected")
    handlers = {name: post_start[name] for name in _HANDLERS if post_start.get(name) is not None}
    if len(handlers) != 1:
        raise InputError(path, sorted(post_start), f"exactly one of {', '.join(_HANDLERS)} is expected")
    return handlers


def _native(handlers: Mapping[str, Any], limiter: str, path: str, keys: tuple[str | int, ...]) -> Set | None:
    if not handlers:
        return Set(keys, {"exec": {"command": [limiter, names.LIMITER_START]}})
    if "exec" in handlers:
        command = _command(handlers["exec"], f"{path}.exec")
        if _starts_limiter(command):
            return None
        if _starts_upstream(command):
            # HAMi's webhook came first. Chained, it would start a second limiter that divides the same card.
            return Set((*keys, "exec", "command"), [limiter, names.LIMITER_START])
        return Set((*keys, "exec", "command"), [limiter, names.LIMITER_START, "--", *command])
    if "sleep" in handlers:
        seconds = _seconds(handlers["sleep"], f"{path}.sleep")
        return Set(keys, {"exec": {"command": [limiter, names.LIMITER_START, names.LIMITER_SLEEP, str(seconds)]}})
    (handler,) = handlers
    raise RequestError(
        f"{path}.{handler}",
        handler,
        f"this hook cannot be chained with the one that starts the limiter; {_REMEDY}",
    )


def _starts_limiter(command: list[str]) -> bool:
    """Whether the command is ours. Any absolute path counts: the setting may have changed since it was written."""
    return (
        len(command) > 1
        and command[1] == names.LIMITER_START
        and command[0].startswith("/")
        and command[0].endswith(_LIMITER_NAME)
    )


def _hami(handlers: Mapping[str, Any], limiter: str, path: str, keys: tuple[str | int, ...]) -> Set | None:
    if not handlers:
        return Set(keys, {"exec": {"command": [*_SHELL, f"{_SHELL_BEFORE}{limiter}{_SHELL_AFTER}"]}})
    if "exec" in handlers and _starts_upstream(_command(handlers["exec"], f"{path}.exec")):
        return None
    (handler,) = handlers
    raise RequestError(
        f"{path}.{handler}",
        handler,
        "with the setting limiter.hook: hami the limiter's hook stands here, and runs no other; do its work in the "
        "container's own command",
    )


def _starts_upstream(command: list[str]) -> bool:
    """Whether the command starts the upstream limiter and nothing else, in any of the forms that are about."""
    return len(command) == len(_SHELL) + 1 and (
        command[0] in _SHELLS and command[1] == _SHELL[1] and _SCRIPT.fullmatch(command[-1].strip()) is not None
    )


def _command(handler: Any, path: str) -> list[str]:
    command = handler.get("command", ABSENT) if isinstance(handler, dict) else ABSENT
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise InputError(f"{path}.command", command, "a list of at least one text is expected")
    return command


def _seconds(handler: Any, path: str) -> int:
    seconds = handler.get("seconds", ABSENT) if isinstance(handler, dict) else ABSENT
    if not is_whole(seconds):
        raise InputError(f"{path}.seconds", seconds, "a whole number of seconds from 0 is expected")
    return seconds
