"""Asking what may never answer: a driver that hangs keeps its caller, and no signal ends that."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from interceptor.devices import DevicesError

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
DRIVER_S: Final = 10.0
"""libdcmi answers for all chips within milliseconds."""
COMMAND_S: Final = 60.0
"""npu-smi is started some thirty times for 16 chips."""


class Question(Generic[_T]):
    """A call that is made in a thread of its own, for which nobody waits longer than a while."""

    def __init__(self, what: str, ask: Callable[[], _T], patience_s: float = DRIVER_S) -> None:
        """Take the question.

        Args:
            what: is asked, for the error.
            ask: the call.
            patience_s: how long its answer is waited for.
        """
        self._what = what
        self._ask = ask
        self._patience_s = patience_s
        self._asked: Future[_T] | None = None

    def __call__(self) -> _T:
        """The answer; for one that is still missing since the last time nobody waits again.

        Raises:
            DevicesError: there is none.
        """
        late = self._asked is not None and not self._asked.done()
        if self._asked is None or not late:
            self._asked = _started(self._ask)
        try:
            return self._asked.result(0 if late else self._patience_s)
        except TimeoutError as error:
            raise DevicesError(f"{self._what}: no answer within {self._patience_s:g} s") from error


def _started(ask: Callable[[], _T]) -> Future[_T]:
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answer.set_exception(error)

    threading.Thread(target=run, name="question", daemon=True).start()
    return answer
