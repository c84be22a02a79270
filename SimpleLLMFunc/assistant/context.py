"""The growing conversation of one session, and the sessions that are kept."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.llm_decorator.steps.chat.message import filter_history_messages
from SimpleLLMFunc.runtime import ForkSafeLock
from SimpleLLMFunc.type import ContentPart, Message


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
    attachments: Any = None

    def close(self) -> None:
        """Remove the files of the session."""
        if self.attachments is not None:
            self.attachments.close()


class DialogueSessions:
    """The sessions of an assistant; those unused for long and those too many are forgotten.

    A session is found by who asks and by its id, so knowing an id is not enough to read on in another user's session.

    Args:
        most: how many are kept; the one unused longest goes first.
        seconds: how long an unused one is kept.
        clock: for tests.
    """

    def __init__(
        self, *, most: int = 1000, seconds: float = 86_400.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], DialogueSession] = OrderedDict()
        self._lock = ForkSafeLock()

    def find(self, owner: str, session_id: str) -> DialogueSession | None:
        """Return the session if it is kept, and count it as used now."""
        now = self._clock()
        with self._lock:
            self._forget(now)
            session = self._kept.get((owner, session_id))
            if session is not None:
                session.used = now
                self._kept.move_to_end((owner, session_id))
            return session

    def add(self, owner: str, session_id: str, context: ContextBuilder) -> DialogueSession:
        """Keep a new session and return it, or the one that was added in the meantime."""
        now = self._clock()
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
            if len(self._kept) <= self._most and now - self._kept[oldest].used <= self._seconds:
                return
            self._kept.pop(oldest).close()


def new_session_id() -> str:
    """Return an id for a session that has none."""
    return uuid.uuid4().hex
