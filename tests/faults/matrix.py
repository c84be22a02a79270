"""The matrix: {llm_function, llm_chat} x {async def, def} x every scenario, against what must happen.

``python -m tests.faults.matrix`` prints it; ``--write`` also puts it into docs/reference/faults.md; ``--client`` asks
through an `openai.AsyncOpenAI` instead, of whatever version is installed. Ends with 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import re
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from tests.faults.replies import good
from tests.faults.runner import Seen, play, warm_up
from tests.faults.scenario import Scenario
from tests.faults.scenarios import SCENARIOS

__all__ = ["PAGE", "main", "put", "run", "summary", "table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "faults.md"

_VIEWS = ("`async def` function", "`def` function", "`async def` chat", "`def` chat")


async def run(scenarios: Sequence[Scenario], *, client: bool = False, is_shown: bool = False) -> list[Seen]:
    """Play the scenarios one after the other."""
    await warm_up()
    if client:
        # What the package imports at its first request, on each loop, is no part of the first scenario.
        await play(Scenario("first", "", "", [good]), client=True)
    seen: list[Seen] = []
    for scenario in scenarios:
        found = await play(scenario, client=client)
        if is_shown:
            for line in _rows(found):
                print(line, flush=True)
            for one in found:
                for problem in one.problems:
                    print(f"    {one.cell}: {problem}", flush=True)
        seen += found
    return seen


def _rows(seen: Sequence[Seen]) -> Iterator[str]:
    """One line of a table for each scenario and form of reply."""
    for (name, form), group in groupby(seen, key=lambda one: (one.cell.scenario.name, one.cell.form)):
        found = list(group)
        cell = found[0].cell
        expected = cell.scenario.expects(form, client=cell.client)
        views = {(one.cell.kind, one.cell.is_async): one for one in found}
        shown = [
            _view(views.get((kind, is_async)))  # type: ignore[arg-type]
            for kind in ("function", "chat")
            for is_async in (True, False)
        ]
        why = f" *Hidden: {expected.why}.*" if expected.why else ""
        fault = cell.scenario.fault.replace("<", "&lt;").replace("|", "\\|") + why
        yield (
            f"| {cell.scenario.row} | `{name}` | {form} | {fault} | {expected.outcome}, {expected.requests} "
            f"| {' | '.join(shown)} |"
        )


def _view(seen: Seen | None) -> str:
    if seen is None:
        return ""
    said = f"{seen.outcome}, {seen.requests}, {seen.seconds:.2f} s"
    return f"**{said}**" if seen.problems else said


def table(seen: Sequence[Seen]) -> str:
    """The whole table, as Markdown."""
    head = f"| # | scenario | reply | what happens | must end in, requests | {' | '.join(_VIEWS)} |"
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *_rows(seen)])


def summary(seen: Sequence[Seen]) -> str:
    """The figures that matter, in a line."""

    def count(word: str) -> int:
        return sum(any(word in problem for problem in one.problems) for one in seen)

    wrong = [one for one in seen if one.outcome == "WRONG"]
    hidden = sum(not one.problems for one in wrong)
    more = sum(one.requests > one.cell.scenario.expects(one.cell.form, client=one.cell.client).requests for one in seen)
    return (
        f"{len({one.cell.scenario.name for one in seen})} scenarios, {len(seen)} calls: "
        f"{len(wrong)} silently wrong{f' ({hidden} of them hidden by the client)' if hidden else ''}, "
        f"{sum(one.outcome.startswith('FOREIGN') for one in seen)} foreign exceptions, "
        f"{sum(one.outcome == 'HANG' for one in seen)} hangs, {count('left')} leaked tasks or sockets, "
        f"{more} with more requests than expected; {sum(bool(one.problems) for one in seen)} not as they must be."
    )


def put(page: str, section: str, text: str) -> str:
    """Return the page with the text between the two marks of a section.

    Raises:
        ValueError: there is no such section.
    """
    marks = re.compile(f"(<!-- {re.escape(section)} -->\n).*?(<!-- end of {re.escape(section)} -->)", re.DOTALL)
    if not marks.search(page):
        raise ValueError(f"the page has no section {section!r}")
    return marks.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, and write if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.matrix", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the reference")
    parser.add_argument("--client", action="store_true", help="through a client of the openai package")
    parser.add_argument("names", nargs="*", metavar="scenario", help="only these; all by default")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {scenario.name for scenario in SCENARIOS}
    if unknown or (options.write and options.names):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}" if unknown else "--write wants all of them")
    started = time.monotonic()
    scenarios = [each for each in SCENARIOS if not options.names or each.name in options.names]
    seen = asyncio.run(run(scenarios, client=options.client, is_shown=True))
    said = summary(seen)
    print(f"{said} {time.monotonic() - started:.0f} s")
    if options.write:
        wire = "openai" if options.client else "aiohttp"
        section = f"openai {version('openai').partition('.')[0]}" if options.client else "own"
        with_what = f"Python {platform.python_version()}, {wire} {version(wire)}, {platform.system()}"
        text = f"{said} ({with_what})\n\n{table(seen)}"
        PAGE.write_text(put(PAGE.read_text("utf-8"), section, text), "utf-8")
    return 1 if any(one.problems for one in seen) else 0


if __name__ == "__main__":
    sys.exit(main())
