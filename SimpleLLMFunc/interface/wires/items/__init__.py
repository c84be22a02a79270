"""The items of the wire ``/v1/responses``: a conversation written in items, replies read from them; pure."""

from __future__ import annotations

__all__ = ["history", "reply"]  # for other rooms
