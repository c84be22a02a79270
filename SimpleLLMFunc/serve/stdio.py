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


@contextlib.contextmanager
def protocol_streams() -> Generator[tuple[int, int], None, None]:
    """Keep stdin and stdout for the protocol, and yield the two as file descriptors.

    Meanwhile every print goes to stderr, and stdin is empty for the loaded module, for tools and for processes that they
    start.
    """
    sys.stdout.flush()
    reading, writing, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    try:
        os.fstat(2)
        printed = 2
    except OSError:  # there is no stderr
        printed = nothing
    _use(nothing, printed)
    try:
        yield reading, writing
    finally:
        # `reading` stays open: a thread may still wait at it, and no other file may get its number.
        sys.stdout.flush()
        _use(reading, writing)
        os.close(writing)
        os.close(nothing)


def _use(stdin: int, stdout: int) -> None:
    for number, file in enumerate((stdin, stdout)):
        os.dup2(file, number)  # trick: a process that a tool starts prints to descriptor 1, whatever sys.stdout is


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
