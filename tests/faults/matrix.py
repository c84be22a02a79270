"""The matrix: {llm_function, llm_chat} x {async def, def} x every scenario, against what must happen.

``python -m tests.faults.matrix`` prints it, ``--wire`` on another wire than chat completions; ``--write`` plays all wires
and puts their tables into docs/reference/faults.md; ``--client`` asks through an `openai.AsyncOpenAI` instead, of whatever
version is installed. Ends with 1 if anything is not as it must be.
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

from tests.faults.own_faults import OWN_FAULTS
from tests.faults.replies import good
from tests.faults.reply_faults import REPLY_FAULTS
from tests.faults.runner import Seen, play, warm_up
from tests.faults.scenario import Scenario
from tests.faults.service_faults import SERVICE_FAULTS
from tests.faults.speech import WIRES
from tests.faults.stream_faults import STREAM_FAULTS
from tests.faults.wire_faults import WIRE_FAULTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "faults.md"

SCENARIOS: list[Scenario] = [*SERVICE_FAULTS, *STREAM_FAULTS, *REPLY_FAULTS, *WIRE_FAULTS]
"""All scenarios, in the order of the rows of the table of faults."""

ON_WIRE: dict[str, list[Scenario]] = {
    wire: [*(each.of(wire) for each in SCENARIOS if wire not in each.not_on), *OWN_FAULTS[wire]] for wire in WIRES
}
"""What is played on each wire, as it is there."""

_VIEWS = {
    ("function", True): "`async def` function", ("function", False): "`def` function",
    ("chat", True): "`async def` chat", ("chat", False): "`def` chat",
}  # fmt: skip


async def run(
    scenarios: Sequence[Scenario], *, client: bool = False, wire: str = "chat", is_shown: bool = False
) -> list[Seen]:
    """Play the scenarios one after the other."""
    await warm_up()
    if client:
        # What the package imports at its first request, on each loop, is no part of the first scenario.
        await play(Scenario("first", "", "", [good]), client=True)
    seen: list[Seen] = []
    for scenario in scenarios:
        found = await play(scenario, client=client, wire=wire)
        if is_shown:
            for line in _rows(found):
                print(line, flush=True)
            for one in found:
                for problem in one.problems:
                    print(f"    {one.cell}: {problem}", flush=True)
        seen += found
    return seen


def _views(seen: Sequence[Seen]) -> list[tuple[str, bool]]:
    """The views that were played."""
    played = {(one.cell.kind, one.cell.is_async) for one in seen}
    return [view for view in _VIEWS if view in played]


def _rows(seen: Sequence[Seen], shown_views: Sequence[tuple[str, bool]] = tuple(_VIEWS)) -> Iterator[str]:
    """One line of a table for each scenario and form of reply."""
    for (name, form), group in groupby(seen, key=lambda one: (one.cell.scenario.name, one.cell.form)):
        found = list(group)
        cell = found[0].cell
        expected = cell.scenario.expects(form, client=cell.client)
        views = {(one.cell.kind, one.cell.is_async): one for one in found}
        shown = [_view(views.get(view)) for view in shown_views]  # type: ignore[call-overload]
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
    views = _views(seen)
    names = " | ".join(_VIEWS[view] for view in views)
    head = f"| # | scenario | reply | what happens | must end in, requests | {names} |"
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *_rows(seen, views)])


def left_out(wire: str) -> str:
    """What is not played on a wire, and why; empty where all is."""
    reasons: dict[str, list[str]] = {}
    for scenario in SCENARIOS:
        if wire in scenario.not_on:
            reasons.setdefault(scenario.not_on[wire], []).append(f"`{scenario.name}`")
    said = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
    return f"Not played here: {said}." if said else ""


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
    parser.add_argument("--wire", choices=WIRES, help="chat by default; with --write all of them")
    parser.add_argument("names", nargs="*", metavar="scenario", help="only these; all by default")
    options = parser.parse_args(arguments)
    is_all = options.write and not options.client and not options.wire
    wires = WIRES if is_all else (options.wire or "chat",)
    unknown = set(options.names) - {scenario.name for wire in wires for scenario in ON_WIRE[wire]}
    if unknown or (options.write and options.names):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}" if unknown else "--write wants all of them")
    is_good = True
    for wire in wires:
        started = time.monotonic()
        scenarios = [each for each in ON_WIRE[wire] if not options.names or each.name in options.names]
        seen = asyncio.run(run(scenarios, client=options.client, wire=wire, is_shown=True))
        said = summary(seen)
        print(f"{wire}: {said} {time.monotonic() - started:.0f} s")
        is_good = is_good and not any(one.problems for one in seen)
        if options.write:
            package = "openai" if options.client else "aiohttp"
            section = f"openai {version('openai').partition('.')[0]}" if options.client else wire
            with_what = f"Python {platform.python_version()}, {package} {version(package)}, {platform.system()}"
            text = "\n\n".join(filter(None, [f"{said} ({with_what})", left_out(wire), table(seen)]))
            PAGE.write_text(put(PAGE.read_text("utf-8"), section, text), "utf-8")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
