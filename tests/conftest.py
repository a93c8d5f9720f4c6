"""Settings that hold for every test.

``HYPOTHESIS_PROFILE=long .venv/bin/pytest --timeout=0 tests/vnpu`` looks at twenty times as many examples.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The machine is shared: how long an example takes says nothing about the code.
settings.register_profile("vnpu", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile(
    "long", settings.get_profile("vnpu"), max_examples=20 * settings.get_profile("vnpu").max_examples
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "vnpu"))
