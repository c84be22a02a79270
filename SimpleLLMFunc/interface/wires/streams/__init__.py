"""Replies read: blocks, items, parts and chunks, whole or as server-sent events, and the pieces put together; pure."""

__all__ = ["blocks", "chunk_reader", "delta_assembly", "items", "parts", "reasoning_text", "sse"]  # for other rooms
