"""Rows in: iterables, files, data frames; each with its place, in small pieces, no faster than they are used."""
