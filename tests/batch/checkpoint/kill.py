"""A map that is killed at random instants and started again until it is done; a server counts.

    python -m tests.batch.checkpoint.kill --rows 100000 --kills 500

prints what was paid: how often each row, and how many rows twice per kill.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from SimpleLLMFunc import OpenAICompatible, llm_function
from tests.batch.ray.ray_app import Word, answer_to
from tests.support.server import LoopbackServer, text_answer

ROOT = Path(__file__).resolve().parents[3]


def rows(count: int) -> list[str]:
    return [f"row number {number}" for number in range(count)]


async def run_map(address: str, count: int, checkpoint: str, concurrency: int, out: str) -> None:
    @llm_function(llm_interface=OpenAICompatible("m", base_url=address))
    async def read(text: str) -> Word:
        """Read the text."""

    report = await read.map(rows(count), checkpoint=checkpoint, concurrency=concurrency, progress=False)
    with Path(out).open("w") as file:
        for row in report.rows:
            file.write(json.dumps([row.index, row.row, row.value.model_dump()]) + "\n")


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        kills: how often the process was really killed.
        paid: how many calls reached the server.
        paid_again: calls beyond the first, over all rows.
        most_again: the most of them between two kills.
        finished_again: rows that were in the checkpoint and were paid once more.
        wrong: rows whose result is not what it must be.
    """

    rows: int
    kills: int
    paid: int
    paid_again: int
    most_again: int
    finished_again: int
    wrong: int
    seconds: float

    def is_as_promised(self, concurrency: int) -> bool:
        return not self.wrong and not self.finished_again and self.most_again <= concurrency


async def killed_until_done(
    count: int, kills: int, concurrency: int, latency: float, seed: int, folder: Path
) -> Outcome:
    chance, began, paid = random.Random(seed), time.monotonic(), Counter[str]()

    async def reply(request):
        text = request.body["messages"][-1]["content"].split("text: ", 1)[1].strip()
        paid[text] += 1
        await asyncio.sleep(latency)
        return text_answer(answer_to(text))(request)

    checkpoint, out = folder / "run.sqlite", folder / "out.jsonl"
    finished: dict[str, int] = {}
    done_kills = most_again = last_again = last_id = finished_again = 0
    async with LoopbackServer(reply) as server:
        arguments = ("map", server.base_url, str(count), str(checkpoint), str(concurrency), str(out))
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.batch.checkpoint.kill", *arguments, cwd=ROOT
            )
            ended = asyncio.create_task(process.wait())
            if done_kills < kills:
                await an_instant(chance, paid, ended, count / kills / 4)  # a busy machine sees it late
            else:
                await ended
            was_killed = not ended.done()
            if was_killed:
                process.kill()
                await ended
                done_kills += 1
            elif process.returncode:
                raise RuntimeError(f"the map ended with {process.returncode}")
            finished_again += sum(paid[text] > before for text, before in finished.items())
            last_id = note_finished(checkpoint, folder, finished, paid, last_id)
            again = paid.total() - len(paid)
            most_again, last_again = max(most_again, again - last_again), again
            if not was_killed:
                break
    found = [json.loads(line) for line in out.read_text().splitlines()]
    expected = [[place, text, json.loads(answer_to(text))] for place, text in enumerate(rows(count))]
    wrong = sum(a != b for a, b in zip(found, expected, strict=False)) + abs(len(found) - len(expected))
    seconds = time.monotonic() - began
    return Outcome(count, done_kills, paid.total(), last_again, most_again, finished_again, wrong, seconds)


async def an_instant(chance, paid, ended, rows_each) -> None:
    """Return at a random instant: while the process starts, or when some further rows have been paid."""
    if chance.random() < 0.2:
        await asyncio.wait([ended], timeout=chance.uniform(0, 1.0))
        return
    wanted = paid.total() + chance.uniform(0, 2 * rows_each)
    while not ended.done() and paid.total() < wanted:
        await asyncio.sleep(0.002)
    await asyncio.wait([ended], timeout=chance.uniform(0, 0.02))


def note_finished(checkpoint: Path, folder: Path, finished: dict[str, int], paid, last_id: int) -> int:
    """Note the rows that the checkpoint holds now, and how often they have been paid.

    In a copy: looking into the file itself would tidy up after the killed process, and the next one is to do that.
    """
    if not checkpoint.exists() or not checkpoint.stat().st_size:
        return last_id
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for suffix in ("", "-wal", "-journal"):
            part = checkpoint.with_name(checkpoint.name + suffix)
            if part.exists():
                shutil.copy(part, Path(place) / part.name)
        connection = sqlite3.connect(Path(place) / checkpoint.name)
        try:
            found = connection.execute("SELECT id, given FROM rows WHERE id > ? ORDER BY id", (last_id,)).fetchall()
        except sqlite3.OperationalError as error:
            assert "no such table" in str(error), error
            found = []
        finally:
            connection.close()
    for number, given in found:
        text = json.loads(given)[1]
        finished[text] = paid[text]
        last_id = number
    return last_id


def main() -> None:
    if sys.argv[1:2] == ["map"]:
        address, count, checkpoint, concurrency, out = sys.argv[2:]
        asyncio.run(run_map(address, int(count), checkpoint, int(concurrency), out))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name, default in (("rows", 1_000), ("kills", 25), ("concurrency", 50)):
        parser.add_argument(f"--{name}", type=int, default=default)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = asyncio.run(killed_until_done(told.rows, told.kills, told.concurrency, 0.02, 0, Path(folder)))
    print(outcome)
    if not outcome.is_as_promised(told.concurrency):
        raise SystemExit("not as promised")


if __name__ == "__main__":
    main()
