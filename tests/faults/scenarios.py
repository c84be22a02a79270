"""All scenarios, in the order of the rows of the table of faults; and those of each wire."""

from __future__ import annotations

from tests.faults.own_faults import OWN_FAULTS
from tests.faults.reply_faults import REPLY_FAULTS
from tests.faults.scenario import Scenario
from tests.faults.service_faults import SERVICE_FAULTS
from tests.faults.speech import WIRES
from tests.faults.stream_faults import STREAM_FAULTS
from tests.faults.wire_faults import WIRE_FAULTS

SCENARIOS: list[Scenario] = [*SERVICE_FAULTS, *STREAM_FAULTS, *REPLY_FAULTS, *WIRE_FAULTS]

ON_WIRE: dict[str, list[Scenario]] = {
    wire: [*(each.of(wire) for each in SCENARIOS if wire not in each.not_on), *OWN_FAULTS[wire]] for wire in WIRES
}
"""What is played on each wire, as it is there."""
