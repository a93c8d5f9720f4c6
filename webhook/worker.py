"""The gunicorn worker: one loop holds all connections, and a request is judged when all of it is there.

Stock gthread shakes hands and reads in its threads, so as many silent clients as it has threads stop it. Here nobody
waits for a client: the loop reads what came, and a small review, which takes less time than handing it to a thread, is
answered in the loop. Large ones go to a thread, one at a time, and what people and probes ask for to others.

**Overload.** A turn of the loop looks at every connection that has something to say, new ones first. Once it
has worked for :data:`_BUSY_S` on many, the reviews that are left are turned away with 503, and new connections that are
left are closed. So nobody waits much longer than two such turns for some answer. Connections, bytes that were
received and requests that wait for a thread are bounded; at a bound the connection goes that deserves it least.
"""

from __future__ import annotations

import errno
import os
import select
import ssl
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gunicorn.workers.base import Worker as GunicornWorker

from webhook import exchange, logs
from webhook.aside import Aside
from webhook.connection import Connection, Phase
from webhook.holding import Holding
from webhook.metrics import Late, Shed

if TYPE_CHECKING:
    from webhook.service import Service

_TURN_S: Final = 0.5
"""How often the loop wakes up at least: to tell the master that it lives, and to see whether the master does."""
_BUSY_S: Final = 0.15
_ALWAYS_PER_TURN: Final = 64
"""Reviews that are answered however long they take: what is slow here is not a crowd but the machine."""
_ACCEPTING_S: Final = 0.03
"""How long a turn accepts connections."""
_USUAL_ACCEPTS: Final = 100, 0.1
"""How many take how many seconds, their first step of the handshake included, as long as nothing else is known."""
_FADES: Final = 0.9
_PATIENCE_S: Final = 0.5
"""How long a connection may wait to be accepted."""
_QUICK_S: Final = 0.004
"""A turn as short as this one holds up nobody."""
_RECORDS_PER_TURN: Final = 16
"""Of one connection: a quarter of a MiB."""
_SMALL: Final = 2**16
"""Bytes of a body that is judged in the loop: a pod of thirty containers, which takes half a millisecond."""
_WAITING_JOBS: Final = 64
_JOB_WAITS_S: Final = 0.5
_PARTING_S: Final = 1.0
"""For a client that may be sending its next request while the server ends."""
_SAY_BUSY_S: Final = 5.0
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_LATE: Final = {
    Phase.HANDSHAKE: Late.HANDSHAKE,
    Phase.HEAD: Late.HEAD,
    Phase.BODY: Late.BODY,
    Phase.SENDING: Late.READING,
}


