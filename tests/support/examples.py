"""How many examples a property test looks at."""

from __future__ import annotations

from hypothesis import settings

_USUAL = settings.get_profile("vnpu").max_examples


def examples(number: int) -> settings:
    """So many examples of a test that needs more, or fewer, than the usual number; in a long run as many times more."""
    return settings(max_examples=number * settings().max_examples // _USUAL)
