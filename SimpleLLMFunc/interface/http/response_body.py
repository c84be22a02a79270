"""A reply on its way: what its connection has read, for who asked to take."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from SimpleLLMFunc.interface.http.content_decoding import Unpacker, unpacker_for
from SimpleLLMFunc.interface.http.wire_errors import BodyBroken, Disconnected
from SimpleLLMFunc.runtime import Waiter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from SimpleLLMFunc.interface.http.connection import Connection

__all__ = ["Incoming"]

_MOST_WAITING = 256 * 1024


class Incoming:
    """A reply on its way.

    Attributes:
        status: 0 until the head has come.
        headers: by lower-case name.
        is_whole: the body has come to its end; the connection serves others by now.
        error: why no more will come.
        size: bytes that wait to be read.
    """

    __slots__ = ("_connection", "_pieces", "_unpacker", "_waiter", "error", "headers", "is_whole", "size", "status")

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.is_whole = False
        self.size = 0
        self.error: Exception | None = None
        self._connection = connection
        self._pieces: list[bytes] = []
        self._unpacker: Unpacker | None = None
        self._waiter: Waiter | None = None

    # --- for who reads -----------------------------------------------------------------------------------

    def news(self) -> Waiter:
        """Return what is done when something has come or will never come; one waits at a time."""
        self._waiter = waiter = Waiter(asyncio.get_running_loop())
        return waiter

    def take(self) -> bytes | None:
        """Return what has come of the body, empty at its end; None where more is to be waited for.

        Raises:
            BodyBroken: no more will come, or what came is not packed as it says.
            Exception: whatever ended the connection.
        """
        if self._unpacker is not None:
            return self._unpacked(self._unpacker)
        if self._pieces:
            return self._taken()
        return self._end()

    @property
    def is_checked(self) -> bool:
        """Whether what was taken stands as it is: amid what is packed, its end, which holds a checksum, may still deny it."""
        return self._unpacker is None or not self._unpacker.is_amid

    def close(self) -> None:
        """Close the connection where the body has not come to its end; whoever still waits for it hears of that."""
        if not self.is_whole and self.error is None:
            self._connection.fail(Disconnected("the connection was closed"))

    def _end(self) -> bytes | None:
        if self.is_whole:
            return b""
        if self.error is not None:
            raise self.error
        return None

    def _taken(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        if self.size > _MOST_WAITING and not self.is_whole:
            self._connection.go_on()
        self.size = 0
        return data

    def _unpacked(self, unpacker: Unpacker) -> bytes | None:
        while unpacker.has_more or self._pieces:
            packed = b"" if unpacker.has_more else self._taken()
            try:
                piece = unpacker.feed(packed)
            except ValueError as error:
                raise BodyBroken(str(error)) from error
            if piece:
                return piece
        end = self._end()
        if end is not None and unpacker.is_amid:
            raise BodyBroken("the body broke off: what it packs is not whole")
        return end

    # --- for the connection ------------------------------------------------------------------------------

    def begin(self, status: int, headers: dict[str, str]) -> None:
        """Take the head."""
        self.status = status
        self.headers = headers
        coding = headers.get("content-encoding")
        if coding is not None:
            self._unpacker = unpacker_for(coding)

    def add(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(piece)
        self.size += len(piece)

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be read that no more shall come."""
        return self.size > _MOST_WAITING

    def wake(self) -> None:
        """Tell who waits."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            waiter.wake()