class Worker(GunicornWorker):  # type: ignore[misc]
    """A process that serves.

    Attributes:
        row: where this process counts, given by the master.
    """

    row: int
    alive: bool  # gunicorn says it in a way that type checkers do not follow

    @property
    def service(self) -> Service:
        """What is served."""
        service: Service = self.app.service
        return service

    def init_process(self) -> None:
        """Serve, until a signal ends it."""
        self.service.metrics.adopt(self.row)
        logs.start_writer(self.service.metrics.dropped)
        try:
            self._poll = select.epoll()
            self._holding = Holding(self._poll, self.service.metrics)
            self._threads = ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="answer")
            self._aside = Aside()
            self._waiting = 0
            self._answers: deque[tuple[Connection, bytes, bool]] = deque()
            self._again: list[Connection] = []
            self._turn = self._worked = self._told = 0.0
            self._turned_away = self._reviews = 0
            self._accepts, self._accepts_s = map(float, _USUAL_ACCEPTS)
            self._address = self.sockets[0].getsockname()
            self.service.reloader.follow()
            super().init_process()
        finally:
            logs.stop_writer()

    def run(self) -> None:
        """The loop; at SIGTERM it ends when the requests that have begun are answered."""
        listeners = {listener.fileno(): listener for listener in self.sockets}
        for descriptor in listeners:
            self._poll.register(descriptor, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        self._poll.register(self.PIPE[0], select.EPOLLIN)
        while self.alive and self.ppid == os.getppid():
            self._take_turn(listeners)
        for descriptor, listener in listeners.items():
            self._accept(listener, time.monotonic())  # whose connection stands already shall be served
            self._poll.unregister(descriptor)
            listener.close()
        self.alive = False
        self._holding.part(time.monotonic() + _PARTING_S)
        end = time.monotonic() + self.cfg.graceful_timeout
        while len(self._holding) and time.monotonic() < end:
            self._take_turn({}, _PARTING_S / 10)
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._aside.end()

    # ---- The loop

    def _take_turn(self, listeners: dict[int, Any], seconds: float = _TURN_S) -> None:
        self.notify()
        events = self._poll.poll(0 if self._again or self._answers else seconds)
        self._turn = time.monotonic()
        self._reviews = 0
        found: list[tuple[Connection, int]] = []
        for descriptor, mask in events:
            if descriptor in listeners:
                self._accept(listeners[descriptor], self._turn)
            elif descriptor == self.PIPE[0]:
                self._swallow_wakeups()
            elif (connection := self._holding.find(descriptor)) is not None:
                found.append((connection, mask))
        # New ones first: theirs is the second or third turn already that they wait for.
        found.sort(key=lambda each: each[0].phase is not Phase.HANDSHAKE)
        for connection, mask in found:
            self._advance(connection, partial(self._event, mask=mask))
        again, self._again = self._again, []
        for connection in again:
            if connection.phase is Phase.IDLE:
                self._advance(connection, self._read)
        self._send_answers()
        now = time.monotonic()
        self._end_overdue(now)
        self._worked = (self._worked + now - self._turn) / 2  # one turn may have waited for a processor
        self._tell(now)

    def _send_answers(self) -> None:
        while self._answers:
            connection, data, keep = self._answers.popleft()
            self._waiting -= 1
            if connection.phase is Phase.ANSWERING:  # otherwise its client is gone
                self._advance(connection, partial(self._send, data=data, keep=keep))

    def _end_overdue(self, now: float) -> None:
        for connection in self._holding.overdue(now):
            if connection.phase in _LATE:
                self.service.metrics.late(_LATE[connection.phase])
            self._holding.close(connection)

    def _swallow_wakeups(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self.PIPE[0], 4096)) == 4096:
                pass

    def _advance(self, connection: Connection, step: Any) -> None:
        try:
            step(connection)
        except (OSError, EOFError):
            self._holding.close(connection)
        except Exception:  # noqa: BLE001 - one connection's fault is not that of the others
            logs.LOGGER.exception("a connection failed")
            self._holding.close(connection)

    def _accept(self, listener: Any, now: float) -> None:
        # Those that wait in the kernel wait for one turn after the other. Who would wait too long is told at once.
        in_a_turn = _ACCEPTING_S * self._accepts / self._accepts_s
        served = int(in_a_turn * _PATIENCE_S / max(self._worked, _QUICK_S))
        excess = max(0, listener.get_backlog() - served)
        for _ in range(excess):
            if not self._accept_one(listener, now, welcome=False):
                return
        begun, number = time.monotonic(), 0
        while time.monotonic() - begun < _ACCEPTING_S and self._accept_one(listener, now, welcome=True):
            number += 1
        if number:
            self._accepts = self._accepts * _FADES + number
            self._accepts_s = self._accepts_s * _FADES + time.monotonic() - begun

    def _accept_one(self, listener: Any, now: float, *, welcome: bool) -> bool:
        """Take one connection; whether there may be more."""
        try:
            plain, peer = listener.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in _NO_ROOM:
                self._holding.make_room(now)
                return False
            return True
        if not welcome or not self._holding.has_room(now):
            self._turn_away(Shed.CONNECTIONS if welcome else Shed.BUSY)
            plain.close()
            return True
        with suppress(OSError):
            connection = Connection(plain, peer, self.service.reloader.certificate.value.context)
            self._holding.add(connection, now)
            self._advance(connection, partial(self._event, mask=select.EPOLLIN))  # its hello is there, most likely
        return True

    # ---- One connection

    def _event(self, connection: Connection, *, mask: int) -> None:
        match connection.phase:
            case Phase.HANDSHAKE:
                self._shake_hands(connection)
            case Phase.ANSWERING:
                if mask & (select.EPOLLHUP | select.EPOLLERR):
                    self._holding.close(connection)  # nobody is there to be answered
                return
            case Phase.SENDING:
                if connection.flush():
                    self._sent(connection)
            case Phase.LINGERING:
                if connection.drop_rest():
                    self._holding.close(connection)
                return
            case _:
                self._read(connection)
        self._holding.poll(connection)

    def _shake_hands(self, connection: Connection) -> None:
        try:
            done = connection.shake_hands()
        except ssl.SSLError:
            self._part(connection)  # its alert shall arrive
            return
        if done:
            self._holding.enter(connection, Phase.FRESH, self._turn)
            self._read(connection)

    def _read(self, connection: Connection) -> None:
        """Read on until a request is whole or nothing is there; other connections want their turn as well."""
        if connection.received and self._use(connection):
            return
        for _ in range(_RECORDS_PER_TURN):
            if not connection.receive():
                return
            if (largest := self._holding.grown(connection)) is not None:
                self._turn_away(Shed.MEMORY)
                self._advance(largest, partial(self._send, data=exchange.busy(close=True), keep=False))
            if largest is connection or self._use(connection):
                return

    def _use(self, connection: Connection) -> bool:
        """Use what came; whether no more is to be read for the moment."""
        if connection.phase in {Phase.FRESH, Phase.IDLE}:
            self._holding.enter(connection, Phase.HEAD, self._turn)
        if connection.phase is Phase.HEAD and not self._read_head(connection):
            return True
        if connection.phase is Phase.BODY and connection.whole:
            self._answer(connection)
            return True
        return False

    def _read_head(self, connection: Connection) -> bool:
        """Whether the connection goes on being read."""
        try:
            if not connection.read_head(self.cfg):
                return True
        except exchange.Malformed:
            self._send(connection, exchange.MALFORMED, keep=False)
            return False
        assert connection.exchange is not None
        if connection.exchange.expects:
            connection.say_continue()
        self._holding.enter(connection, Phase.BODY, self._turn)
        return True

    def _answer(self, connection: Connection) -> None:
        assert connection.exchange is not None
        review = connection.exchange.method == "POST"
        body = connection.take_body()
        if review and (self._is_busy() or self._waiting >= _WAITING_JOBS):
            self._turn_away(Shed.BUSY)
            self._send(connection, exchange.busy(close=not self.alive), keep=self.alive)
        elif review and len(body) <= _SMALL:
            self._holding.enter(connection, Phase.ANSWERING, self._turn)
            data, keep = self._answered(connection, body)
            self._send(connection, data, keep=keep)
        else:
            self._holding.enter(connection, Phase.ANSWERING, self._turn)
            self._holding.poll(connection)
            self._waiting += 1
            submit = self._aside.submit if review else self._threads.submit
            submit(partial(self._answer_in_thread, connection, body, self._turn, review=review))

    def _is_busy(self) -> bool:
        self._reviews += 1
        return self._reviews > _ALWAYS_PER_TURN and time.monotonic() - self._turn > _BUSY_S

    def _answered(self, connection: Connection, body: bytes) -> tuple[bytes, bool]:
        assert connection.exchange is not None
        last = not self.alive or bool(self.service.draining)
        try:
            return connection.exchange.answer(self.wsgi, body, self._address, last=last)
        except Exception:  # noqa: BLE001 - it is answered, and the worker goes on
            logs.LOGGER.exception("a request failed")
            return exchange.FAULT, False

    def _answer_in_thread(self, connection: Connection, body: bytes, since: float, *, review: bool) -> None:
        if review and time.monotonic() - since > _JOB_WAITS_S:
            self.service.metrics.shed(Shed.BUSY)
            data, keep = exchange.busy(close=True), False
        else:
            data, keep = self._answered(connection, body)
        self._answers.append((connection, data, keep))
        with suppress(BlockingIOError):  # full: the loop will wake up
            os.write(self.PIPE[1], b".")

    def _send(self, connection: Connection, data: bytes, *, keep: bool) -> None:
        connection.exchange = None
        connection.keep = keep
        if connection.send(data):
            self._sent(connection)
        else:
            self._holding.enter(connection, Phase.SENDING, time.monotonic())
        self._holding.poll(connection)

    def _sent(self, connection: Connection) -> None:
        if not connection.keep:
            self._part(connection)
            return
        self._holding.enter(connection, Phase.IDLE, self._turn)
        if connection.received:
            self._again.append(connection)

    def _part(self, connection: Connection) -> None:
        connection.say_goodbye()
        self._holding.enter(connection, Phase.LINGERING, self._turn)

    def _turn_away(self, why: Shed) -> None:
        self.service.metrics.shed(why)
        self._turned_away += 1

    def _tell(self, now: float) -> None:
        self.service.metrics.connections(len(self._holding))
        if self._turned_away and now - self._told > _SAY_BUSY_S:
            logs.LOGGER.warning("too much to do", extra={"fields": {"turnedAway": self._turned_away}})
            self._told, self._turned_away = now, 0
