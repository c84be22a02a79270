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

    Attributes:
        bare: lines of JSON that came without being an event: Gemini may end a stream with an error in this way.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []  # the pieces of the line that is not complete
        self._data: list[bytes] = []
        self._event = ""
        self._is_after_cr = False
        self._is_first = True
        self.bare: list[bytes] = []

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that are complete now, in order."""
        if self._is_after_cr and piece:
            piece = piece.removeprefix(b"\n")  # the LF of a CRLF that was cut in two
            self._is_after_cr = False
        if not piece:
            return []
        self._is_after_cr = piece.endswith(b"\r")
        *ended, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[ServerSentEvent] = []
        for end in ended:
            line = b"".join([*self._line, end])
            self._line = []
            if line:
                self._field(line)
            else:
                events += filter(None, [self._dispatch()])
        self._line.append(rest)
        return events

    def close(self) -> ServerSentEvent | None:
        """Return the event that the end of the stream cut off, None where nothing was pending."""
        self._field(b"".join(self._line))
        self._line = []
        return self._dispatch()

    def _dispatch(self) -> ServerSentEvent | None:
        event = ServerSentEvent(b"\n".join(self._data), self._event) if self._data else None
        self._data, self._event = [], ""
        return event

    def _field(self, line: bytes) -> None:
        if self._is_first:
            line = line.removeprefix(_BOM)
            self._is_first = False
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif _GARBLED in line:
            # Its name is damaged, but this was a piece of an answer: the reader shall see that something is wrong.
            self._data.append(line)
        elif self.bare or line.lstrip(b" \t").startswith(b"{"):
            self.bare.append(line)
        # Comments (": …"), "id" and "retry" say nothing to a reader that never reconnects.
