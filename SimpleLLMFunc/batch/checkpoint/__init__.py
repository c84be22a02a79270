"""Finished rows on disk, so that a rerun continues. One SQLite file, one writer; a hash of the question finds a row."""

__all__ = ["checkpoint", "codec", "row_file", "store", "writer_lock"]
