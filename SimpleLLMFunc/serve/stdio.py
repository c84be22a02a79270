"""stdin and stdout reserved for a protocol."""

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
    """Reserve stdin and stdout for the protocol, and yield them as file descriptors.

    Inside the block every print goes to stderr, and stdin is empty for the loaded module, for tools and for the processes
    that they start.
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
        # `reading` stays open: a thread may still read from it, and no other file may get its number.
        sys.stdout.flush()
        _use(reading, writing)
        os.close(writing)
        os.close(nothing)


def _use(stdin: int, stdout: int) -> None:
    for number, file in enumerate((stdin, stdout)):
        os.dup2(file, number)  # trick: a process that a tool starts prints to descriptor 1, not to sys.stdout


class Lines:
    """An async iterator over the lines of a file descriptor; make it inside the event loop that reads them.

    A daemon thread reads: unlike a thread of a pool, it blocks neither a cancellation nor the end of the process.

    Attributes:
        ended: done when the reader has seen the end.
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
        """End the iteration; later lines are not read."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        pending = bytearray()
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the loop is closed
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
    """Writes texts to a file descriptor in a thread; a reader that has left is not an error."""

    descriptor: int

    async def write(self, text: str) -> None:
        """Write all of the text."""
        await in_thread(self._write, text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        """Do nothing: `write` does not buffer."""

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # stdin will end too, which stops the server
            while left:
                left = left[os.write(self.descriptor, left) :]
