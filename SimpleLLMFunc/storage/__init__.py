"""How the library opens a database: one SQLite file, opened at first use, marked as ours, shared by threads and processes.

The cache, checkpoints, traces and the assistant's memory stand on it.
"""

from __future__ import annotations

from SimpleLLMFunc.storage.sqlite_file import SqliteFile, is_damage, transaction

__all__ = ["SqliteFile", "is_damage", "transaction"]
