"""Rows in: iterables, files, data frames; each with its place, in small pieces, no faster than they are used."""

__all__ = ["arguments", "arrow", "columns", "feed", "frames", "rows", "rows_again", "text_files"]
