"""Finished rows on disk: what a rerun goes on from. One SQLite file, one writer, every row found by a hash of its question."""
