"""Bytes to server-sent events: incremental, pure, indifferent to where the bytes were cut.

Source: WHATWG HTML, section 9.2.6 "Interpreting an event stream", with one leniency: an event that the end of
the stream cut off before its blank line is still handed out by `close`, for the reader to judge.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_GARBLED = b'"choices"'


class ServerSentEvent(NamedTuple):
    """One event.

    Attributes:
        data: the data lines joined with newlines, still UTF-8 bytes: a JSON decoder reads them as they are.
        event: the event's type, empty where none was given.
    """

    data: bytes
    event: str = ""

    @property
    def text(self) -> str:
        """The data as text; bytes that are not UTF-8 are replaced."""
        return self.data.decode("utf-8", "replace")


class EventDecoder:
    """Collects bytes, in pieces of any size, and gives out the events that they complete.

    Only CR, LF and CRLF end a line: other characters that Python calls line ends (U+2028, U+0085 …) are data.
    Comments are dropped. The work is linear in the number of bytes, however they are cut.
    """

    __slots__ = ("_at_start", "_data", "_event", "_line", "_skip_newline", "_start")

    def __init__(self) -> None:
        self._line: list[bytes] | None = None
        self._data: list[bytes] | None = None
        self._event = ""
        self._skip_newline = False
        self._start = b""
        self._at_start = True

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that are complete now, in order."""
        events: list[ServerSentEvent] = []
        if self._at_start:
            piece = self._without_bom(piece)
        for line in self._lines(piece):
            if line:
                self._field(line)
            elif self._data:
                events.append(self._dispatch(self._data))
            else:
                self._event = ""
        return events

    def _lines(self, piece: bytes) -> list[bytes]:
        """Return the lines that are complete with the next bytes; the rest waits."""
        if self._skip_newline and piece:
            # The line had ended with a CR; the LF of a CRLF came with the next piece.
            self._skip_newline = False
            piece = piece.removeprefix(b"\n")
        if not piece:
            return []
        if b"\n" not in piece and b"\r" not in piece:
            self._line = self._line or []
            self._line.append(piece)
            return []
        if self._line:
            self._line.append(piece)
            piece = b"".join(self._line)
            self._line = None
        # bytes.splitlines knows CR, LF and CRLF only, which is what the protocol wants.
        lines = piece.splitlines()
        if piece.endswith(b"\r"):
            self._skip_newline = True
        elif not piece.endswith(b"\n"):
            self._line = [lines.pop()]
        return lines

    def close(self) -> ServerSentEvent | None:
        """Return the event that the end of the stream cut off, None where nothing was pending."""
        if self._line:
            line = b"".join(self._line)
            self._line = None
            self._field(line)
        return self._dispatch(self._data) if self._data else None

    def _dispatch(self, lines: list[bytes]) -> ServerSentEvent:
        data = lines[0] if len(lines) == 1 else b"\n".join(lines)
        event = ServerSentEvent(data, self._event)
        self._data = None
        self._event = ""
        return event

    def _field(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._add(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            value = line[6:]
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")
        elif line == b"data":
            self._add(b"")
        elif line == b"event":
            self._event = ""
        elif _GARBLED in line:
            # Its name is damaged, but this was a piece of an answer: the reader shall see that something is wrong.
            self._add(line)
        # Comments (": …"), "id" and "retry" say nothing to a reader that never reconnects.

    def _add(self, data: bytes) -> None:
        if self._data is None:
            self._data = [data]
        else:
            self._data.append(data)

    def _without_bom(self, piece: bytes) -> bytes:
        start = self._start + piece
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = b""
        self._at_start = False
        return start.removeprefix(_BOM)
