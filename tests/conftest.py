"""What every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Shared machines stall, and hypothesis's first text of a fresh clone takes seconds: time is no ground for failing here.
settings.register_profile("gnothi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gnothi")
