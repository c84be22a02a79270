"""The growing conversation of one session, the files that came with its questions, and the sessions that are kept."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import tempfile
import time
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.llm_decorator.steps.chat.message import filter_history_messages
from SimpleLLMFunc.runtime import ForkSafeLock
from SimpleLLMFunc.type import MAX_FILE_BYTES, ContentPart, File, ImgPath, ImgUrl, Message

_UNSAFE = re.compile(r"[^\w.\- ]+")


class ContextBuilder:
    """The conversation of one session: the system's instructions, then what was said.

    Args:
        system_prompt: the first message; empty for none.
        history: what was said before; only messages of user, assistant and tool are taken, calls with their results.
    """

    def __init__(self, system_prompt: str = "", history: Sequence[Message] = ()) -> None:
        self.system_prompt = system_prompt
        self._said: list[Message] = filter_history_messages(copied(history), "assistant") if history else []

    def build_context(self, user_input: str | list[ContentPart]) -> list[Message]:
        """Return the conversation with a new message of the user; nothing is kept of it yet."""
        asked: Message = {"role": "user", "content": user_input}
        return [*self._head(), *filter_history_messages(copied(self._said), "assistant"), *copied([asked])]

    def get_conversation_history(self) -> list[Message]:
        """Return a copy of the conversation so far, the system's instructions first."""
        return self._head() + copied(self._said)

    def _head(self) -> list[Message]:
        return [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []

    def add(self, *messages: Message) -> None:
        """Let the conversation grow by `messages`."""
        self._said += copied(messages)

    def update_context_with_tool_result(self, tool_name: str, tool_result: str, tool_call_id: str) -> None:
        """Let the conversation grow by what a tool returned, as the answer to the call of that id.

        A result whose call does not stand before it is left out of what is sent, with a warning: providers refuse it.
        """
        del tool_name  # the call has it
        self._said.append({"role": "tool", "tool_call_id": tool_call_id, "content": tool_result})


@dataclass(slots=True)
class DialogueSession:
    """One session.

    Attributes:
        session_id: given by the caller, or drawn.
        context: what was said.
        used: when it was used last, by the monotonic clock.
        attachments: its files; closed when the session goes.
    """

    session_id: str
    context: ContextBuilder
    used: float
    attachments: SessionFiles | None = None

    def close(self) -> None:
        """Remove the files of the session."""
        if self.attachments is not None:
            self.attachments.close()


@dataclass(eq=False, kw_only=True)
class DialogueSessions:
    """The sessions of an assistant; those unused for long and those too many are forgotten.

    A session is found by who asks and by its id, so knowing an id is not enough to read on in another user's session.

    Attributes:
        most: how many are kept; the one unused longest goes first.
        seconds: how long an unused one is kept.
        clock: for tests.
    """

    most: int = 1000
    seconds: float = 86_400.0
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[tuple[str, str], DialogueSession] = field(default_factory=OrderedDict)
    _lock: ForkSafeLock = field(default_factory=ForkSafeLock)

    def find(self, owner: str, session_id: str) -> DialogueSession | None:
        """Return the session if it is kept, and count it as used now."""
        now = self.clock()
        with self._lock:
            self._forget(now)
            session = self._kept.get((owner, session_id))
            if session is not None:
                session.used = now
                self._kept.move_to_end((owner, session_id))
            return session

    def add(self, owner: str, session_id: str, context: ContextBuilder) -> DialogueSession:
        """Keep a new session and return it, or the one that was added in the meantime."""
        now = self.clock()
        with self._lock:
            kept = self._kept.get((owner, session_id))
            if kept is None:
                kept = self._kept[owner, session_id] = DialogueSession(session_id, context, now)
            self._forget(now)
            return kept

    def remove(self, owner: str, session_id: str | None = None) -> int:
        """Forget one session of `owner`, or all of them; return how many there were."""
        with self._lock:
            gone = [key for key in self._kept if key[0] == owner and session_id in {None, key[1]}]
            for key in gone:
                self._kept.pop(key).close()
            return len(gone)

    def clear(self) -> None:
        """Forget all sessions."""
        with self._lock:
            while self._kept:
                self._kept.popitem()[1].close()

    def _forget(self, now: float) -> None:
        while self._kept:
            oldest = next(iter(self._kept))
            if len(self._kept) <= self.most and now - self._kept[oldest].used <= self.seconds:
                return
            self._kept.pop(oldest).close()


def new_session_id() -> str:
    """Return an id for a session that has none."""
    return uuid.uuid4().hex


# --- what came with a question: an image the model sees, files its tools may read ---


class SessionFiles:
    """The files of one session, in a folder that goes with the session.

    Attributes:
        root: the folder, None until something is kept.
        names: of what is kept, in order.
    """

    def __init__(self) -> None:
        self.root: Path | None = None
        self.names: list[str] = []
        self._lock = ForkSafeLock()
        self._remove: Callable[[], object] | None = None

    def add(self, name: str, content: bytes) -> str:
        """Keep a file and return the name it has in the folder.

        Raises:
            UsageError: it is empty or too large.
        """
        if not content or len(content) > MAX_FILE_BYTES:
            raise UsageError(
                f"the file {cut(name, 80)!r} has {len(content)} bytes; between 1 and {MAX_FILE_BYTES} are taken."
            )
        with self._lock:
            if self.root is None:
                self.root = Path(tempfile.mkdtemp(prefix="simplellmfunc-"))
                # Also when the assistant is forgotten without `close`, and at the end of the process.
                self._remove = weakref.finalize(self, _remove_folder, self.root, os.getpid())
            own = _free_name(_safe_name(name), self.names)
            self.root.joinpath(own).write_bytes(content)
            self.names.append(own)
            return own

    def add_image(self, image: Any) -> tuple[ContentPart, str]:
        """Return the part of a message that shows an image, and its name among the files; empty where it is not kept.

        Args:
            image: an `ImgPath` or `ImgUrl`; bytes; a data URL, an http address, or base64 text.

        Raises:
            UsageError: nothing of these, or no image.
        """
        try:
            if isinstance(image, (ImgPath, ImgUrl)):
                return image.to_part(), ""
            if isinstance(image, str) and image.startswith(("data:", "http://", "https://")):
                return ImgUrl(image).to_part(), ""
            name = self.add("image", _decoded(image, "image_data"))
            assert self.root is not None, "a file was kept"
            file = self.root / name
            try:
                return ImgPath(file, root=self.root).to_part(), name
            except ValueError:
                file.unlink()  # else it stood among the files of the session
                self.names.remove(name)
                raise UsageError("image_data is no PNG, JPEG, GIF, WebP or BMP image.") from None
        except (ValueError, FileNotFoundError) as error:
            raise UsageError(f"image_data cannot be used: {error}") from None

    def add_file(self, file: Any) -> str:
        """Keep the file that came with a question and return its name.

        Args:
            file: a `Path` or a `File`, or ``{"name": …, "content": bytes or base64 text}``; never a str: a text from a
                user must not name a file.

        Raises:
            UsageError: nothing of these, or not readable.
        """
        if isinstance(file, File):
            file = file.path
        if isinstance(file, os.PathLike):
            path = Path(file)
            try:
                if not path.is_file():
                    raise UsageError(f"file_data: there is no file {cut(str(path), 200)!r}.")
                if path.stat().st_size > MAX_FILE_BYTES:
                    raise UsageError(f"file_data: {cut(path.name, 80)!r} is larger than {MAX_FILE_BYTES} bytes.")
                return self.add(path.name, path.read_bytes())
            except (OSError, ValueError) as error:
                raise UsageError(f"file_data: {cut(str(path), 200)!r} cannot be read: {error}") from None
        if isinstance(file, Mapping) and "content" in file:
            return self.add(str(file.get("name") or "file"), _decoded(file["content"], "file_data"))
        raise UsageError(
            'file_data is a Path, a File or {"name": "report.pdf", "content": bytes or base64 text}; '
            f"not {type(file).__name__}."
        )

    def close(self) -> None:
        """Remove the folder; a forked child leaves its parent's alone."""
        with self._lock:
            remove, self._remove, self.root = self._remove, None, None
            self.names.clear()
        if remove is not None:
            remove()


def _remove_folder(root: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(root, ignore_errors=True)


def _decoded(content: Any, argument: str) -> bytes:
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    if isinstance(content, str):
        try:
            return base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f"{argument}: the text is not base64. Give bytes, or encode them.") from None
    raise UsageError(f"{argument}: content is bytes or base64 text, not {type(content).__name__}.")


def _safe_name(name: str) -> str:
    plain = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).strip(" .")
    stem, dot, ending = plain.rpartition(".")
    return f"{stem[:80]}.{ending[:16]}" if dot and stem else plain[:80] or "file"


def _free_name(name: str, taken: list[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{Path(name).stem}-{number}{Path(name).suffix}"
    return free
