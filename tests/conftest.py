"""Settings that hold for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The machine is shared: how long an example takes says nothing about the code.
settings.register_profile("vnpu", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("vnpu")
