"""How the library opens a database: one SQLite file, opened at first use, marked as ours, shared by threads and processes.

The cache, checkpoints, traces and the assistant's memory stand on it.
"""

from __future__ import annotations

from SimpleLLMFunc.storage.sqlite_file import (
    Schema,
    SqliteFile,
    check_schema,
    is_damage,
    made_by,
    schema_of,
    transaction,
)

__all__ = ["Schema", "SqliteFile", "check_schema", "is_damage", "made_by", "schema_of", "transaction"]
