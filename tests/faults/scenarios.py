"""All scenarios, in the order of the rows of the table of faults."""

from __future__ import annotations

from tests.faults.reply_faults import REPLY_FAULTS
from tests.faults.scenario import Scenario
from tests.faults.service_faults import SERVICE_FAULTS
from tests.faults.stream_faults import STREAM_FAULTS
from tests.faults.wire_faults import WIRE_FAULTS

__all__ = ["SCENARIOS"]

SCENARIOS: list[Scenario] = [*SERVICE_FAULTS, *STREAM_FAULTS, *REPLY_FAULTS, *WIRE_FAULTS]
