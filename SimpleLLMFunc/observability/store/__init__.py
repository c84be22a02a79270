"""The trace store: every run in one SQLite file, written beside the calls and never in their way; and what reads it."""
