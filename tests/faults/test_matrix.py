"""Every scenario in every view: exact, or the one error that must come; and the matrix can tell when it does not."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import replace

import pytest

from SimpleLLMFunc import OpenAICompatible, RateLimited
from tests.faults import matrix, server
from tests.faults.matrix import ON_WIRE, SCENARIOS
from tests.faults.replies import good, says, sends, status
from tests.faults.runner import play, warm_up
from tests.faults.scenario import Scenario
from tests.faults.speech import WIRES

SDK = [scenario for scenario in SCENARIOS if scenario.through_client is not None]
"""What a client of the openai package hides; the others are played through it by ``make faults``."""


async def problems_of(scenario, *, client=False, wire="chat"):
    await warm_up()
    seen = await play(scenario, client=client, wire=wire)
    return [f"{one.cell}: {problem}" for one in seen for problem in one.problems]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_a_scenario_ends_as_it_must(scenario):
    assert await problems_of(scenario) == []


@pytest.mark.parametrize(
    ("wire", "scenario"),
    [(wire, scenario) for wire in WIRES[1:] for scenario in ON_WIRE[wire]],
    ids=lambda value: getattr(value, "name", value),
)
async def test_a_scenario_ends_as_it_must_on_the_other_wires(wire, scenario):
    assert await problems_of(scenario, wire=wire) == []


@pytest.mark.parametrize("scenario", SDK, ids=lambda scenario: scenario.name)
async def test_what_a_client_of_the_openai_package_hides(scenario):
    assert await problems_of(scenario, client=True) == []


def test_every_row_has_a_scenario():
    rows = {scenario.row for scenario in SCENARIOS}
    # 33 to 36 are no faults of a server: cancellation, abandoned streams, signals, loops and forks. 37 and 38 are the map's.
    assert rows == {str(row) for row in range(1, 41)} - {"33", "34", "35", "36", "37", "38"} | {"also"}
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 60
    assert all(re.fullmatch(r"[a-z0-9_]+", scenario.name) for scenarios in ON_WIRE.values() for scenario in scenarios)
    for wire, scenarios in ON_WIRE.items():
        assert len({scenario.name for scenario in scenarios}) == len(scenarios), wire
        assert {scenario.row for scenario in scenarios} >= rows - {"27", "28"}, (
            "those two are quirks of chat completions"
        )


# --- the matrix sees what is wrong -----------------------------------------------------------------------

RIGHT = Scenario("right", "0", "nothing", [good])
SCENE = {
    "a wrong value": (replace(RIGHT, value="other", text="other"), "the result is"),
    "another error": (Scenario("x", "0", "", [status(404)]).then("RateLimited"), "BadRequest instead of RateLimited"),
    "an error instead of a value": (Scenario("x", "0", "", [status(404)]), "BadRequest instead of exact"),
    "a value instead of an error": (RIGHT.then("BadReply"), "exact instead of BadReply"),
    "another number of requests": (RIGHT.then(requests=2), "1 requests instead of 2"),
    "too fast": (RIGHT.then(least=3.0), "not 3.0 to"),
    "too slow": (Scenario("x", "0", "", [sends(end="hold")]).then("DeadlineExceeded", deadline=0.3, most=0.1), "not 0.0 to"),
    "a partial text": (Scenario("x", "0", "", [sends(end="close")]).then("ConnectionFailed", requests=3, partial=1), "partial is"),
    "a fact": (RIGHT.then(check=lambda error, requests, notes: notes[0]), "check: IndexError"),
    "tokens": (RIGHT.then(usage=15), "usage"),
    "a secret": (
        replace(RIGHT, llm={"api_params": {"user": "x"}}, argument="x", returns=str, value="sk-CANARY-0123456789abcdef",
                text="sk-CANARY-0123456789abcdef", acts=[says("sk-CANARY-0123456789abcdef")]),
        "a secret in the output",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENE)
async def test_the_matrix_sees(name):
    scenario, said = SCENE[name]
    found = await problems_of(scenario)
    assert len(found) >= len(scenario.kinds) * 2
    assert any(said in problem for problem in found), found


async def test_the_matrix_sees_a_task_a_socket_and_a_fault_of_its_own():
    async def leaks(exchange):
        kept.append(asyncio.create_task(asyncio.sleep(30)))
        kept.append((await asyncio.open_connection("127.0.0.1", exchange.server.port))[1])
        await good(exchange)

    async def fails(exchange):
        raise LookupError("the act itself")

    kept = []
    found = await problems_of(Scenario("leaks", "0", "", [leaks]).only("function", "whole"))
    assert any("a task is left" in problem for problem in found)
    assert any("sockets left" in problem for problem in found)
    for each in kept:
        each.cancel() if isinstance(each, asyncio.Task) else each.close()
    found = await problems_of(Scenario("fails", "0", "", [fails]).only("function", "whole"))
    assert any("the act itself" in problem for problem in found)


@pytest.mark.parametrize("wire", WIRES)
def test_the_reference_holds_every_scenario(wire):
    page = matrix.PAGE.read_text("utf-8")
    section = page.partition(f"<!-- {wire} -->")[2].partition(f"<!-- end of {wire} -->")[0]
    names = set(re.findall(r"^\| \S+ \| `(\w+)`", section, re.MULTILINE))
    assert {scenario.name for scenario in ON_WIRE[wire]} <= names
    assert {scenario.name for scenario in SCENARIOS if wire in scenario.not_on} <= set(re.findall(r"`(\w+)`", section))


async def test_the_server_as_a_program(capsys):
    server.main(["--list"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [each.name for each in SCENARIOS]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.server", cwd=matrix.PAGE.parents[2], stdout=asyncio.subprocess.PIPE
    )
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        llm = OpenAICompatible("m", base_url=line.split()[-1].replace("NAME", "quota"), api_key="k")
        with pytest.raises(RateLimited, match="quota"):
            await llm.chat([{"role": "user", "content": "x"}])
    finally:
        process.terminate()
        await process.communicate()
