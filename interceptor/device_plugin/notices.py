"""What an administrator should know: said once when it begins, once when it changes and once when it is over."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGER: Final = logging.getLogger("device_plugin")


class Notices:
    """The standing problems of a node, by topic."""

    def __init__(self, publish: Callable[[str, str], None]) -> None:
        """Hand each new problem to ``publish`` as well: a topic in CamelCase and a sentence."""
        self._publish = publish
        self._standing: dict[str, str] = {}

    def tell(self, topic: str, problem: str) -> None:
        """Say what the matter is now; ``""`` for nothing."""
        before = self._standing.get(topic, "")
        if problem == before:
            return
        self._standing[topic] = problem
        if problem:
            LOGGER.warning("%s: %s", topic, problem)
            self._publish(topic, problem)
        else:
            LOGGER.info("%s: over", topic)
