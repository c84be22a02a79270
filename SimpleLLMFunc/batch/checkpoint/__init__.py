"""Finished rows on disk: what a rerun goes on from. One SQLite file, one writer, every row found by a hash of its question."""

__all__ = ["checkpoint", "codec", "keyed", "row_file", "store", "stored_row", "writer_lock"]
