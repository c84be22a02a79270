"""The batches of a map in its checkpoint: those under way, and the answers.

So a restart finds its batches again and asks for nothing twice. Without a checkpoint there is a temporary file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.batch.checkpoint.row_file import BATCH_TABLES, RowFile, marks
from SimpleLLMFunc.errors import CheckpointError
from SimpleLLMFunc.logger import mask_known
from SimpleLLMFunc.storage import SqliteFile, checksum_of, transaction

_APPLICATION_ID_OF_1_0 = 0x534C4242
"""In the header of the second file that 1.0 kept for a checkpoint: "SLBB"."""


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch whose answers were not fetched yet.

    Attributes:
        tag: our name of it.
        id: the service's, None where it is not known whether it was begun.
        file: the service's id of its requests.
    """

    tag: str
    id: str | None
    file: str | None


@dataclass(frozen=True, slots=True)
class KeptLine:
    """A line of answers.

    Attributes:
        place: of the row in the input when it was asked.
        is_good: the request succeeded.
    """

    key: bytes
    mode: OutputMode
    place: int
    is_good: bool
    line: bytes


class AnswerStore:
    """Keeps batches and answers; its methods wait for the disk.

    Args:
        file: of the checkpoint, open.
    """

    def __init__(self, file: RowFile) -> None:
        self._file = file

    @classmethod
    def temporary(cls, folder: Path) -> AnswerStore:
        """Return one in a file that ends with its folder."""
        file = RowFile(folder / "answers.sqlite", None, "coerce", "the temporary file of the batches")
        file.open()
        return cls(file)

    def take_over(self, path: Path) -> None:
        """Import the second file that 1.0 kept for a checkpoint, and remove it."""
        if not path.exists():
            return

        def unusable(why: str) -> CheckpointError:
            return CheckpointError(
                f"the file of the batches, {str(path)!r}, cannot be used: {why}. Move it away to ask for all rows again."
            )

        old = SqliteFile(path, application_id=_APPLICATION_ID_OF_1_0, tables=BATCH_TABLES, unusable=unusable)
        with self._file.connection("written") as connection:
            old.connection()  # whether it is one of ours
            old.close()
            connection.execute("ATTACH ? AS old", (str(path),))
            try:
                with transaction(connection):
                    for table in ("batches", "requests", "answers"):
                        connection.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM old.{table}")  # noqa: S608
            finally:
                connection.execute("DETACH old")
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    # --- batches -----------------------------------------------------------------------------------------

    def open_batches(self, address: str, has_id: bool) -> list[OpenBatch]:
        """Return the batches of this service whose answers are not here yet, with an id or without; the oldest first."""
        statement = "SELECT tag, id, file FROM batches WHERE address = ? AND (id IS NOT NULL) = ? ORDER BY rowid"
        return [OpenBatch(*row) for row in self._file.query(statement, (address, has_id))]

    def begin(self, tag: str, address: str, requests: Sequence[tuple[bytes, OutputMode]]) -> None:
        """Note that a batch with these requests is about to be sent."""
        with self._file.changing() as connection:
            connection.execute("INSERT INTO batches (tag, address) VALUES (?, ?)", (tag, address))
            connection.executemany(
                "INSERT OR REPLACE INTO requests (key, tag, mode) VALUES (?, ?, ?)",
                ((key, tag, mode) for key, mode in requests),
            )

    def sent(self, tag: str, batch_id: str | None, file_id: str | None) -> None:
        """Note what the service calls a batch and the file of its requests, as far as they are there."""
        with self._file.changing() as connection:
            statement = "UPDATE batches SET id = coalesce(?, id), file = coalesce(?, file) WHERE tag = ?"
            connection.execute(statement, (batch_id, file_id, tag))

    def end(self, tag: str, lines: Iterable[KeptLine] = ()) -> None:
        """Keep the answers of a batch, and forget the batch; its other requests are not under way any more."""
        with self._file.changing() as connection:
            self._keep(connection, lines)
            connection.execute("DELETE FROM requests WHERE tag = ?", (tag,))
            connection.execute("DELETE FROM batches WHERE tag = ?", (tag,))

    def requests_of(self, tag: str) -> dict[bytes, OutputMode]:
        """Return the keys of the requests in a batch, and how each was asked."""
        return dict(self._file.query("SELECT key, mode FROM requests WHERE tag = ?", (tag,)))

    # --- answers -----------------------------------------------------------------------------------------

    def keep(self, lines: Iterable[KeptLine]) -> None:
        """Keep lines of answers; of two with one key a success counts, and else the first."""
        with self._file.changing() as connection:
            self._keep(connection, lines)

    @staticmethod
    def _keep(connection: sqlite3.Connection, lines: Iterable[KeptLine]) -> None:
        connection.executemany(
            "INSERT INTO answers (key, mode, place, is_good, line, checksum) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET mode = excluded.mode, place = excluded.place, "
            "is_good = excluded.is_good, line = excluded.line, checksum = excluded.checksum "
            "WHERE excluded.is_good > answers.is_good",
            (
                (line.key, line.mode, line.place, int(line.is_good), text, checksum_of(line.key, text))
                for line in lines
                for text in (mask_known(line.line.decode("utf-8", "replace")).encode(),)
            ),
        )

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return those keys whose request is under way or has a good answer."""
        found = self._file.query(
            f"SELECT key FROM answers WHERE is_good AND key IN ({marks(keys)}) "  # noqa: S608 - question marks
            f"UNION SELECT key FROM requests WHERE key IN ({marks(keys)})",
            (*keys, *keys),
        )
        return {key for (key,) in found}

    def places(self) -> list[tuple[int, bytes, OutputMode]]:
        """Return place, key and mode of every line, in the order of the places."""
        return self._file.query("SELECT place, key, mode FROM answers ORDER BY place, key")

    def line(self, key: bytes) -> KeptLine | None:
        """Return the answer of a request, the first one whose key begins like this; or None.

        Raises:
            CheckpointError: it is not as it was written.
        """
        columns = "key, mode, place, is_good, line, checksum"
        found = self._file.query(f"SELECT {columns} FROM answers WHERE key >= ? ORDER BY key LIMIT 1", (key,))  # noqa: S608
        if not found or not found[0][0].startswith(key):
            return None
        *kept, checksum = found[0]
        line = KeptLine(*kept)
        if checksum != checksum_of(line.key, line.line):
            raise CheckpointError(
                f"an answer of a batch in {str(self._file.path)!r} is not as it was written. Put a copy in its place, or "
                "give another path."
            )
        return line

    def forget_used(self) -> None:
        """Forget answers without a value, so that these rows are asked again, and those of rows that are finished."""
        with self._file.changing() as connection:
            connection.execute("DELETE FROM answers WHERE NOT is_good OR key IN (SELECT key FROM rows)")

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.file.close()
