"""Processes that are killed, and files that are damaged: nothing is lost, nothing done twice, no wrong value given."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from SimpleLLMFunc import CheckpointError, ConnectionFailed, durable, llm_function, tool, use_llm
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(sys, "abiflags"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize(
    ("runs", "kills", "at_least"),
    [(12, 25, 5), pytest.param(2000, 500, 250, marks=[pytest.mark.heavy, pytest.mark.timeout(900)])],
)
def test_killed_processes_lose_nothing_and_do_nothing_twice(tmp_path, runs, kills, at_least):
    command = [sys.executable, "-m", "tests.support.crashing", str(tmp_path), str(runs), str(kills)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "notes").read_text().splitlines()
    assert (killed := int(lines.pop().split()[1])) >= at_least
    answers = {line for line in lines if line.startswith("answer")}
    assert answers == {f"answer {run}: {'seen paid ' * 3}".strip() for run in range(runs)}
    told = Counter(line for line in lines if line.startswith(("reply", "look", "pay")))
    assert len(told) == runs * (7 + 6)
    twice = {line: times for line, times in told.items() if times > 1}
    assert not [line for line in twice if line.startswith("pay")]  # a once-tool
    # One step at a time goes on: a kill can cost no more than that one.
    assert sum(twice.values()) - len(twice) <= killed


# --- damage --------------------------------------------------------------------------------------------------


def shop(runs):
    @tool
    def pay(amount: int) -> str:
        """Pay."""
        runs.append(amount)
        return f"paid {amount}"

    @llm_function(toolkit=[pay])
    def sell(order: str) -> str:
        """Sell."""

    return sell


PAY = tool_calls(("pay", {"amount": 3}))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a journal of three runs, as a killed process leaves it: much of it is still in the log."""
    folder = tmp_path_factory.mktemp("journal")
    path = folder / "runs.sqlite"
    for key in ("one", "two", "half"):
        replies = (PAY, ConnectionFailed("m") if key == "half" else "sold")
        with suppress(ConnectionFailed), use_llm(ScriptedLLM(*replies)), durable(path, key):
            shop([])(key)
        if key == "one":
            other = sqlite3.connect(path)
            other.execute("SELECT count(*) FROM steps").fetchone()  # keeps the log where it is
    saved = tmp_path_factory.mktemp("saved")
    for suffix in ("", "-wal", ".steps"):
        assert Path(f"{path}{suffix}").stat().st_mode & 0o777 == 0o600, suffix
        shutil.copy(f"{path}{suffix}", saved / f"runs.sqlite{suffix}")
    other.close()
    return saved


FILES = ("runs.sqlite", "runs.sqlite-wal", "runs.sqlite.steps")


def check(folder):
    """Return what comes of the runs: a value, or the error of a journal that is not trusted; nothing is done again."""
    found = []
    for key, wanted in (("one", 0), ("two", 0), ("half", 1)):
        runs, model = [], ScriptedLLM(*["sold"] * wanted)
        try:
            with use_llm(model), durable(folder / "runs.sqlite", key):
                found.append(shop(runs)(key))
        except CheckpointError as error:
            found.append(error)
        assert found[-1] == "sold" or isinstance(found[-1], CheckpointError), key
        assert runs == [], f"the tool of {key} ran again"
        assert len(model.calls) == (wanted if found[-1] == "sold" else 0)
    return found


def test_what_is_whole_is_read(kept, tmp_path):
    for size in (96, 20):  # a number that was cut is not there
        shutil.copytree(kept, folder := tmp_path / str(size))
        (folder / FILES[2]).write_bytes((kept / FILES[2]).read_bytes()[:size])
        assert check(folder) == ["sold"] * 3


@pytest.mark.timeout(300)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.sampled_from(FILES), st.floats(0, 1, exclude_max=True), st.integers(0, 8))
def test_flipped_bits_and_cut_files_are_an_error_or_do_no_harm(kept, tmp_path_factory, name, place, bit):
    folder = tmp_path_factory.mktemp("damaged")
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    data = bytearray((folder / name).read_bytes())
    at = int(place * len(data))
    if bit == 8:
        del data[at:]
    else:
        data[at] ^= 1 << bit
    (folder / name).write_bytes(data)
    check(folder)
    shutil.rmtree(folder)


def test_a_log_that_was_taken_away_and_a_step_that_was_changed_are_noticed(kept, tmp_path):
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    (tmp_path / "runs.sqlite-wal").unlink()
    assert "was cut" in str(check(tmp_path)[-1])
    shutil.copytree(kept, changed := tmp_path / "changed")
    with closing(sqlite3.connect(changed / FILES[0])) as rows, rows:
        rows.execute("UPDATE steps SET data = replace(data, 'paid 3', 'paid 4')")
    assert "at 'one': step 4 is not as it was written" in str(check(changed)[0])


@pytest.mark.parametrize("content", [b"", b"\n", b"no database", b"SQLite format 3\x00" + bytes(4000)])
def test_what_is_no_journal(tmp_path, content):
    path = tmp_path / "runs.sqlite"
    path.write_bytes(content)
    if content:
        with pytest.raises(CheckpointError), durable(path, "k"):
            pass
        assert path.read_bytes() == content
    else:
        with use_llm(ScriptedLLM(PAY, "sold")), durable(path, "k"):
            assert shop([])("k") == "sold"
