"""A map that is killed at random instants and started again until it is done; a server in another process counts.

    python -m tests.batch.checkpoint.kill --rows 100000 --kills 500

prints what was paid: how often each row, and how many rows twice per kill.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[3]


# --- the server: a reply for every question, and a count of them -------------------------------------------------


class CountingServer(asyncio.Protocol):
    """As much HTTP as one client needs: keep-alive, and bodies of known length."""

    paid: Counter[str] = Counter()
    latency = 0.01

    def __init__(self) -> None:
        self._buffer = bytearray()

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:end]).decode("latin-1")
            names = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
            size = int(names.get("content-length", 0))
            if len(self._buffer) < end + 4 + size:
                return
            body = bytes(self._buffer[end + 4 : end + 4 + size])
            del self._buffer[: end + 4 + size]
            self._answer(head.split()[1], body)

    def _answer(self, path, body):
        if path == "/total":
            self._send({"total": self.paid.total()})
        elif path == "/paid":
            self._send(self.paid)
        else:
            text = json.loads(body)["messages"][-1]["content"].split("text: ", 1)[1].strip()
            self.paid[text] += 1
            reply = {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": answer_to(text)}, "finish_reason": "stop"}
                ],
                "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
            }
            asyncio.get_running_loop().call_later(self.latency, self._send, reply)

    def _send(self, data):
        body = json.dumps(data).encode()
        if not self._transport.is_closing():
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            self._transport.write(head.encode() + body)


def answer_to(text: str) -> str:
    """What the server says to a text, and so what the row must be in the end."""
    number = int(text.rsplit(" ", 1)[1])
    return json.dumps({"number": number, "words": [f"w{number % 7}", text[::-1]]})


async def serve(latency: float) -> None:
    CountingServer.latency = latency
    server = await asyncio.get_running_loop().create_server(CountingServer, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the map ---------------------------------------------------------------------------------------------------


class Word(BaseModel):
    number: int
    words: list[str]


def rows(count: int) -> list[str]:
    return [f"row number {number}" for number in range(count)]


def run_map(port: int, count: int, checkpoint: str, concurrency: int, out: str) -> None:
    from SimpleLLMFunc import OpenAICompatible, llm_function

    llm = OpenAICompatible("m", base_url=f"http://127.0.0.1:{port}/v1")

    @llm_function(llm_interface=llm)
    async def read(text: str) -> Word:
        """Read the text."""

    async def main() -> None:
        report = await read.map(rows(count), checkpoint=checkpoint, concurrency=concurrency, progress=False)
        with Path(out).open("w") as file:
            for row in report.rows:
                file.write(json.dumps([row.index, row.row, row.value.model_dump()]) + "\n")

    asyncio.run(main())


# --- killing it --------------------------------------------------------------------------------------------------


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


def fetch(port: int, what: str):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/{what}", timeout=30) as reply:
        return json.load(reply)


def killed_until_done(count: int, kills: int, concurrency: int, latency: float, seed: int, folder: Path) -> Outcome:
    chance = random.Random(seed)
    began = time.monotonic()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.batch.checkpoint.kill", "serve", str(latency)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(server.stdout.readline())
        checkpoint, out = folder / "run.sqlite", folder / "out.jsonl"
        command = [sys.executable, "-m", "tests.batch.checkpoint.kill", "map", str(port), str(count), str(checkpoint)]
        command += [str(concurrency), str(out)]
        finished: dict[str, int] = {}
        done_kills = most_again = last_again = last_id = finished_again = 0
        while True:
            process = subprocess.Popen(command, cwd=ROOT)
            if done_kills < kills:
                wait_for_an_instant(chance, port, process, count / kills / 4)  # a busy machine sees it late
            else:
                process.wait()
            was_killed = process.poll() is None
            if was_killed:
                process.send_signal(signal.SIGKILL)
                process.wait()
                done_kills += 1
            elif process.returncode:
                raise RuntimeError(f"the map ended with {process.returncode}")
            paid = fetch(port, "paid")
            finished_again += sum(paid[text] > before for text, before in finished.items())
            last_id = note_finished(checkpoint, folder, finished, paid, last_id)
            again = sum(paid.values()) - len(paid)
            most_again, last_again = max(most_again, again - last_again), again
            if not was_killed:
                break
        found = [json.loads(line) for line in out.read_text().splitlines()]
        expected = [[place, text, json.loads(answer_to(text))] for place, text in enumerate(rows(count))]
        wrong = sum(a != b for a, b in zip(found, expected, strict=False)) + abs(len(found) - len(expected))
        return Outcome(
            count,
            done_kills,
            sum(paid.values()),
            last_again,
            most_again,
            finished_again,
            wrong,
            time.monotonic() - began,
        )
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def wait_for_an_instant(chance, port, process, rows_each) -> None:
    """Return at a random instant: while it starts, or when some further rows have been paid."""
    if chance.random() < 0.2:
        end_by(process, chance.uniform(0, 1.0))
        return
    wanted = fetch(port, "total")["total"] + chance.uniform(0, 2 * rows_each)
    while process.poll() is None and fetch(port, "total")["total"] < wanted:
        time.sleep(0.002)
    end_by(process, chance.uniform(0, 0.02))


def end_by(process, seconds) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


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
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(float(sys.argv[2])))
        return
    if sys.argv[1:2] == ["map"]:
        port, count, checkpoint, concurrency, out = sys.argv[2:]
        run_map(int(port), int(count), checkpoint, int(concurrency), out)
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--latency", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = killed_until_done(told.rows, told.kills, told.concurrency, told.latency, told.seed, Path(folder))
    print(outcome)
    if outcome.wrong or outcome.finished_again or outcome.most_again > told.concurrency:
        raise SystemExit("not as promised")


if __name__ == "__main__":
    main()
