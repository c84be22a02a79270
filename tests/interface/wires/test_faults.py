"""A few scenarios of the fault matrix on each wire; all of them are heavy (tests/faults)."""

import pytest

from tests.faults.matrix import ON_WIRE
from tests.faults.runner import play, warm_up

SAME = ["error_in_200_key", "cut_text", "stream_cut_politely", "stream_error_early", "one_bad_of_three", "usage_once"]
OWN = {
    "messages": ["started_again", "done_alone", "unknown_block", "call_cut"],
    "responses": ["error_nested", "done_alone", "calls_by_id", "completed_at_limit"],
    "gemini": ["prompt_blocked_stream", "bare_error", "malformed_within", "empty_parts"],
}


@pytest.mark.parametrize(("wire", "name"), [(wire, name) for wire in OWN for name in (*SAME, *OWN[wire])])
async def test_a_scenario_ends_as_it_must(wire, name):
    await warm_up()
    scenario = next(each for each in ON_WIRE[wire] if each.name == name)
    assert [problem for one in await play(scenario, wire=wire) for problem in one.problems] == []
