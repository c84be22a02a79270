"""Cassettes: real exchanges recorded once, at the level of messages, and replayed for ever."""

from __future__ import annotations

from SimpleLLMFunc.testing.cassettes.cassette import Cassette, RecordMode, use_cassette

__all__ = ["Cassette", "RecordMode", "use_cassette"]
