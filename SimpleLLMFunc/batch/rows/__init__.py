"""Rows in: iterables, files, data frames, read in small pieces and no faster than the map needs them."""

__all__ = ["arguments", "arrow", "feed", "rows", "tables"]
