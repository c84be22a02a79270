"""Checkpoints: nothing finished is paid again, nothing damaged is believed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretStr, computed_field
from typing_extensions import TypedDict

from SimpleLLMFunc import CheckpointError, OpenAICompatible, RateLimited, ResponseParseError, llm_function, use_llm
from SimpleLLMFunc.batch import Checkpoint, MapReport
from SimpleLLMFunc.batch.checkpoint.row_file import RowFile
from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock
from SimpleLLMFunc.errors import OutputTruncated, RunError, ServerUnavailable
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.server import LoopbackServer, text_answer

ROOT = Path(__file__).resolve().parents[3]


def counted(request) -> str:
    text = request.text.split("text: ", 1)[1].strip()
    return "no idea" if text.startswith("bad") else str(len(text))


def counting() -> ScriptedLLM:
    return ScriptedLLM(counted, repeat=True)


@llm_function(counting())
async def count(text: str) -> int:
    """Count the letters."""


TEXTS = ["a", "bb", "ccc", "dddd", "eeeee"]


@pytest.fixture
def path(tmp_path) -> Path:
    """Of a checkpoint."""
    return tmp_path / "run.sqlite"


async def filled(path: Path) -> None:
    await count.map(TEXTS, checkpoint=path)


def run_sql(path: Path, *statements: str) -> list[tuple]:
    """Run statements in a file, and return what the last one finds."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements][-1]


# --- going on ------------------------------------------------------------------------------------------------------


async def test_a_rerun_pays_nothing_and_an_added_row_for_itself_alone(tmp_path) -> None:
    path = tmp_path / "runs" / "of today" / "run.sqlite"
    await filled(path)
    with use_llm(counting()) as llm:
        again = await count.map(TEXTS, checkpoint=path)
        added = await count.map(["new one", *reversed(TEXTS)], checkpoint=str(path))
    assert [row.value for row in again.rows] == [1, 2, 3, 4, 5]
    assert (again.counts.restored, again.counts.asked, again.cost) == (5, 0, 0)
    assert again.rows[0].usage.total_tokens > again.usage.total_tokens == 0
    assert [row.value for row in added.rows] == [7, 5, 4, 3, 2, 1]
    assert len(llm.calls) == 1


async def test_a_row_is_committed_before_its_place_is_given_to_another(path) -> None:
    kept: list[int] = []

    def reply(request) -> str:
        kept.append(run_sql(path, "SELECT count(*) FROM rows")[0][0])
        return counted(request)

    with use_llm(ScriptedLLM(reply, repeat=True)):
        await count.map(TEXTS, checkpoint=path, concurrency=1)
    assert kept == [0, 1, 2, 3, 4]


async def test_answers_that_did_not_fit_are_asked_again_only_when_told(path) -> None:
    texts = ["bad", "a", "bad too"]
    asked = count.with_options(max_reasks=0)
    first = await asked.map(texts, checkpoint=path)
    with use_llm(ScriptedLLM("12", repeat=True)) as llm:
        second = await asked.map(texts, checkpoint=path)
        with pytest.raises(ResponseParseError):
            await asked.map(texts, checkpoint=path, on_error="raise")
        assert not llm.calls
        for report in (first, second):
            assert [row.error is None for row in report.rows] == [False, True, False]
        error, restored = first.rows[0].error, second.rows[0].error
        assert restored.usage == second.rows[0].usage == error.usage
        third = await asked.map([*texts, "bad"], checkpoint=path, retry_errors=True)
    assert len(llm.calls) == 2
    assert type(restored) is type(error) is ResponseParseError
    assert (str(restored), restored.violations, restored.text) == (str(error), error.violations, error.text)
    assert second.counts.failed == 2
    assert [row.value for row in third.rows] == [12, 1, 12, 12]
    assert (third.counts.restored, third.counts.asked, third.counts.duplicates) == (1, 2, 1)
    status = Checkpoint.status(path)
    assert (status.values, status.errors) == (3, 0)


