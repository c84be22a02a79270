"""A trace store in trouble: a full disk, a strange file, a slow writer, a process that dies; calls go on."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest

from SimpleLLMFunc import ConfigError, watching
from SimpleLLMFunc.base.events import MessageAppended, RunFinished, RunStarted
from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata
from SimpleLLMFunc.observability.store import tables as schema
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import RunQuery
from SimpleLLMFunc.observability.store.trace_store import TraceStore, TraceStoreWarning
from SimpleLLMFunc.storage import used_bytes
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type.completion import ChatCompletion
from SimpleLLMFunc.type.usage import NO_USAGE
from tests.support.functions import function_of

ROOT = Path(__file__).parents[3]
REPLY = ChatCompletion.from_dict({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})


FUNCTION = """
from SimpleLLMFunc import llm_function, watching
from SimpleLLMFunc.testing import ScriptedLLM

@llm_function(llm_interface=ScriptedLLM("yes", repeat=True))
def ask(text: str) -> str:
    "Answer."
    raise NotImplementedError
"""


ask = function_of(ScriptedLLM("yes", repeat=True))


def begin(store, number, text="x"):
    facts = RunMetadata(FunctionMetadata("f", version="v"), {"text": text})
    store(f"f_{number}", RunStarted(f"f_{number}", [{"role": "user", "content": text}], facts))


def finish(store, number):
    store(f"f_{number}", RunFinished(REPLY, [], NO_USAGE, 1, "ok"))


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def run_script(code, tmp_path, **environ):
    script = tmp_path / "script.py"
    script.write_text(FUNCTION + textwrap.dedent(code))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **environ}
    return subprocess.Popen(
        [sys.executable, script], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process, code=0):
    out, err = process.communicate(timeout=50)
    assert process.returncode == code, err
    return out, err


def in_file(store, statement):
    """Return the first row that a statement finds in the file of a store."""
    with store._file.opened() as connection:
        return connection.execute(statement).fetchone()


# --- the disk ---------------------------------------------------------------------------------------------


def test_a_full_disk_gives_one_warning_and_calls_go_on(tmp_path, caplog):
    with TraceStore(tmp_path / "r.sqlite", interval=0.01) as store, caplog.at_level(logging.INFO, "SimpleLLMFunc"):
        with watching(store):
            ask("before")
            assert store.flush()
            in_file(store, f"PRAGMA max_page_count = {in_file(store, 'PRAGMA page_count')[0]}")
            for number in range(5):
                assert ask(" ".join(os.urandom(9000).hex()) + str(number)) == "yes"
                assert not store.flush()
        (warning,) = warnings_of(caplog)
        assert "full" in warning
        assert str(store.path) in warning
        assert store.dropped == 0, "it waits"
        in_file(store, "PRAGMA max_page_count = 100000")
        with watching(store):
            ask("after")
        assert store.flush()
        assert "written again" in caplog.text
        assert store.reader.count() == 7, "what waited is written as well"


@pytest.mark.filterwarnings("ignore::SimpleLLMFunc.observability.store.trace_store.TraceStoreWarning")
def test_a_file_without_its_counter_is_read_and_ends_no_thread(tmp_path, caplog):
    with TraceStore(tmp_path / "r.sqlite", interval=0.01) as store, watching(store):
        ask("before")
        assert store.flush()
        in_file(store, "DELETE FROM counter")
        assert [run.function for run in store.reader.runs().runs] == ["ask"]
        assert ask("after") == "yes"
        assert not store.flush()
        assert "counter is gone" in warnings_of(caplog)[0]
        in_file(store, "INSERT INTO counter VALUES ('abc')")
        with pytest.raises(ConfigError, match="the file is damaged"):
            store.reader.runs()


def test_while_the_disk_is_full_no_more_waits_than_may(tmp_path, caplog):
    with TraceStore(tmp_path / "r.sqlite", interval=0.01, queue_size=50) as store:
        begin(store, "first")
        finish(store, "first")
        assert store.flush()
        in_file(store, "PRAGMA query_only = 1")
        for number in range(100):
            begin(store, number)
            finish(store, number)
            store.flush(0.5)
        assert sum(len(run.rows) + 1 for run in store._fold.runs.values()) <= 60
        assert store.dropped > 50
        assert len(warnings_of(caplog)) == 1
        in_file(store, "PRAGMA query_only = 0")
        assert store.flush()
        assert 1 < store.reader.count() < 60


# --- the file ---------------------------------------------------------------------------------------------


def foreign(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def future(path):
    with TraceStore(path) as store:
        begin(store, 1)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    connection.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (foreign, "another program"),
        (future, "newer SimpleLLMFunc"),
        (lambda path: path.write_bytes(b"plain text, and none of ours\n" * 100), "not an SQLite database"),
        (lambda path: path.mkdir(), "IsADirectoryError"),
    ],
)
def test_a_file_that_cannot_be_used_is_left_alone_and_told_of_once(tmp_path, caplog, make, says):
    path = tmp_path / "r.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with TraceStore(path, interval=0.01) as store, watching(store):
        for _ in range(3):
            assert ask("x") == "yes"
            assert not store.flush()
    (warning,) = warnings_of(caplog)
    assert says in warning
    assert str(path) in warning
    with pytest.raises(ConfigError, match=says):
        TraceReader(path).runs()
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_path_that_cannot_be_written_is_seen_without_a_log(tmp_path):
    (tmp_path / "file").write_text("no folder")
    path = tmp_path / "file" / "r.sqlite"
    code = "for _ in range(3): assert ask('x') == 'yes'"
    process = run_script(code, tmp_path, SIMPLELLMFUNC_TRACE=str(path), PYTHONWARNINGS="default")
    _, err = ended(process)
    assert err.count("TraceStoreWarning") == 1, err
    assert str(path) in err
    assert "cannot be used as a trace store" in err
    strict = run_script(code, tmp_path, SIMPLELLMFUNC_TRACE=str(path))
    assert ended(strict) == ("", ""), "no caller could catch an exception of our thread"


def test_what_is_missing_is_a_warning_that_can_be_filtered(tmp_path):
    with TraceStore(tmp_path, interval=60) as store:
        begin(store, 1)
        with pytest.warns(TraceStoreWarning, match="missing something"):
            store.flush()
        begin(store, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not store.flush(), "told of once"


def test_a_store_that_is_not_there_is_no_store(tmp_path):
    with pytest.raises(ConfigError, match="SIMPLELLMFUNC_TRACE"):
        TraceReader(tmp_path / "none.sqlite").runs()
    assert not list(tmp_path.iterdir())
    assert TraceReader(tmp_path / "none.sqlite", create=True).runs().runs == []


@pytest.mark.parametrize(
    "damaged",
    [
        lambda data: data[:8192] + os.urandom(40_000 - 8192) + data[40_000:],
        lambda data: data.replace(b"CREATE TABLE runs", b"CREATE \xff\xff\xff\xff\xff runs"),  # SQLite quotes it
        lambda data: data.replace(b'"}', b"#}"),  # inside of a cell, where SQLite does not look
    ],
)
def test_a_damaged_file_is_one_of_our_errors(damaged, tmp_path):
    path = tmp_path / "r.sqlite"
    with TraceStore(path) as store:
        for number in range(200):
            begin(store, number, "y" * 500)
            finish(store, number)
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.raises(ConfigError, match="damaged"):
        reader = TraceReader(path)
        reader.runs()
        [reader.run(number) for number in range(200)]
        reader.runs(RunQuery(text="yyy"))


def test_a_file_of_the_first_schema_is_migrated(tmp_path, monkeypatch):
    path = tmp_path / "r.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    schema.MIGRATIONS[0](connection)
    connection.execute("PRAGMA user_version = 1")
    connection.execute("UPDATE counter SET seq = 1")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
    row = dict.fromkeys(columns, 0) | {"id": 5, "seq": 1, "started": time.time(), "trace_id": "f_1"}
    row |= {"function": "f", "question": "the old one"}
    row |= dict.fromkeys(("parent", "parent_call", "model", "answer_head", "error", "error_text", "version"), "")
    row |= {"status": "ok", "arguments": None, "answer": None, "value": None}
    connection.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    connection.commit()
    connection.close()
    with TraceStore(path) as store:
        begin(store, 2, "the new one")
        assert store.flush()
        reader = store.reader
        assert {run.question for run in reader.runs().runs} == {"the old one", "the new one"}
        assert [run.id for run in reader.runs(RunQuery(text="the old")).runs] == [5]
        assert reader.run(5).summary.question == "the old one"
        assert reader.run(5).summary.cache_write_tokens == 0
        assert in_file(store, "PRAGMA user_version") == (schema.SCHEMA_VERSION,)


def test_without_the_text_index_texts_are_found_all_the_same(tmp_path, monkeypatch):
    class Poor:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement, *args):
            if "fts5" in statement:
                raise sqlite3.OperationalError("no such module: fts5")
            return self.connection.execute(statement, *args)

    step = schema.MIGRATIONS[1]
    monkeypatch.setattr(
        schema, "MIGRATIONS", (schema.MIGRATIONS[0], lambda connection: step(Poor(connection)), *schema.MIGRATIONS[2:])
    )
    with TraceStore(tmp_path / "r.sqlite") as store:
        begin(store, 1, "Über die Ärzte")
        begin(store, 2, "人工智能")
        assert store.flush()
        with store._file.opened() as connection:
            assert not schema.has_text_index(connection)
        assert [run.id for run in store.reader.runs(RunQuery(text="die")).runs] == [1]
        assert [run.id for run in store.reader.runs(RunQuery(text="人工智")).runs] == [2]


# --- age and size -----------------------------------------------------------------------------------------


def test_old_runs_go_with_all_that_belongs_to_them(tmp_path):
    path = tmp_path / "r.sqlite"
    with TraceStore(path) as store:
        for number in range(3):
            begin(store, number, "old text")
            finish(store, number)
        assert store.flush()
        in_file(store, "UPDATE runs SET started = started - 1000 WHERE id < 3")
    with TraceStore(path, max_age=500) as store:
        begin(store, 9, "new text")
        assert store.flush()
        assert {run.trace_id for run in store.reader.runs().runs} == {"f_2", "f_9"}
        assert store.reader.count(RunQuery(text="old text")) == 1
        for table in ("messages", "run_texts"):
            assert in_file(store, f"SELECT count(*) FROM {table}") == (2,), table


def test_the_file_stays_about_as_large_as_it_may(tmp_path):
    path = tmp_path / "r.sqlite"
    with TraceStore(path, max_bytes=600_000, interval=0.01) as store:
        for number in range(400):
            begin(store, number, " ".join(os.urandom(2000).hex()))
            finish(store, number)
            if number % 100 == 99:
                assert store.flush()
                with store._file.opened() as connection:
                    store._writer.tidy(connection)
        kept = store.reader.runs(limit=500).runs
        assert 10 < len(kept) < 200
        assert kept[0].trace_id == "f_399", "the oldest go first"
        assert [run.id for run in kept] == list(range(400, 400 - len(kept), -1))
        with store._file.opened() as connection:
            assert used_bytes(connection) <= 600_000


# --- a writer that cannot follow --------------------------------------------------------------------------


def test_what_is_dropped_is_counted_and_told_of_once(tmp_path, caplog):
    with TraceStore(tmp_path / "r.sqlite", interval=0.01, queue_size=20) as store:
        begin(store, "going")
        assert store.flush()
        with store._file.opened():  # the thread waits for the file
            begin(store, "stuck")
            deadline = time.monotonic() + 10
            while not store._queue.empty() and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(0.5)  # until it has come to the file, and takes nothing more
            for number in range(100):
                begin(store, number)
                store("f_going", MessageAppended(1, {"role": "user", "content": "more"}))
            finish(store, "going")
            finish(store, 99)  # whose beginning was dropped
        assert store.flush()
        assert store.dropped >= 150
        (warning,) = warnings_of(caplog)
        assert "faster than they can be written" in warning
        going = store.reader.run("f_going")
        assert (going.summary.status, going.incomplete) == ("ok", True)
        assert store.reader.run("f_99") is None
        assert not store.reader.run("f_stuck").incomplete


def test_the_thread_goes_when_there_is_nothing_to_do_and_comes_again(tmp_path, monkeypatch):
    monkeypatch.setattr("SimpleLLMFunc.observability.store.trace_store._REST_SECONDS", 0.01)
    with TraceStore(tmp_path / "r.sqlite", interval=0.01) as store:
        for number in range(5):
            begin(store, number)
            finish(store, number)
            thread = store._thread
            if thread is not None:
                thread.join(10)
                assert not thread.is_alive()
        assert store.reader.count() == 5


# --- processes --------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_several_processes_write_one_file(tmp_path):
    code = "for number in range(20): ask(f'question {number}')"
    path = tmp_path / "r.sqlite"
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
    processes = [run_script(code, tmp_path / folder, SIMPLELLMFUNC_TRACE=str(path)) for folder in ("a", "b", "c")]
    for process in processes:
        assert ended(process) == ("", "")
    with TraceStore(path) as store:
        reader = store.reader
        assert reader.count(RunQuery(status="ok")) == 60
        changed = [run.seq for run in reader.changes(0, limit=500).runs]
        assert changed == sorted(set(changed))
        assert in_file(store, "SELECT count(*) FROM processes") == (3,)


def test_what_was_not_written_is_written_at_the_end(tmp_path):
    process = run_script(
        f"""
        from SimpleLLMFunc.observability.store.trace_store import TraceStore
        with watching(TraceStore({str(tmp_path / "r.sqlite")!r}, interval=30.0)):
            ask("at the very end")
        """,
        tmp_path,
    )
    assert ended(process) == ("", "")
    (run,) = TraceReader(tmp_path / "r.sqlite").runs().runs
    assert (run.status, run.question) == ("ok", "at the very end")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_process_that_is_killed_loses_its_last_batch_at_most(tmp_path):
    path = tmp_path / "r.sqlite"
    process = run_script(
        f"""
        import os, signal
        from SimpleLLMFunc.base.events import RunStarted
        from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata
        from SimpleLLMFunc.observability.store.trace_store import TraceStore
        store = TraceStore({str(path)!r}, interval=60)
        with watching(store):
            ask("written")
            store("f_1", RunStarted("f_1", [], RunMetadata(FunctionMetadata("going"))))
            assert store.flush()
            ask("lost")
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        tmp_path,
    )
    ended(process, -signal.SIGKILL)
    with TraceStore(path) as store:
        runs = {run.function: run for run in store.reader.runs().runs}
        assert runs["ask"].question == "written"
        assert runs["going"].status == "running", "it may still be there"
        assert in_file(store, "PRAGMA integrity_check") == ("ok",)
        in_file(store, "UPDATE processes SET seen = seen - 1000")
        (lost,) = store.reader.runs(RunQuery(status="lost")).runs
        assert (lost.function, lost.status) == ("going", "lost")
        assert store.reader.runs(RunQuery(status="running")).runs == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_writes_on_its_own(tmp_path):
    path = tmp_path / "r.sqlite"
    process = run_script(
        f"""
        import os, warnings
        from multiprocessing import get_context
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
        os.environ["SIMPLELLMFUNC_TRACE"] = {str(path)!r}
        get_context("fork").Process(target=ask, args=("worker",)).start()  # the store is first opened there
        from SimpleLLMFunc.observability.store.trace_store import TraceStore
        store = TraceStore({str(path)!r}, interval=0.5)
        with watching(store):
            get_context("fork").Process(target=ask, args=("late worker",)).start()
            ask("parent before")
            child = os.fork()
            if not child:
                ask("child")
                assert store.flush()
                os._exit(0)
            ask("parent after")
            assert os.waitpid(child, 0)[1] == 0
        """,
        tmp_path,
    )
    ended(process)
    with TraceStore(path) as store:
        questions = ["child", "late worker", "parent after", "parent before", "worker"]
        assert sorted(run.question for run in store.reader.runs().runs) == questions
        assert in_file(store, "SELECT count(DISTINCT process) FROM runs") == (4,)
