"""Replies read: blocks and parts; and for all wires: server-sent events, their judgement, the pieces put together; pure."""

__all__ = ["blocks", "delta_assembly", "events", "parts", "reasoning_text"]  # for other rooms