async def test_failures_of_the_service_and_of_the_run_are_asked_again_unless_told(path) -> None:
    asked = count.with_options(max_reasks=0)
    failures = {"down": ServerUnavailable("m", status=503), "long": OutputTruncated(partial="cut"), "bad": "no number"}
    failures = {"odd": ArithmeticError("odd"), **failures}  # one that is not of the library
    with use_llm(
        ScriptedLLM(lambda request: next(failures[text] for text in failures if text in request.text), repeat=True)
    ):
        first = await asked.map([*failures], checkpoint=path)
    assert [type(row.error) for row in first.rows] == [RunError, ServerUnavailable, OutputTruncated, ResponseParseError]
    with use_llm(ScriptedLLM("7", repeat=True)) as llm:
        kept = await asked.map([*failures], checkpoint=path, retry_errors=False)
        assert (kept.counts.failed, len(llm.calls)) == (4, 0)
        again = await asked.map([*failures], checkpoint=path)
    assert (again.counts.asked, again.counts.restored, len(llm.calls)) == (3, 1, 3)
    assert [row.value for row in again.rows[:3]] == [7, 7, 7]
    assert isinstance(again.rows[3].error, ResponseParseError)


async def test_what_the_service_said_comes_back_with_the_error(path) -> None:
    error = RateLimited("m", kind="quota", retry_after=3.5, status=429, body="no more", request_id="r1")
    with use_llm(ScriptedLLM(error)):
        await count.map(["a"], checkpoint=path)
    with use_llm(ScriptedLLM()):
        again = (await count.map(["a"], checkpoint=path, retry_errors=False)).rows[0].error
    assert (type(again), str(again)) == (RateLimited, str(error))
    assert (again.kind, again.retry_after, again.status, again.request_id) == ("quota", 3.5, 429, "r1")
    assert (again.func_name, bool(again.trace_id)) == ("count", True)


async def test_a_bad_row_is_kept_like_any_other(path) -> None:
    for _ in range(2):
        report = await count.map([("a", "b", "c"), "x"], checkpoint=path)
        assert "too many positional" in str(report.rows[0].error)
        assert report.rows[1].value == 1
    assert report.counts.restored == 2


# --- the same function, and another one ----------------------------------------------------------------------------


def tool_of(text: str) -> str:
    """Look it up."""
    return text


