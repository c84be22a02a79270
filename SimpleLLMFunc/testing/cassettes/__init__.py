"""Cassettes: real exchanges recorded once, at the level of messages, and replayed for ever."""
