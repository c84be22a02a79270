"""SQLite files that are opened, marked as ours and shared, and the keys of what they hold.

The cache, checkpoints, journals, traces and the assistant's memory stand on it.
"""

from SimpleLLMFunc.storage.keys import KEY_BYTES, canonical, checksum_of, key_of, plain_text, version_of
from SimpleLLMFunc.storage.sqlite_file import (
    Schema,
    SqliteFile,
    check_schema,
    is_damage,
    schema_of,
    transaction,
    used_bytes,
)

__all__ = [
    "KEY_BYTES", "Schema", "SqliteFile", "canonical", "check_schema", "checksum_of", "is_damage", "key_of",
    "plain_text", "schema_of", "transaction", "used_bytes", "version_of",
]  # fmt: skip
