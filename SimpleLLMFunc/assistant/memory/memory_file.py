"""The rows behind `SqliteMemory`, and the words by which they are found; synchronous, for worker threads."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from SimpleLLMFunc.assistant.words import WORDS
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import mask_known
from SimpleLLMFunc.storage import SqliteFile, transaction

_APPLICATION_ID = 0x534C4D45
"""In the header of our files: "SLME"."""

_MOST_MESSAGES: Final = 40
_MOST_WORDS: Final = 40
_HALF_LIFE: Final = 30 * 86_400.0
"""Seconds after which a text counts half."""

_WORD: Final = re.compile(r"[a-z0-9_]+|[^\W\d_a-z]+", re.IGNORECASE)
_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_COMMON: Final = frozenset(" ".join(WORDS["common words"]).split())

# None of the statements holds a semicolon.
_SCRIPT: Final = files("SimpleLLMFunc.assistant.memory").joinpath("tables.sql").read_text("utf-8")
_BASE: Final = tuple(_SCRIPT.rstrip(";\n").split(";"))

# `vector` stays empty: 1.0 kept vectors there.
_TEXTS: Final = (("messages", "content"), ("memories", "text"))
_TABLES = (*_BASE, *(f"CREATE VIRTUAL TABLE {table}_words USING fts5(words)" for table, _ in _TEXTS))


def _index_of_1_0(name: str, column: str) -> list[str]:
    """Return what kept another index in step with a table, in the files of 1.0."""
    row = f"{name}_text(rowid, text) VALUES (new.id, new.{column})"
    gone = f"{name}_text({name}_text, rowid, text) VALUES ('delete', old.id, old.{column})"
    return [
        f"CREATE VIRTUAL TABLE {name}_text USING fts5(text, tokenize = 'trigram', content = '')",
        f"CREATE TRIGGER {name}_new AFTER INSERT ON {name} BEGIN INSERT INTO {row}; END",
        f"CREATE TRIGGER {name}_old AFTER DELETE ON {name} BEGIN INSERT INTO {gone}; END",
    ]


_TABLES_OF_1_0 = (*_BASE, *(statement for text in _TEXTS for statement in _index_of_1_0(*text)))


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing that is known of a user.

    Attributes:
        type: fact, preference, plan, relation or other.
        source: the session it was drawn from.
        at: when, in seconds since the epoch.
    """

    type: str
    text: str
    source: str
    at: float


@dataclass(frozen=True, slots=True)
class Said:
    """One message."""

    id: int
    role: str
    content: str

    @property
    def message(self) -> dict[str, str]:
        """It as a message of a conversation."""
        return {"role": self.role, "content": self.content}


