"""stdin and stdout for a protocol: nothing else may read from the one or write to the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass

from SimpleLLMFunc.runtime import in_thread

__all__ = ["Lines", "Printer", "protocol_streams"]


@contextlib.contextmanager
def protocol_streams() -> Generator[tuple[int, int], None, None]:
    """Take stdin and stdout away from everybody else, and yield the two for the protocol, as file descriptors.

    Meanwhile whoever prints, prints to stderr, and whoever reads from stdin finds it empty: the module that is
    loaded, a function's tools, and processes that they start.
    """
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    with _opened(os.O_RDONLY) as nothing:
        os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        with _opened(os.O_WRONLY) as nowhere:
            os.dup2(nowhere, 1)
    try:
        yield reading, writing
    finally:
        # `reading` stays open: a thread may still wait at it, and another file must not come to bear its number.
        sys.stdout.flush()
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(writing)


@contextlib.contextmanager
def _opened(flags: int) -> Generator[int, None, None]:
    descriptor = os.open(os.devnull, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Lines:
    """The lines that arrive at a file descriptor, until its end; made inside the loop that reads them.

    A daemon thread waits for them: unlike one of a pool, it holds up neither a cancellation nor the end of the process.

    Attributes:
        ended: done when the reader has been told that there are no more.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="SimpleLLMFunc-stdin", daemon=True).start()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            if not self.ended.done():
                self.ended.set_result(None)
            raise StopAsyncIteration
        return line

    def end(self) -> None:
        """Let the lines end here; what still arrives is not read."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        pending = bytearray()
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the loop is closed, nobody reads any more
            while data := os.read(self._descriptor, 65536):
                *whole, rest = data.split(b"\n")
                for part in whole:
                    pending += part
                    self._give(bytes(pending))
                    pending.clear()
                pending += rest
            if pending:
                self._give(bytes(pending))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _give(self, line: bytes) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line.decode("utf-8", "replace") + "\n")


@dataclass(frozen=True, slots=True)
class Printer:
    """Writes texts to a file descriptor without holding up the loop; a reader that has gone away is no error."""

    descriptor: int

    async def write(self, text: str) -> None:
        """Write all of the text."""
        await in_thread(self._write, text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # the end of stdin tells the server, in a moment
            while left:
                left = left[os.write(self.descriptor, left) :]
