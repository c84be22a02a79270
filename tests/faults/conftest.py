"""Profiles of hypothesis: few examples with every change, many with ``--hypothesis-profile=faults-long``."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# An example talks to a server, so its time says nothing about its size.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("faults-long", max_examples=5_000, print_blob=True, **_COMMON)


def pytest_collection_modifyitems(items):
    # Many servers and processes: they have minutes of their own, in `make test-all`.
    for item in items:
        if "faults" in item.path.parts:
            item.add_marker("heavy")