class MemoryFile:
    """Messages, memories and summaries of users, with an index (FTS5) of the words in the first two.

    A user is kept under the hash of the id: ids may hold anything, and the file does not tell them.

    Args:
        path: None for memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file = SqliteFile(
            path, application_id=_APPLICATION_ID, tables=_TABLES, older=[_TABLES_OF_1_0], unusable=self._unusable
        )

    def add_messages(self, user_id: str, session_id: str, messages: Sequence[tuple[str, str]], at: float) -> None:
        """Keep messages (role, content)."""
        with self._opened() as connection, transaction(connection):
            for role, content in messages:
                text = _plain(content)
                row = (_key(user_id), _plain(session_id), role, text, at)
                statement = "INSERT INTO messages (user, session, role, content, at) VALUES (?, ?, ?, ?, ?)"
                _index(connection, "messages", connection.execute(statement, row).lastrowid, text)

    def waiting(self, user_id: str, session_id: str) -> tuple[int, int]:
        """Return how many messages of the user wait for extraction, and how many of the session for a summary."""
        user, session = _key(user_id), _plain(session_id)
        rows = self._rows(
            "SELECT count(*) FROM messages WHERE user = ? AND extracted = 0 UNION ALL "
            "SELECT count(*) FROM messages WHERE user = ? AND session = ? AND id > coalesce("
            "(SELECT last_message FROM summaries WHERE user = ? AND session = ?), 0)",
            (user, user, session, user, session),
        )
        return rows[0][0], rows[1][0]

    def session(self, user_id: str, session_id: str) -> list[Said]:
        """Return the last messages of a session, the oldest first."""
        which = "user = ? AND session = ? ORDER BY id DESC LIMIT ?"
        return self._said(which, _key(user_id), _plain(session_id), _MOST_MESSAGES)[::-1]

    def not_extracted(self, user_id: str) -> list[Said]:
        """Return the messages that no memories were drawn from, the oldest first."""
        return self._said("user = ? AND extracted = 0 ORDER BY id LIMIT ?", _key(user_id), _MOST_MESSAGES)

    def _said(self, which: str, *values: object) -> list[Said]:
        rows = self._rows(f"SELECT id, role, content FROM messages WHERE {which}", values)  # noqa: S608 - our own words
        return [Said(*row) for row in rows]

    def messages_like(self, user_id: str, text: str, session_id: str, now: float, most: int) -> list[Said]:
        """Return messages of the user's other sessions that share words with a text, the best first."""
        rows = self._like(
            "messages", "id, role, content", text, now, most, "user = ? AND session != ?", user_id, session_id
        )
        return [Said(*row) for row in rows]

    def memories_like(self, user_id: str, text: str, now: float, most: int) -> list[str]:
        """Return memories of the user that share words with a text, the best first."""
        return [text for (text,) in self._like("memories", "text", text, now, most, "user = ?", user_id)]

    def _like(
        self, table: str, columns: str, text: str, now: float, most: int, condition: str, user_id: str, *others: str
    ) -> list[Any]:
        words = sorted(words_of(text), key=len, reverse=True)[:_MOST_WORDS]
        wanted = " OR ".join(f'"{word}"' for word in words)
        if not wanted:
            return []
        # FTS5 ranks by bm25, below 0 and the lower the better; an older text counts less.
        return self._rows(
            f"SELECT {columns} FROM {table}_words JOIN {table} ON id = {table}_words.rowid "  # noqa: S608 - our own names
            f"WHERE {table}_words MATCH ? AND {condition} ORDER BY rank / (1 + max(? - at, 0) / ?), id DESC LIMIT ?",
            (wanted, _key(user_id), *map(_plain, others), now, _HALF_LIFE, most),
        )

    def add_memories(self, user_id: str, memories: Sequence[Memory], last_id: int | None) -> int:
        """Keep memories that are not known yet, and note up to which message they were drawn; return how many are new.

        Where the messages are gone by now (`delete_user`), nothing is kept.
        """
        user, count = _key(user_id), 0
        with self._opened() as connection, transaction(connection):
            if last_id is not None:
                done = connection.execute(
                    "UPDATE messages SET extracted = 1 WHERE user = ? AND id <= ? AND extracted = 0", (user, last_id)
                )
                if done.rowcount == 0:
                    return 0
            known = [text for (text,) in connection.execute("SELECT text FROM memories WHERE user = ?", (user,))]
            for memory in memories:
                text = _plain(memory.text)
                if (before := same(text, known)) is not None:
                    statement = "UPDATE memories SET at = ? WHERE user = ? AND text = ?"
                    connection.execute(statement, (memory.at, user, before))
                    continue
                statement = "INSERT INTO memories (user, type, text, source, at) VALUES (?, ?, ?, ?, ?)"
                row = (user, memory.type, text, _plain(memory.source), memory.at)
                _index(connection, "memories", connection.execute(statement, row).lastrowid, text)
                known.append(text)
                count += 1
        return count

    def memories(self, user_id: str, most: int = -1) -> list[Memory]:
        """Return the memories of a user, the newest first."""
        rows = self._rows(
            "SELECT type, text, source, at FROM memories WHERE user = ? ORDER BY at DESC, id DESC LIMIT ?",
            (_key(user_id), most),
        )
        return [Memory(*row) for row in rows]

    def summaries(self, user_id: str, session_id: str, most: int) -> list[str]:
        """Return the summaries of the user's other sessions, the newest first."""
        rows = self._rows(
            "SELECT text FROM summaries WHERE user = ? AND session != ? ORDER BY at DESC LIMIT ?",
            (_key(user_id), _plain(session_id), most),
        )
        return [text for (text,) in rows]

    def set_summary(self, user_id: str, session_id: str, text: str, last_id: int, at: float) -> None:
        """Keep the summary of a session in place of the one before, unless its messages are gone by now."""
        user, session = _key(user_id), _plain(session_id)
        self._rows(
            "INSERT OR REPLACE INTO summaries (user, session, text, last_message, at) "
            "SELECT ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM messages WHERE id = ? AND user = ?)",
            (user, session, _plain(text), last_id, at, last_id, user),
        )

    def delete_user(self, user_id: str) -> None:
        """Remove everything about a user, from the pages of the file too."""
        user = _key(user_id)
        with self._opened() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            with transaction(connection):
                for table in ("messages", "memories"):
                    own = f"SELECT id FROM {table} WHERE user = ?"  # noqa: S608 - our own names
                    connection.execute(f"DELETE FROM {table}_words WHERE rowid IN ({own})", (user,))  # noqa: S608
                    # An index only marks what is deleted, until its parts are merged.
                    connection.execute(f"INSERT INTO {table}_words({table}_words) VALUES ('optimize')")  # noqa: S608
                for table in ("messages", "memories", "summaries"):
                    connection.execute(f"DELETE FROM {table} WHERE user = ?", (user,))  # noqa: S608
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.close()

    def _rows(self, statement: str, values: Sequence[object]) -> list[Any]:
        with self._opened() as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._file.lock:
            try:
                connection = self._file.connection()
                _renew_index(connection)
                yield connection
            except sqlite3.Error as error:
                raise self._unusable(f"{type(error).__name__}: {error}") from error

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(f"the memory {str(self._path)!r} cannot be used: {why}. Give SqliteMemory another path.")


