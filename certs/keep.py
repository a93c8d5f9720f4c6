"""The background process of ``--certs self``, and the one-shot commands, which are the same for as long as it takes."""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from certs import folder as folders
from certs.publish import ForeignSecretError, Place, advance, look, view_of
from certs.rotation import PROPAGATION, WRITES, Step, to_serve
from vnpu.kube import Conflict, Forbidden, Invalid, KubeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from certs.publish import Found
    from certs.rotation import View
    from certs.trust import KeyPair
    from vnpu.kube import Cluster

POLL_S: Final = 3.0
"""Between two looks: a webhook entry without a caBundle is noticed in that time."""
_SLOW_S: Final = 30.0
"""Between two looks while somebody has to grant or clear up something first."""
_LONGEST_PAUSE_S: Final = 20.0
_SAY_AGAIN_S: Final = 600.0
_LEFT_ALONE: Final = "the caBundles differ and are left alone"
_RACE_S: Final = 0.1
"""About how long somebody who was slower waits before looking again."""


class Steadiness:
    """For how long nothing has changed, by a clock that only goes forward."""

    def __init__(self) -> None:
        self._seen: tuple[str, ...] | None = None
        self._since = 0.0

    def note(self, found: Found, now_s: float) -> timedelta:
        """Note what was found; returns since when it is so, nothing while a caBundle differs."""
        bundle = found.trust.bundle if found.trust is not None else b""
        right = found.entries is not None and all(entry.bundle == bundle for entry in found.entries)
        seen = found.versions if right else None
        if seen is None or seen != self._seen:
            self._seen, self._since = seen, now_s
        return timedelta(seconds=now_s - self._since)


@dataclass(slots=True)
class Log:
    """JSON lines on standard output, like those of the server that starts this process."""

    _said: dict[str, float] = field(default_factory=dict)

    def say(self, level: str, message: str, **fields: Any) -> None:
        """Write one line."""
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": level, "message": message, **fields}
        sys.stdout.write(f"{json.dumps(line, default=str)}\n")
        sys.stdout.flush()

    def say_once(self, level: str, message: str, **fields: Any) -> None:
        """Write one line, but not what was written within the last ten minutes: it is how things are, not news."""
        now, text = time.monotonic(), json.dumps([level, message, fields], default=str)
        self._said = {one: at for one, at in self._said.items() if now - at < _SAY_AGAIN_S}
        if text not in self._said:
            self._said[text] = now
            self.say(level, message, **fields)


@dataclass(slots=True)
class Replica:
    """One process that keeps certificates.

    Attributes:
        cluster: the API server.
        place: where things stand on it.
        folder: where the pair to serve is put; None where nobody serves.
        log: where it says what it does.
        propagation: see :data:`certs.rotation.PROPAGATION`.
        secret_only: leave the caBundles alone.
        renew: whether a new CA is asked for; once is enough.
        clock: the time.
        monotonic: seconds that only go forward.
        poll_s: see :data:`POLL_S`.
    """

    cluster: Cluster
    place: Place
    folder: Path | None
    log: Log
    propagation: timedelta = PROPAGATION
    secret_only: bool = False
    renew: bool = False
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    poll_s: float = POLL_S
    _steadiness: Steadiness = field(default_factory=Steadiness)
    _served: KeyPair | None = None
    _remembered: bytes = b""
    _failures: int = 0
    _last: Step | None = None

    def start(self) -> None:
        """Take up what a process before this one left in the folder."""
        if self.folder is not None:
            self._served, self._remembered = folders.stored(self.folder)

    def turn(self) -> tuple[Step | None, float]:
        """Look, put into the folder what is to be served, and take one step.

        Returns:
            The step, None where something failed, and the seconds to wait before the next turn.
        """
        try:
            found = look(self.cluster, self.place, self.clock())
            view = self._view(found)
            self._serve(view)
            step, why = advance(self.cluster, self.place, found, view, secret_only=self.secret_only)
        except (Conflict, Invalid) as error:
            self._failures += 1
            if self._failures > 1:  # once is a race
                self.log.say_once("warning", "somebody else changes the certificates as well", reason=str(error))
            return None, self._pause(_RACE_S)
        except (Forbidden, ForeignSecretError) as error:
            self.log.say_once("error", "the certificates cannot be kept", reason=str(error), serves=self._serves())
            return None, _SLOW_S
        except (KubeError, OSError) as error:
            self._failures += 1
            self.log.say_once(
                "error", "the certificates cannot be kept for now", reason=str(error), serves=self._serves()
            )
            return None, self._pause(1.0)
        if self._failures > 1:
            self.log.say("info", "the certificates are kept again", failures=self._failures)
        self._failures = 0
        if step is Step.ANNOUNCE:
            self.renew = False
        self._tell(step, why)
        before, self._last = self._last, step
        return step, self._after(step, before)

    def _view(self, found: Found) -> View:
        view = view_of(
            found,
            self.place,
            self.clock(),
            propagation=self.propagation,
            steady=self._steadiness.note(found, self.monotonic()),
            remembered=self._remembered,
            renew=self.renew,
        )
        if found.trust is not None and found.trust.signer is not None:
            self._remembered = found.trust.bundle
        return view

    def _serve(self, view: View) -> None:
        if self.folder is None:
            return
        pair = to_serve(self._served, view)
        if pair is None:
            if view.trust is not None:
                self.log.say_once("info", "nothing is served before API servers have seen the CA that signed it")
        elif self._served is None or pair.pair != self._served.pair:
            folders.store(self.folder, pair, self._remembered)
            self._served = pair
            ends = pair.certificate.ends.isoformat()
            self.log.say("info", "serves", serial=pair.certificate.serial, notAfter=ends)

    def _tell(self, step: Step, why: str) -> None:
        if step is Step.SETTLED or (self.secret_only and step is Step.WAIT):
            return
        message = _LEFT_ALONE if self.secret_only and step is Step.PUBLISH else step.value
        # A caBundle that somebody else keeps changing back is published every few seconds.
        say = self.log.say if step in WRITES else self.log.say_once
        secret = f"{self.place.namespace}/{self.place.secret}"
        say("error" if step is Step.STUCK else "info", message, reason=why, secret=secret)

    def _serves(self) -> str:
        return "what was served goes on being served" if self._served is not None else "nothing is served yet"

    def _after(self, step: Step, before: Step | None) -> float:
        if step is Step.STUCK:
            return _SLOW_S
        # A step that has to be taken again was undone by somebody: no reason to hurry.
        if step in (Step.SETTLED, Step.WAIT, before) or (step is Step.PUBLISH and self.secret_only):
            return self.poll_s * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load
        return 0.0

    def _pause(self, first_s: float) -> float:
        longest = min(_LONGEST_PAUSE_S, first_s * 2.0 ** min(self._failures - 1, 16))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - the same
