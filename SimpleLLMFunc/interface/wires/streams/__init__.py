"""What the wires share to read a stream: server-sent events, the pieces put together, reasoning in the text; pure."""

from __future__ import annotations

__all__ = ["chunk_reader", "delta_assembly", "reasoning_text", "sse"]  # for other rooms
