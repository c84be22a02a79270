"""The parts of the wire ``generateContent``: a conversation written in parts, replies read from them; pure."""

from __future__ import annotations

__all__ = ["history", "reply"]  # for other rooms