CHANGES: dict[str, dict[str, Any]] = {
    "model": {"llm_interface": ScriptedLLM("1", repeat=True, model_name="other")}, "params": {"temperature": 0.5},
    "prompt": {"user_prompt_template": "Now: {parameters}"}, "tools": {"toolkit": [tool_of]},
    "types": {"repair": "off"},
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
async def test_a_change_means_new_rows_and_the_old_ones_stay(what, path, caplog) -> None:
    own = count.with_options(llm_interface=counting())
    await own.map(TEXTS[:2], checkpoint=path)
    changed = own.with_options(**CHANGES[what])
    if what != "model":
        changed = changed.with_options(llm_interface=ScriptedLLM("1", repeat=True))
    with pytest.warns(UserWarning, match=f"other {what}"):  # also where no log is set up: every row is paid again
        report = await changed.map(TEXTS[:3], checkpoint=path)
    assert report.counts.asked == 3
    assert f"other {what}" in caplog.text
    status = Checkpoint.status(path)
    assert [(version.values, version.changed) for version in status.versions] == [(3, ()), (2, (what,))]
    assert f"older, other {what}" in str(status)
    assert (await own.map(TEXTS[:2], checkpoint=path)).counts.restored == 2


async def test_the_name_of_the_function_and_the_address_of_the_service_do_not_count(path) -> None:

    @llm_function
    async def renamed(text: str) -> int:
        """Count the letters."""

    async with (
        LoopbackServer(handler=lambda _: text_answer("1")) as one,
        LoopbackServer(handler=lambda _: text_answer("1")) as other,
    ):
        for function, server in ((count, one), (count, other), (renamed, one)):
            llm = OpenAICompatible("m", base_url=server.base_url)
            report = await function.with_options(llm_interface=llm, max_reasks=5).map(["a"], checkpoint=path)
            assert report.rows[0].value == 1
        assert len(one.requests) + len(other.requests) == 1
        llm = OpenAICompatible("m", base_url=one.base_url, wire="responses", max_retries=0)
        with pytest.warns(UserWarning, match='If only the wire is another, wire="chat" of the model takes them'):
            await count.with_options(llm_interface=llm, max_reasks=5).map(["a"], checkpoint=path)
        llm = OpenAICompatible("m", base_url=one.base_url, max_retries=0)
        with pytest.warns(UserWarning, match="with other params") as told:
            await count.with_options(llm_interface=llm, temperature=0.5).map(["a"], checkpoint=path)
        assert "the wire" not in str(told[0].message)


# --- values come back as what they were ----------------------------------------------------------------------------


class Color(str, Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    when: date
    price: Decimal


class Outer(BaseModel):
    inner: list[Inner]
    color: Color
    given_name: str = Field(alias="givenName")
    secret: SecretStr = SecretStr("")
    left_out: int = Field(default=3, exclude=True)

    @computed_field
    @property
    def size(self) -> int:
        return len(self.inner)


@dataclass
class Point:
    x: int
    tags: set[str]


class Movie(TypedDict):
    title: str
    year: int


class Strict(BaseModel, extra="forbid"):
    number: int

    @computed_field
    @property
    def double(self) -> int:
        return self.number * 2


OUTER = '{"inner": [{"when": "2024-02-29", "price": 1.10}], "color": "red", "givenName": "Ann", "secret": "pass", "left_out": 7}'
VALUES = [
    (str, "text"), (int, "12"), (float, "1.5"), (bool, "true"), (None, "whatever"), (Decimal, "1.10"),
    (date, "2024-02-29"), (datetime, "2024-02-29T10:00:00Z"), (timedelta, "PT3S"),
    (UUID, '"12345678-1234-5678-1234-567812345678"'), (Color, "red"), (Literal["a", 1], "1"),
    (date | str, '"2024-02-29"'), (Color | str, '"red"'), (int | None, "null"), (list[int | float], "[1, 1.0, 2.5]"),
    (tuple[int, str], '[1, "a"]'), (set[int], "[3, 1]"), (dict[str, Decimal], '{"a": 0.10}'),
    (Annotated[int, Field(ge=0)], "3"), (Outer, OUTER), (Point, '{"x": 1, "tags": ["b", "a"]}'),
    (Movie, '{"title": "M", "year": 1931}'), (Strict, '{"number": 4}'), (Any, '{"a": [1, null, "x"]}'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "answer"), VALUES, ids=[str(kind) for kind, _ in VALUES])
async def test_a_restored_value_is_the_very_same(kind, answer, tmp_path) -> None:
    def make(text):
        """Make it of the text."""

    make.__annotations__ = {"text": str, "return": kind}
    llm = ScriptedLLM(answer, repeat=True)
    made = llm_function(llm)(make)
    first = (await asyncio.to_thread(made.map, ["a"])).rows[0].value
    await asyncio.to_thread(made.map, ["a"], checkpoint=tmp_path / "run.sqlite")
    llm.calls.clear()
    report = await asyncio.to_thread(made.map, ["a", "a"], checkpoint=tmp_path / "run.sqlite")
    again = report.rows[0].value
    assert not llm.calls
    assert (type(again), again, repr(again)) == (type(first), first, repr(first))
    if kind is Outer:
        assert (again.secret.get_secret_value(), again.left_out) == ("pass", 7)
    if dataclasses.is_dataclass(kind):
        assert isinstance(again.tags, set)
        again.tags.add("c")  # values are built at each access
        assert report.rows[0].value == report.rows[1].value == first


# --- one writer ----------------------------------------------------------------------------------------------------

WRITER = """
import asyncio, sys
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM

async def reply(request):
    if "bb" in request.text:
        print("waiting", flush=True)
        await asyncio.Event().wait()
    return "1"

@llm_function(ScriptedLLM(reply, repeat=True))
async def count(text: str) -> int:
    "Count the letters."

asyncio.run(count.map(["a", "bb"], checkpoint=sys.argv[1], concurrency=1))
"""


@pytest.fixture
def writer(tmp_path):
    """A process that has finished one row and waits for another."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "run.sqlite")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "waiting\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def test_a_second_writer_is_refused_with_the_first_ones_pid_and_host(writer, tmp_path, path) -> None:
    with use_llm(counting()) as llm:
        with pytest.raises(CheckpointError, match=f"process {writer.pid} on {socket.gethostname()}"):
            await count.map(TEXTS, checkpoint=path)
        assert not llm.calls
        status = await asyncio.to_thread(Checkpoint.status, path)
        assert str(writer.pid) in status.writer
        assert str(writer.pid) in str(status)
        assert status.values == 1
        (version,) = status.versions
        assert (version.is_under_way, version.progress.done, version.progress.total) == (True, 1, 2)
        assert "under way: count: 1 of 2 rows (50 %)" in str(status)
        link = tmp_path / "link.sqlite"
        link.symlink_to(path)
        with pytest.raises(CheckpointError, match=str(writer.pid)):
            await count.map(TEXTS, checkpoint=link)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        report = await count.map(["a", "bb"], checkpoint=path)
    assert (report.counts.restored, report.counts.asked) == (1, 1)
    assert Checkpoint.status(path).writer is None


async def test_an_empty_file_is_a_new_checkpoint_beside_which_no_other_file_stays(tmp_path, path) -> None:
    path.touch(0o600)
    (tmp_path / "run.sqlite.writer").write_text('{"commits": 3}')  # of a file that was removed
    assert (Checkpoint.status(path).values, Checkpoint.status(path).size) == (0, 0)
    await filled(path)
    assert Checkpoint.status(path).values == 5
    path.unlink()
    (tmp_path / "run.sqlite.writer").write_text("[1]")  # of another program: it notes nothing
    await filled(path)
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]
    assert path.stat().st_mode & 0o077 == 0


async def test_a_disk_too_full_for_the_lock_is_said_and_leaves_no_lock(tmp_path, path, monkeypatch) -> None:

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with use_llm(counting()) as llm, pytest.raises(CheckpointError, match="cannot be written: No space left on device"):
        await count.map(TEXTS, checkpoint=path)
    assert not llm.calls
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    await filled(path)
    assert Checkpoint.status(path).values == 5


@pytest.mark.parametrize("planted", [
    "CREATE TRIGGER planted AFTER INSERT ON rows BEGIN DELETE FROM rows WHERE id < new.id; END",
    "CREATE VIEW planted AS SELECT * FROM rows", "CREATE INDEX planted ON rows (error)",
    "CREATE VIRTUAL TABLE planted USING fts5(x)", "ALTER TABLE rows ADD COLUMN planted DEFAULT 1",
    "DROP TABLE progress",
])  # fmt: skip
async def test_a_file_with_anything_that_is_not_ours_in_it_is_refused(path, planted) -> None:
    await filled(path)
    run_sql(path, planted)
    before = path.read_bytes()
    with use_llm(counting()) as llm, pytest.raises(CheckpointError, match=r"not those that we made .* another path"):
        await count.map([*TEXTS, "new"], checkpoint=path)
    with pytest.raises(CheckpointError, match="not those that we made"):
        Checkpoint.status(path)
    assert not llm.calls
    assert path.read_bytes() == before


# --- damage --------------------------------------------------------------------------------------------------------


async def mapped_again(path: Path) -> tuple[int, list[int] | None]:
    """Map once more; return how many calls that took, and the values, None where the checkpoint was refused."""
    llm = counting()
    try:
        with use_llm(llm):
            report = await count.map(TEXTS, checkpoint=path)
            values = [row.value for row in report.rows]
            report.close()
    except CheckpointError:
        return len(llm.calls), None
    return len(llm.calls), values


@pytest.mark.heavy
async def test_a_file_that_was_cut_anywhere_is_refused_or_lacks_nothing(tmp_path) -> None:
    await filled(tmp_path / "whole.sqlite")
    data = (tmp_path / "whole.sqlite").read_bytes()
    sizes = [*range(1, 200), *range(200, len(data), 509), *range(len(data) - 40, len(data))]
    for size in sizes:
        path = tmp_path / f"cut{size}.sqlite"
        path.write_bytes(data[:size])
        found = await mapped_again(path)
        if found == (0, [1, 2, 3, 4, 5]):
            assert not any(data[size:]), "the last page may end in room that nothing is written in"
        else:
            assert found == (0, None), size
            assert path.read_bytes() == data[:size], size


@pytest.mark.heavy
async def test_garbage_in_the_file_is_never_believed_and_never_paid_for(tmp_path) -> None:
    await filled(tmp_path / "whole.sqlite")
    data = (tmp_path / "whole.sqlite").read_bytes()
    used = [place for place in range(len(data)) if data[place]]
    refused = 0
    for place in used[:: max(1, len(used) // 400)]:
        path = tmp_path / "garbage.sqlite"
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        calls, values = await mapped_again(path)
        assert calls == 0, place
        assert values in (None, [1, 2, 3, 4, 5]), place
        refused += values is None
        for part in tmp_path.glob("garbage*"):
            part.unlink()
    assert refused > 100


@pytest.mark.parametrize("cell", ["answer", "usage", "error", "given"])
async def test_a_changed_cell_is_named_by_its_row(cell, path) -> None:
    await filled(path)
    # What was given is as long as before.
    changed = (
        f"UPDATE rows SET {cell} = '[false,\"999\"]' WHERE id = (SELECT id FROM rows ORDER BY id LIMIT 1 OFFSET 2)"
    )
    ((key,),) = run_sql(path, changed, "SELECT key FROM rows ORDER BY id LIMIT 1 OFFSET 2")
    with use_llm(counting()) as llm, pytest.raises(CheckpointError) as caught:
        await count.map(TEXTS, checkpoint=path)
    assert not llm.calls
    undamaged = await count.with_options(llm_interface=counting()).map(TEXTS)
    assert undamaged.rows[caught.value.row].key == key.hex()
    assert str(caught.value).startswith(f"row {caught.value.row}: ")
    assert Checkpoint.status(path).damaged == (3,)


async def test_a_file_without_its_count_of_commits_is_damaged(path) -> None:
    await filled(path)
    run_sql(path, "DELETE FROM progress")
    with use_llm(counting()), pytest.raises(CheckpointError, match="is damaged"):
        await count.map(TEXTS, checkpoint=path)
    with pytest.raises(CheckpointError, match="is damaged"):
        Checkpoint.status(path)


async def test_a_row_that_is_damaged_after_the_map_is_not_given_out(path) -> None:
    report = await count.map(TEXTS, checkpoint=path)
    run_sql(path, "UPDATE rows SET answer = x'7039'")
    with pytest.raises(CheckpointError, match="row 1"):
        _ = report.rows[1]
    report.close()
    path.unlink()
    with pytest.raises(CheckpointError, match="gone"):
        _ = report.rows[1]
    assert not path.exists()


async def test_a_log_that_was_cut_or_taken_away_after_a_kill_is_seen(writer, tmp_path) -> None:
    path, log = tmp_path / "run.sqlite", tmp_path / "run.sqlite-wal"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    kept = {file: file.read_bytes() for file in tmp_path.glob("run.sqlite*")}
    whole = kept[log]

    def restore() -> None:
        for file, content in kept.items():
            file.write_bytes(content)

    with use_llm(counting()) as llm:
        for size in (0, 10, 32, len(whole) // 2, len(whole) - 1):
            log.write_bytes(whole[:size])
            with pytest.raises(CheckpointError, match="lost rows"):
                await count.map(["a", "bb"], checkpoint=path)
            restore()
            (tmp_path / "run.sqlite-shm").unlink(missing_ok=True)
        path.write_bytes(b"")
        with pytest.raises(CheckpointError, match="was cut"):
            await count.map(["a", "bb"], checkpoint=path)
        assert not llm.calls
        restore()
        assert (await count.map(["a", "bb"], checkpoint=path)).counts.restored == 1
        restore()
        path.unlink()  # what is beside it is of a file that was removed: a new one begins
        for asked in (2, 0):
            assert (await count.map(["a", "bb"], checkpoint=path)).counts.asked == asked


async def test_what_is_no_checkpoint_is_refused_and_left_alone(tmp_path) -> None:
    text, database = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("my notes, " * 100)
    run_sql(database, "CREATE TABLE mine (a)")
    for path in (text, database, tmp_path):
        before = path.read_bytes() if path.is_file() else b""
        said = "it is no checkpoint, or all but its first bytes" if before else "it is a folder"
        with pytest.raises(CheckpointError, match=f"{path.name}.* cannot be used: {said}"):
            await count.map(TEXTS, checkpoint=path)
        if path.is_file():
            assert path.read_bytes() == before
            with pytest.raises(CheckpointError):
                Checkpoint.status(path)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        Checkpoint.status(tmp_path / "none.sqlite")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["notes.txt", "other.sqlite"]


async def test_a_full_disk_ends_the_map_and_costs_no_row_that_was_kept(path, monkeypatch) -> None:
    texts = [f"{number} " + "x" * 3000 for number in range(60)]
    write = RowFile.write

    def full(self, records, *progress) -> None:
        if self.commits == 10:
            (pages,) = self.file.connection().execute("PRAGMA page_count").fetchone()
            self.file.connection().execute(f"PRAGMA max_page_count = {pages + 1}")
        write(self, records, *progress)

    monkeypatch.setattr(RowFile, "write", full)
    with (
        use_llm(counting()) as llm,
        pytest.raises(CheckpointError, match="cannot be written: database or disk is full"),
    ):
        await count.map(texts, checkpoint=path, concurrency=4)
    monkeypatch.undo()
    kept = Checkpoint.status(path).values
    assert kept >= 9
    assert len(llm.calls) <= kept + 4
    report = await count.map(texts, checkpoint=path)
    assert (report.counts.restored, report.counts.failed) == (kept, 0)


@pytest.mark.skipif(os.name != "posix", reason="rights as on Unix")
async def test_a_place_that_may_not_be_written_is_named(tmp_path) -> None:
    (tmp_path / "file").touch()
    for path, said in (("/proc/run.sqlite", "cannot be"), (tmp_path / "file" / "run.sqlite", r"folder.*\(File exists")):
        with pytest.raises(CheckpointError, match=said):
            await count.map(TEXTS, checkpoint=path)


async def test_the_status_tells_what_a_run_took(path) -> None:
    report = await count.with_options(max_reasks=0).map([*TEXTS, "bad"], checkpoint=path)
    status = Checkpoint.status(path)
    (version,) = status.versions
    assert (version.name, version.values, version.errors) == ("count", 5, 1)
    assert version.error_kinds == {"ResponseParseError": 1}
    assert (version.input_tokens, version.output_tokens) == (report.usage.input_tokens, report.usage.output_tokens)
    assert version.definition["model"] == ["scripted"]
    assert "1 x ResponseParseError" in str(status)
    assert json.dumps(version.definition)


async def test_the_status_tells_how_far_the_latest_map_came(path) -> None:
    await count.map([], checkpoint=path)
    assert [(version.progress.done, version.how_far()) for version in Checkpoint.status(path).versions] == [(0, "")]
    await count.map([*TEXTS, "a"] * 2, checkpoint=path, budget={"requests": 3}, concurrency=1)
    (version,) = Checkpoint.status(path).versions
    # The fourth row stopped it; those that are the same as an earlier one are finished with that.
    assert (version.progress.total, version.progress.done, version.progress.asked) == (12, 8, 3)
    assert not version.is_under_way
    assert "its latest map ended at 8 of 12 rows (66 %)" in str(Checkpoint.status(path))
    await count.map([*TEXTS, "a"] * 2, checkpoint=path)
    (version,) = Checkpoint.status(path).versions
    assert (version.progress.total, version.progress.done, version.progress.share) == (12, 12, 1.0)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_file_of_an_earlier_format_is_read_as_it_is_and_goes_on_in_the_latest(path, version) -> None:
    await filled(path)
    newer = ("batches", "requests", "answers", *(["maps"] if version == 1 else []))
    run_sql(path, *(f"DROP TABLE {table}" for table in newer), f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    status = Checkpoint.status(path)
    assert (status.values, status.versions[0].progress is None) == (5, version == 1)
    assert path.read_bytes() == before
    with use_llm(counting()) as llm:
        report = await count.map([*TEXTS, "new"], checkpoint=path)
    assert (report.counts.restored, report.counts.asked, len(llm.calls)) == (5, 1, 1)
    assert run_sql(path, "PRAGMA user_version") == [(3,)]
    assert Checkpoint.status(path).versions[0].progress.share == 1.0
    run_sql(path, "PRAGMA user_version = 99")
    with pytest.raises(CheckpointError, match="format 99"):
        await count.map(TEXTS, checkpoint=path)


# --- trouble in the middle of a map ---------------------------------------------------------------------------------


class Held:
    """A model that answers ten rows, and the others when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.llm = ScriptedLLM(self._reply, repeat=True)

    async def _reply(self, request):
        if request.index >= 10:
            self.asked.set()
            await self.go.wait()
        return "1"


MANY = [f"text {number}" for number in range(40)]


async def troubled(path: Path, trouble) -> CheckpointError:
    """Map, make trouble when ten rows are kept, go on, and return the error."""
    held = Held()
    with use_llm(held.llm):
        running = asyncio.create_task(count.map(MANY, checkpoint=path, concurrency=2))
        await held.asked.wait()
        trouble()
        held.go.set()
        with pytest.raises(CheckpointError) as caught:
            await running
    assert len(held.llm.calls) <= 12 + 2  # nothing is asked that could not be kept
    return caught.value


async def test_a_file_that_is_removed_or_replaced_in_the_middle_ends_the_map(tmp_path, path) -> None:
    folder, other = tmp_path / "runs", tmp_path / "other.sqlite"
    assert "is gone" in str(await troubled(folder / "run.sqlite", lambda: shutil.rmtree(folder)))
    assert not (folder / "run.sqlite").exists()

    def replace() -> None:
        path.rename(tmp_path / "old.sqlite")
        path.touch()

    assert "is gone" in str(await troubled(path, replace))
    assert path.stat().st_size == 0
    assert "is damaged (no such table: rows)" in str(await troubled(other, lambda: run_sql(other, "DROP TABLE rows")))


async def test_a_file_that_is_overwritten_in_the_middle_is_never_believed(path) -> None:
    held = Held()
    with use_llm(held.llm):
        running = asyncio.create_task(count.map(MANY, checkpoint=path, concurrency=2))
        await held.asked.wait()
        for suffix in ("", "-wal"):
            file = path.with_name(path.name + suffix)
            with file.open("r+b") as opened:
                opened.write(os.urandom(file.stat().st_size))
        held.go.set()
        # Who writes need not see it: what it has in memory is sound.
        (came,) = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(came, (CheckpointError, MapReport)), came
    with use_llm(ScriptedLLM()) as llm, pytest.raises(CheckpointError):
        await count.map(MANY, checkpoint=path)
    assert not llm.calls


READ_ONLY = """
import asyncio, os, sys
from SimpleLLMFunc import llm_function, CheckpointError
from SimpleLLMFunc.testing import ScriptedLLM
llm = ScriptedLLM("1", repeat=True)
@llm_function(llm)
async def count(text: str) -> int:
    "Count the letters."
asyncio.run(count.map(["c"], checkpoint=sys.argv[2]))  # what is imported late is there now
if not os.getuid():
    os.setgid(65534)
    os.setuid(65534)  # to root everything is allowed
llm.calls.clear()
try:
    asyncio.run(count.map(["a", "b"], checkpoint=sys.argv[1]))
except CheckpointError as error:
    print(len(llm.calls), "asked, refused:", error)
"""


@pytest.mark.skipif(os.name != "posix", reason="rights as on Unix")
async def test_a_file_that_may_only_be_read_is_refused(tmp_path, path) -> None:
    with use_llm(ScriptedLLM("1", repeat=True)):
        await count.map(MANY, checkpoint=path, concurrency=1, deadline=30)  # to keep a row takes no second
    path.chmod(0o444)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o777)
    command = [sys.executable, "-c", READ_ONLY, path, tmp_path / "other.sqlite"]
    said = await asyncio.to_thread(subprocess.check_output, command, cwd=ROOT, text=True)
    assert said.startswith("0 asked, refused:")
    assert "Permission denied" in said
    assert Checkpoint.status(path).values == 40


@pytest.mark.skipif(os.name != "posix", reason="forks as on Unix")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_that_ends_does_not_free_the_lock_of_its_parent(tmp_path):
    lock, other = WriterLock(tmp_path / "run.sqlite"), WriterLock(tmp_path / "run.sqlite")
    lock.acquire()
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join(30)
    assert child.exitcode == 0
    with pytest.raises(CheckpointError, match="another map of this process"):
        other.acquire()
    lock.release(ended_well=True)
    other.acquire()
    other.release(ended_well=True)
