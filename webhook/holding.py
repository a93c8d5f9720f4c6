"""The connections that a worker holds: how long each may take for what it is about, and which one goes at a bound."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from webhook.connection import Phase
from webhook.metrics import Shed

if TYPE_CHECKING:
    import select
    from collections.abc import Iterator

    from webhook.connection import Connection
    from webhook.metrics import Metrics

MOST_CONNECTIONS: Final = 1000
MOST_BYTES: Final = 32 * 2**20
"""Of requests that are not answered yet: four of the largest."""

_SECONDS: Final = {
    Phase.HANDSHAKE: 5.0,
    # An API server closes idle connections after 90 s. Closing first would race with its next request.
    Phase.FRESH: 120.0,
    Phase.IDLE: 120.0,
    Phase.HEAD: 5.0,
    Phase.BODY: 10.0,
    Phase.ANSWERING: 60.0,
    Phase.SENDING: 10.0,
    Phase.LINGERING: 5.0,
}
"""How long a connection may take for all of it. A byte now and then wins no time."""

_GO_FIRST: Final = (Phase.LINGERING, Phase.HANDSHAKE, Phase.FRESH, Phase.HEAD, Phase.BODY)
_UNDISTURBED_S: Final = 1.0
_IDLE_S: Final = 10.0
"""How long a connection is safe from making room for another one; kept-alive ones have earned more."""


class Holding:
    """All connections of one worker, in the order in which they entered their phase."""

    def __init__(self, poll: select.epoll, metrics: Metrics) -> None:
        """Hold none yet."""
        self._poll = poll
        self._metrics = metrics
        self._by_descriptor: dict[int, Connection] = {}
        self._polled: dict[int, int] = {}
        self._phases: dict[Phase, dict[Connection, None]] = {phase: {} for phase in Phase}
        self._sizes: dict[Connection, int] = {}
        self._bytes = 0
        self._parting: float | None = None

    def __len__(self) -> int:
        return len(self._by_descriptor)

    def find(self, descriptor: int) -> Connection | None:
        """The connection with this descriptor."""
        return self._by_descriptor.get(descriptor)

    def add(self, connection: Connection, now: float) -> None:
        """Hold a new connection."""
        self._by_descriptor[connection.fileno()] = connection
        self.enter(connection, connection.phase, now)
        self.poll(connection)

    def enter(self, connection: Connection, phase: Phase, now: float) -> None:
        """Let a connection begin something else."""
        self._phases[connection.phase].pop(connection, None)
        self._phases[phase][connection] = None
        connection.phase = phase
        connection.since = now
        connection.deadline = now + _SECONDS[phase]
        if self._parting is not None and phase in {Phase.HANDSHAKE, Phase.FRESH, Phase.IDLE}:
            connection.deadline = min(connection.deadline, self._parting)
        if phase not in {Phase.BODY, Phase.ANSWERING} and connection in self._sizes:
            self._bytes -= self._sizes.pop(connection)

    def poll(self, connection: Connection) -> None:
        """Be told when the connection can go on, once it is known what it waits for."""
        descriptor = connection.fileno()
        if descriptor not in self._by_descriptor:
            return
        wants = 0 if connection.phase is Phase.ANSWERING else connection.wants
        polled = self._polled.get(descriptor)
        if polled is None:
            self._poll.register(descriptor, wants)
        elif polled != wants:
            self._poll.modify(descriptor, wants)
        self._polled[descriptor] = wants

    def grown(self, connection: Connection) -> Connection | None:
        """Count the bytes of a body that is coming; at the bound, the connection that should go: the one with most."""
        if connection.phase is not Phase.BODY:
            return None
        size = len(connection.received)
        self._bytes += size - self._sizes.get(connection, 0)
        self._sizes[connection] = size
        if self._bytes <= MOST_BYTES:
            return None
        return max(self._phases[Phase.BODY], key=lambda each: self._sizes.get(each, 0))

    def has_room(self, now: float) -> bool:
        """Whether another connection may be held, after one has made room where there was none."""
        return len(self) < MOST_CONNECTIONS or self.make_room(now)

    def make_room(self, now: float) -> bool:
        """Close the connection that deserves its place least; whether there was one."""
        for phase, safe in (*((phase, _UNDISTURBED_S) for phase in _GO_FIRST), (Phase.IDLE, _IDLE_S)):
            oldest = next(iter(self._phases[phase]), None)
            if oldest is not None and now - oldest.since > safe:
                self._metrics.shed(Shed.CONNECTIONS)
                self.close(oldest)
                return True
        return False

    def overdue(self, now: float) -> Iterator[Connection]:
        """Connections that took too long; whoever asks closes each before the next."""
        for connections in self._phases.values():
            while (oldest := next(iter(connections), None)) is not None and oldest.deadline <= now:
                yield oldest

    def part(self, deadline: float) -> None:
        """The server ends: who has nothing under way by then is closed."""
        self._parting = deadline
        for phase in (Phase.HANDSHAKE, Phase.FRESH, Phase.IDLE):
            for connection in self._phases[phase]:
                connection.deadline = min(connection.deadline, deadline)

    def close(self, connection: Connection) -> None:
        """Give a connection up."""
        descriptor = connection.fileno()
        if self._by_descriptor.pop(descriptor, None) is None:
            return
        if self._polled.pop(descriptor, None) is not None:
            with suppress(OSError):
                self._poll.unregister(descriptor)
        self._phases[connection.phase].pop(connection, None)
        self._bytes -= self._sizes.pop(connection, 0)
        connection.phase = Phase.LINGERING  # an answer that a thread still makes finds nobody
        connection.close()