def _renew_index(connection: sqlite3.Connection) -> None:
    """Give a file of 1.0 the index of today."""
    is_old = "SELECT 1 FROM sqlite_master WHERE name = 'messages_text'"
    if connection.execute(is_old).fetchone() is None:
        return
    with transaction(connection):
        if connection.execute(is_old).fetchone() is None:
            return  # another process was faster
        for table, column in _TEXTS:
            for old in (f"TRIGGER {table}_new", f"TRIGGER {table}_old", f"TABLE {table}_text"):
                connection.execute(f"DROP {old}")
            connection.execute(f"CREATE VIRTUAL TABLE {table}_words USING fts5(words)")
            for row in connection.execute(f"SELECT id, {column} FROM {table}").fetchall():  # noqa: S608 - our own names
                _index(connection, table, *row)


def _index(connection: sqlite3.Connection, table: str, row: int | None, text: str) -> None:
    """Let a row be found by the words of its text."""
    words = " ".join(words_of(text))
    connection.execute(f"INSERT INTO {table}_words (rowid, words) VALUES (?, ?)", (row, words))  # noqa: S608 - our own


def _key(user_id: str) -> bytes:
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).digest()


def _plain(text: str) -> str:
    """Return text as it is kept: the secrets of this process masked, and what SQLite keeps whole: no lone surrogates, no NUL."""
    return mask_known(text).encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


# --- words ---


def words_of(text: str) -> list[str]:
    """Return what two texts can share: words, and pairs of characters where a script has no spaces."""
    found: dict[str, None] = {}
    for word in _WORD.findall(text.casefold()):
        if len(word) == 1 or not _CJK.search(word):
            found[word] = None
        else:
            found |= dict.fromkeys(word[start : start + 2] for start in range(len(word) - 1))
    return [word for word in found if word not in _COMMON]


def same(text: str, known: Iterable[str]) -> str | None:
    """Return the first known text that says the same in nearly the same words, None if no text does."""
    own, own_words = _normalized(text), set(words_of(text))
    for each in known:
        if _normalized(each) == own:
            return each
        others = set(words_of(each))
        # Digits decide: "lives at number 5" and "lives at number 6" are two facts.
        if _digits(each) == _digits(text) and len(own_words & others) >= 0.85 * max(len(own_words | others), 1):
            return each
    return None


def _normalized(text: str) -> str:
    return "".join(_WORD.findall(text.casefold()))


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", text)
