"""The blocks of the wire ``/v1/messages``: a conversation and schemas written for it, replies read from blocks; pure."""

from __future__ import annotations

__all__ = ["history", "reply", "schema"]  # for other rooms
