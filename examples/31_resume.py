# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Stop and go on, in all the ways a week of work brings: a used-up budget, a service that was down, new rows, a new prompt.

Every run is the same call with the same checkpoint. What it pays is what it says.

Model: answers written down (`ScriptedLLM`). For a real one change the lines `@llm_function(llm_interface=…`.
"""

import tempfile
from pathlib import Path

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.batch import Checkpoint, MapReport
from SimpleLLMFunc.errors import ServerUnavailable
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest

TICKETS = [f"Ticket {number}: the {('printer', 'screen', 'door')[number % 3]} is broken" for number in range(12)]

service = {"is down": True}


def answer(request: ScriptedRequest) -> str:
    """Play the model; yours is `OpenAICompatible("gpt-5-mini")` or `LocalModel()`, from SimpleLLMFunc."""
    ticket = request.text.split("ticket: ", 1)[1].strip()
    if service["is down"] and "door" in ticket:
        raise ServerUnavailable("scripted", status=503)
    return "facilities" if "door" in ticket else "it"


@llm_function(llm_interface=ScriptedLLM(answer, repeat=True))
def team_for(ticket: str) -> str:
    """Name the team that should look at it: it or facilities."""
    raise NotImplementedError


@llm_function(llm_interface=ScriptedLLM(answer, repeat=True))
def team_for_now(ticket: str) -> str:
    """Name the team that should look at it: it, facilities or security."""
    raise NotImplementedError


def told(what: str, report: MapReport[str]) -> None:
    counts = report.counts
    why = f", stopped by {type(report.stopped).__name__}" if report.stopped else ""
    print(f"{what:32}{counts.asked:3} asked, {counts.restored:3} restored, {counts.failed:3} without a value{why}")


def main(checkpoint: Path) -> None:
    told(
        "a budget of five requests", team_for.map(TICKETS, checkpoint=checkpoint, budget={"requests": 5}, concurrency=1)
    )
    told("the same call", team_for.map(TICKETS, checkpoint=checkpoint))
    service["is down"] = False
    told("what failed can stay so …", team_for.map(TICKETS, checkpoint=checkpoint, retry_errors=False))
    told("… and is asked again otherwise", team_for.map(TICKETS, checkpoint=checkpoint))
    told("two rows more", team_for.map([*TICKETS, "Ticket 12: no light", "Ticket 13: no heat"], checkpoint=checkpoint))
    told("another prompt", team_for_now.map(TICKETS, checkpoint=checkpoint))
    for version in Checkpoint.status(checkpoint).versions:
        print(f"kept of {version.name}: {version.values} values")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder, "run.sqlite"))
