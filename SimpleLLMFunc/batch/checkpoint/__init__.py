"""Finished rows on disk: what a rerun goes on from. One SQLite file, one writer, every row found by a hash of its question."""

from __future__ import annotations

from SimpleLLMFunc.batch.checkpoint.checkpoint import Checkpoint, CheckpointStatus, VersionStatus
from SimpleLLMFunc.batch.checkpoint.codec import (
    asks_again,
    decode_error,
    decode_given,
    decode_usage,
    decode_value,
    encode_answer,
    encode_error,
)
from SimpleLLMFunc.batch.checkpoint.keyed import KeyedRow, RowKeys
from SimpleLLMFunc.batch.checkpoint.row_file import BATCH_TABLES, FORMAT, RowFile
from SimpleLLMFunc.batch.checkpoint.store import Store
from SimpleLLMFunc.batch.checkpoint.stored_row import Found, Record, StoredRow
from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock
from SimpleLLMFunc.storage import KEY_BYTES, canonical, key_of, version_of

__all__ = [
    "BATCH_TABLES",
    "FORMAT",
    "KEY_BYTES",
    "Checkpoint",
    "CheckpointStatus",
    "Found",
    "KeyedRow",
    "Record",
    "RowFile",
    "RowKeys",
    "Store",
    "StoredRow",
    "VersionStatus",
    "WriterLock",
    "asks_again",
    "canonical",
    "decode_error",
    "decode_given",
    "decode_usage",
    "decode_value",
    "encode_answer",
    "encode_error",
    "key_of",
    "version_of",
]
