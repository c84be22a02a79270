"""A database file that several open at once."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from SimpleLLMFunc import CachedLLM, TraceStore
from SimpleLLMFunc.assistant.memory.memory_file import MemoryFile
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.storage import sqlite_file
from SimpleLLMFunc.storage.sqlite_file import SqliteFile
from SimpleLLMFunc.testing import ScriptedLLM

APPLICATION = 0x5EED


def kept(path: Path) -> SqliteFile:
    return SqliteFile(path, application_id=APPLICATION, tables=["CREATE TABLE rows (x)"], unusable=ConfigError)


@pytest.fixture
def reader(tmp_path: Path):
    """Somebody who reads a new file that has no log yet: in this state the log cannot be begun."""
    connection = sqlite3.connect(tmp_path / "new.sqlite", isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("CREATE TABLE rows (x)")
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM rows").fetchall()
    yield connection
    connection.close()


class Refusing:
    """Refuses as SQLite does where two begin a log at the same moment, so that they do not wait for each other."""

    def __init__(self, times: int, code: int = sqlite3.SQLITE_BUSY) -> None:
        self.left, self.code, self.asked = times, code, 0

    def execute(self, statement: str) -> None:
        self.asked += 1
        if self.left:
            self.left -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.code
            raise error


def test_who_opens_it_at_the_same_moment_is_waited_for():
    connection = Refusing(3)
    sqlite_file._begin_log(connection)
    assert connection.asked == 4


def test_another_trouble_is_told_at_once():
    connection = Refusing(3, sqlite3.SQLITE_IOERR)
    with pytest.raises(sqlite3.OperationalError):
        sqlite_file._begin_log(connection)
    assert connection.asked == 1


def test_but_not_for_ever(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        kept(tmp_path / "new.sqlite").connection()


def test_four_at_once_make_one_file(tmp_path):
    for number in range(10):
        path, barrier = tmp_path / f"{number}.sqlite", threading.Barrier(4)
        files = [kept(path) for _ in range(4)]
        problems: list[Exception] = []

        def write(file: SqliteFile, barrier: threading.Barrier = barrier, found: list[Exception] = problems) -> None:
            barrier.wait()
            try:
                with file.lock:
                    file.connection().execute("INSERT INTO rows VALUES (1)")
            except Exception as error:
                found.append(error)

        threads = [threading.Thread(target=write, args=(file,)) for file in files]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        with files[0].lock:
            assert files[0].connection().execute("SELECT count(*) FROM rows").fetchone() == (4,)
        for file in files:
            file.close()


FILES_OF_1_0 = Path(__file__).resolve().parents[1] / "files_of_1_0"


def open_cache(path):
    CachedLLM(ScriptedLLM("a"), path)._store.get(b"key")


def open_memory(path):
    MemoryFile(path).not_extracted("u")


def open_traces(path):
    with TraceStore(path, max_age=None) as store:
        store.reader.runs()


@pytest.mark.parametrize(("name", "opened"), [("cache", open_cache), ("memory", open_memory), ("traces", open_traces)])
@pytest.mark.parametrize(
    "planted",
    ["CREATE TRIGGER planted AFTER INSERT ON {0} BEGIN DELETE FROM {0}; END", "CREATE VIEW planted AS SELECT 1"],
)
def test_a_file_of_ours_into_which_something_was_planted_is_refused(tmp_path, name, opened, planted):
    path = Path(shutil.copy(FILES_OF_1_0 / f"{name}.sqlite", tmp_path))
    opened(path)
    with closing(sqlite3.connect(path)) as connection:
        (table,) = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()
        connection.execute(planted.format(table))
        connection.commit()
    with pytest.raises(ConfigError, match="planted"):
        opened(path)
