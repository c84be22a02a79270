"""Stores of the memory protocol, for the tests of the assistant."""

from __future__ import annotations

import asyncio


class Memories:
    """Keeps what it is told in lists; sync, as the protocol allows.

    Attributes:
        asked, kept, deleted: what each method was given.
    """

    def __init__(self, recalled: object = "") -> None:
        self.recalled = recalled
        self.asked: list[tuple[str, str, str]] = []
        self.kept: list[tuple[str, str, str, str]] = []
        self.deleted: list[str] = []

    def recall(self, user_id: str, message: str, session_id: str) -> object:
        self.asked.append((user_id, message, session_id))
        return self.recalled

    def remember(self, user_id: str, message: str, answer: str, session_id: str) -> None:
        self.kept.append((user_id, message, answer, session_id))

    def delete_user(self, user_id: str) -> None:
        self.deleted.append(user_id)


class HangingMemories:
    """Never answers."""

    async def recall(self, *asked: str) -> str:
        await asyncio.Event().wait()
        return ""

    remember = delete_user = recall
