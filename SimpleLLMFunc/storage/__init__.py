"""What is kept in files: how a SQLite file is opened, marked as ours and shared, and by what a kept thing is found again.

The cache, checkpoints, journals, traces and the assistant's memory stand on it.
"""

from __future__ import annotations

from SimpleLLMFunc.storage.keys import KEY_BYTES, canonical, key_of, plain_text, version_of
from SimpleLLMFunc.storage.sqlite_file import (
    Schema,
    SqliteFile,
    check_schema,
    identity_of,
    is_damage,
    made_by,
    schema_of,
    transaction,
)

__all__ = [
    "KEY_BYTES",
    "Schema",
    "SqliteFile",
    "canonical",
    "check_schema",
    "identity_of",
    "is_damage",
    "key_of",
    "made_by",
    "plain_text",
    "schema_of",
    "transaction",
    "version_of",
]
