"""How hard the properties are tried: `pytest tests/properties --hypothesis-profile thorough` takes minutes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "normal", max_examples=300, stateful_step_count=30, deadline=None, derandomize=True, suppress_health_check=SLOW
)
settings.register_profile(
    "thorough", max_examples=2000, stateful_step_count=50, deadline=None, suppress_health_check=SLOW
)
settings.load_profile("normal")
