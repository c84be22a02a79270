"""The page of what each wire can, written from what the tests saw: ``python -m tests.interface.wires.abilities --write``.

A cell is what came of the tests whose names it stands for. Whom they asked stands in the table: our strict loopback
services, spoken to by the official SDKs as well, or the real server of the local model. Real services were not asked.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "wires.md"
WIRES = {"chat": "chat completions", "responses": "Responses", "messages": "Messages", "gemini": "Gemini"}

REAL, STRICT, FAULTS = "tests/interface/local/test_wires.py", "tests/interface/wires/test_services.py", "tests/faults"
EVERY, TOOLS, SHOWN = (
    *("tests/llm_decorator/test_every_wire.py", "tests/llm_decorator/test_server_tools.py"),
    "tests/interface/test_shown_requests.py",
)
ATTEMPTS, KEPT = "tests/interface/attempts/test_every_wire.py", "tests/interface/test_kept_answers.py"
WHO = {
    REAL: "the real server of the local model (llama.cpp)",
    STRICT: "loopback services that refuse what the real ones refuse",
    FAULTS: "loopback servers that misbehave",
}
WHO |= dict.fromkeys((EVERY, TOOLS, SHOWN, ATTEMPTS, KEPT), WHO[STRICT])

ABILITIES: tuple[tuple[str, str, str], ...] = (
    ("text, and what it took", REAL, "test_text_and_its_usage"),
    ("stream", REAL, "test_a_stream_says_what_the_whole_reply_says"),
    ("typed answer, in the mode that holds there", REAL, "test_a_typed_value_in_the_mode_that_holds_there"),
    ("a cut answer is told", REAL, "test_a_cut_answer_is_a_cut_answer"),
    ("chat from a stored history", REAL, "test_a_chat_goes_on_from_a_stored_history"),
    ("too long is told, with the limit", REAL, "test_what_is_too_long_is_told_with_the_limit"),
    ("a wrong key is told", REAL, "test_a_wrong_key_is_told"),
    ("typed answer", STRICT, "test_a_typed_function_runs"),
    ("tools, thinking and a stored history go back unchanged", STRICT, "test_a_chat_with_tools_goes_on_from_a_stored_history"),
    ("what it refuses is told", STRICT, "test_what_the_service_refuses_is_told"),
    ("typed answers in each output mode", EVERY, "test_a_typed_answer_comes_in_every_mode"),
    ("growing values, items one by one", EVERY, "test_values_grow_and_items_come_one_by_one"),
    ("parallel tools, their errors, consent; as JSON actions too", EVERY, "test_parallel_tools_their_errors_and_consent"),
    ("images, PDF, text files, sound; or a `ConfigError`", EVERY, "test_what_is_seen_read_and_heard_where_the_service_takes_it"),
    ("choices, `map`", EVERY, "test_a_choice_and_a_map"),
    ("tools that the service runs by itself", TOOLS, "test_they_go_out_as_they_are_beside_the_users_own"),
    ("`preview`, and its command", SHOWN, "test_a_preview_is_the_request_that_goes_out_and_its_command_sends_it"),
    ("traces", SHOWN, "test_a_trace_shows_the_command_of_the_wire"),
    ("rows under a budget", ATTEMPTS, "test_three_hundred_rows_and_a_budget"),
    ("pools of keys", ATTEMPTS, "test_a_refused_key_of_a_pool_rests"),
    ("circuit", ATTEMPTS, "test_the_circuit_opens_where_a_service_stays_down"),
    ("cassettes", KEPT, "test_a_cassette_plays_tools_and_thinking_of_the_wire_without_a_key"),
    ("all faults that it can have", FAULTS, "test_a_scenario_ends_as_it_must"),
)  # fmt: skip
"""Each with where its tests stand and what they are called."""


class Seen:
    """What came of each test, by its place, name and wire; a plugin of pytest."""

    def __init__(self) -> None:
        self.outcomes: dict[tuple[str, str, str], list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            place, _, test = report.nodeid.partition("::")
            name, _, case = test.partition("[")
            wire = next((wire for wire in WIRES if re.search(rf"\b{wire}\b", case)), "chat")
            where = FAULTS if place.startswith(FAULTS) else place
            self.outcomes[where, name.removesuffix("_on_the_other_wires"), wire].append(report.outcome)


def page(seen: Seen) -> str:
    """The page."""
    rows = []
    for what, where, name in ABILITIES:
        cells = [_cell(seen.outcomes.get((where, name, wire))) for wire in WIRES]
        rows.append(f"| {what} | {WHO[where]} | {' | '.join(cells)} |")
    head = f"| ability | asked of | {' | '.join(WIRES.values())} |"
    lines = "\n".join([head, "|" + "---|" * (len(WIRES) + 2), *rows])
    return f"""# Wires

What the tests saw of each wire when this page was written; `python -m tests.interface.wires.abilities --write` runs them and writes
it again. **Real services were not asked.** A number is how many tests passed; "–" says that no such test exists, because that
server does not speak the wire or the services of the tests do not. Every fault of the last row is listed in [faults](faults.md).

{lines}

On Responses and Messages the server of the local model passes over a schema in silence; so a type is described in the prompt
there, unless `profile=` says that a server takes schemas. `Preview.output_mode_reason` tells which mode holds, and why.
"""


def _cell(outcomes: Sequence[str] | None) -> str:
    if not outcomes:
        return "–"
    bad = [outcome for outcome in outcomes if outcome != "passed"]
    return f"**{len(bad)} of {len(outcomes)} {bad[0]}**" if bad else f"{len(outcomes)}"


def main(arguments: Sequence[str]) -> int:
    """Run the tests, and print the page or write it."""
    seen = Seen()
    tests = [f"{where}::{name}" for _, where, name in ABILITIES if where != FAULTS]
    tests += [f"{FAULTS}/test_matrix.py::test_a_scenario_ends_as_it_must{more}" for more in ("", "_on_the_other_wires")]
    # Whether a slow machine holds up the loop is another test.
    code = pytest.main(
        ["-q", "-p", "no:cacheprovider", "-p", "no:loop-guard", f"--rootdir={ROOT}", *tests], plugins=[seen]
    )
    if "--write" in arguments:
        PAGE.write_text(page(seen), "utf-8")
    else:
        sys.stdout.write(page(seen))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
