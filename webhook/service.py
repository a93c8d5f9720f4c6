"""What the processes of one server have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from webhook.board import Flag
    from webhook.metrics import Metrics
    from webhook.reload import Reloader


@dataclass(frozen=True, slots=True)
class Service:
    """Made by the master before it forks workers.

    Attributes:
        application: answers requests.
        reloader: the pair that is served, and what reviews are judged by.
        metrics: where everything is counted.
        draining: raised at SIGTERM: no longer ready, but still serving.
    """

    application: WSGIApplication
    reloader: Reloader
    metrics: Metrics
    draining: Flag
