"""Decompression of response bodies: incremental, in bounded pieces."""

from __future__ import annotations

import zlib

CODINGS = "gzip, deflate"
"""What a request says that it can read."""

_GZIP = 16 + zlib.MAX_WBITS
_LARGEST_PIECE = 1024 * 1024
_DEFLATE_METHOD = 8


class Unpacker:
    """Unpacks one body. A kilobyte may hold a megabyte, so that no call gives out more than one.

    Args:
        coding: ``gzip``, or ``deflate`` with its envelope or, as some servers send it, without.
    """

    __slots__ = ("_coding", "_is_full", "_packed", "_stream")

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._packed = b""
        self._is_full = False
        self._stream: zlib._Decompress | None = None

    @property
    def has_more(self) -> bool:
        """Whether something that was fed waits to be unpacked."""
        return self._is_full or bool(self._packed)

    @property
    def is_amid(self) -> bool:
        """Whether the body cannot end here."""
        return self._stream is not None and not self._stream.eof

    def feed(self, packed: bytes) -> bytes:
        """Take the next bytes and return what they hold, or the beginning of it: as long as `has_more`, feed nothing.

        Raises:
            ValueError: they are not packed that way.
        """
        packed = self._packed + packed
        if not self._is_full and not packed:
            return b""
        if self._stream is None or (self._stream.eof and packed):  # a gzip body may be several, one after the other
            self._stream = zlib.decompressobj(self._window(packed[0]))
        try:
            piece = self._stream.decompress(packed, _LARGEST_PIECE)
        except zlib.error as error:
            raise ValueError(f"it says that it is packed with {self._coding}, and is not") from error
        self._is_full = len(piece) == _LARGEST_PIECE and not self._stream.eof
        self._packed = self._stream.unconsumed_tail or self._stream.unused_data
        return piece

    def _window(self, first: int) -> int:
        deflate = zlib.MAX_WBITS if first & 0xF == _DEFLATE_METHOD else -zlib.MAX_WBITS
        return deflate if self._coding == "deflate" else _GZIP


def unpacker_for(coding: str) -> Unpacker | None:
    """Return what unpacks a body with this Content-Encoding; None where it is to be read as it is.

    Unknown names (some servers write ``utf-8``) leave the body unchanged; the JSON decoder reports a body that is not JSON.
    """
    name = coding.strip().lower().removeprefix("x-")
    return Unpacker(name) if name in {"gzip", "deflate"} else None
