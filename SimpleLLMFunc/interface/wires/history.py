"""A conversation in chat completions' form, written in the words of another wire; what those wires share. Pure.

A history that was cut fits too: a call whose result is missing is told so, and a result without its call becomes text.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.body_json import decoded
from SimpleLLMFunc.interface.wires.provider_state import state_in
from SimpleLLMFunc.interface.wires.wire import SYSTEM, Downgrades
from SimpleLLMFunc.type import ToolCall, content_text

Part = dict[str, Any]
"""A block, an item or a part: the least thing that a message of the wire holds."""

_NO_RESULT = "The result of this call is not known."
_LEFT_OUT = "(What was said before is left out.)"
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)


class History(ABC):
    """The conversation for one wire; nothing of the caller's is changed.

    Args:
        service: the host; what another one wants back stays out.

    Attributes:
        turns: for the wire; neighbours of one role are one turn.
        dropped: why parts that the service wanted back stay out; empty where none do.
        tool_names: of the calls, in order.
    """

    wire: ClassVar[str]
    called: ClassVar[str]
    """The wire's name in errors."""
    role: ClassVar[str] = "assistant"
    """Of the model's turns."""
    field: ClassVar[str] = "content"
    """Of a turn, which holds its parts."""
    starts_with_user: ClassVar[bool] = True
    id_field: ClassVar[str] = ""
    """Of a call: its id, which no other call may have; empty where there is no such rule."""

    text_in: Callable[[Iterable[Mapping[str, Any]]], str]
    calls_in: Callable[[Iterable[Mapping[str, Any]]], list[Mapping[str, Any]]]

    def __init__(self, service: str) -> None:
        self.service = service
        self.turns: list[dict[str, Any]] = []
        self.dropped = ""
        self.tool_names: list[str] = []
        self._ids: set[str] = set()  # of the calls, as they were sent
        self._open: list[tuple[str, Mapping[str, Any]]] = []  # the latest calls: our id, and as they were sent
        self._results: dict[int, Part] = {}  # of these, by their place
        self._late: list[Part] = []  # results of other calls

    # --- a wire's own words ---

    @abstractmethod
    def text(self, text: str) -> list[Part]:
        """Return a user's text; nothing where the wire takes no empty one."""

    @abstractmethod
    def media(self, kind: Any, part: Mapping[str, Any]) -> Part:
        """Return a part of a user's content that is not text.

        Raises:
            ConfigError: the wire does not take it.
        """

    @abstractmethod
    def call(self, call: ToolCall) -> Part:
        """Return a call, as `calls_in` finds it."""

    @abstractmethod
    def said(self, content: Any, calls: list[Part]) -> list[Part]:
        """Return what the model said, where nothing is kept as it came."""

    @abstractmethod
    def result(self, sent: Mapping[str, Any], content: Any, *, failed: bool) -> Part:
        """Return the result of a call, with the wire's mark where the tool failed."""

    # --- what is the same ---

    def write(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Write the messages but those of the system.

        Raises:
            ConfigError: a part that the wire does not take, such as audio.
        """
        for message in messages:
            role = message.get("role")
            if role == "tool":
                self._add_result(message)
            elif role not in SYSTEM:
                self._settle()
                if role == "assistant":
                    self.add_answer(message)
                else:
                    self.add("user", self.parts(message.get("content")))
        self._settle()

    def system(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the system prompt: all system messages, joined with blank lines.

        Raises:
            ConfigError: it holds something that is not text.
        """
        contents = [message.get("content") for message in messages if message.get("role") in SYSTEM]
        parts = [each for one in contents for each in ([{"text": one}] if isinstance(one, str) else one or ())]
        if not all("text" in part for part in parts):
            raise ConfigError(f"the system prompt holds something that is not text, which {self.called} cannot take.")
        return "\n\n".join(filter(str.strip, (str(part["text"] or "") for part in parts)))

    def add(self, role: str, parts: Sequence[Part]) -> None:
        """Add what one side says."""
        if not parts:
            return
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1][self.field] = [*self.turns[-1][self.field], *parts]
        else:
            self.turns.append({"role": role, self.field: list(parts)})

    def add_answer(self, message: Mapping[str, Any]) -> None:
        """Add what the model said, and wait for the results of its calls."""
        parts = self._answer(message)
        if parts and not self.turns and self.starts_with_user:
            self.add("user", self.text(_LEFT_OUT))
        sent = self.calls_in(parts)
        for call in cast("list[Part]", sent) if self.id_field else ():
            # Some servers give the first call of each reply the same id.
            if call[self.id_field] in self._ids:
                call[self.id_field] = made_id(f"{len(self._ids)} {call[self.id_field]}")
            self._ids.add(call[self.id_field])
        ids = [str(call.get("id") or "") for call in message.get("tool_calls") or ()]
        self._open = list(zip(ids, sent[len(sent) - len(ids) :], strict=True))
        self.tool_names += [str(call.get("name") or "") for call in sent]
        self.add(self.role, parts)

    def parts(self, content: Any) -> list[Part]:
        """Return a content as the wire's parts."""
        if isinstance(content, str):
            return self.text(content)
        parts: list[Part] = []
        for part in content or ():
            kind = part.get("type")
            parts += self.text(part.get("text") or "") if kind == "text" else [self.media(kind, part)]
        return parts

    def kept(self, parts: list[Part], prefix: str) -> list[Part]:  # noqa: ARG002 - for wires that bind
        """Return the parts that came, or those of them that may still go; none, where none may."""
        return parts

    def _answer(self, message: Mapping[str, Any]) -> list[Part]:
        """Return the parts of an assistant's message: those that came, where the message still says the same."""
        calls = [self.call(ToolCall.from_dict(call)) for call in message.get("tool_calls") or ()]
        state = state_in(message, self.wire, self.service)
        if state is not None:
            came: list[Part] = [dict(part) for part in state[0] if isinstance(part, Mapping)]
            if self.text_in(came) != (content_text(message.get("content")) or "") or not _are_same(
                self.calls_in(came), calls
            ):
                self.dropped = "the message was changed after it had come"
            elif kept := self.kept(came, state[1]):
                return kept
        return self.said(message.get("content"), calls)

    def downgrades(self, what: str) -> Downgrades:
        """Return what is told of the parts that stay out; `what` they are, with its verb."""
        return [(f"provider state: {what} left out", self.dropped)] if self.dropped else []

    def _add_result(self, message: Mapping[str, Any]) -> None:
        content, call_id = message.get("content"), str(message.get("tool_call_id") or "")
        places = [place for place, (own, _) in enumerate(self._open) if own == call_id and place not in self._results]
        if places:
            sent = self._open[places[0]][1]
            self._results[places[0]] = self.result(sent, content, failed=bool(message.get("is_error")))
        else:
            shown = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            self._late += self.text(f"The result of an earlier tool call: {shown}")

    def _settle(self) -> None:
        """Add the results in the order of the calls, one for each call that has none too, and then what has no call."""
        for place, (_, sent) in enumerate(self._open):
            self.add("user", [self._results.get(place) or self.result(sent, _NO_RESULT, failed=True)])
        self.add("user", self._late)
        self._open, self._results, self._late = [], {}, []


def _are_same(came: Sequence[Mapping[str, Any]], calls: Sequence[Part]) -> bool:
    """Whether the calls that came are those of the message."""
    return len(came) == len(calls) and all(
        sent.get(name) == value or (not sent.get(name) and value in ({}, "{}"))
        for sent, call in zip(came, calls, strict=True)
        for name, value in call.items()
    )


def made_id(text: str) -> str:
    """Return an id that every service takes; the same one for a text each time."""
    return "call_" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as an object; any other value becomes ``{"arguments": value}``."""
    text = call.function.arguments
    value = decoded(text.encode("utf-8", "surrogatepass"), text)
    return value if isinstance(value, dict) else {"arguments": value}


def image_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a part says of its image; a bare address, as Mistral takes one, becomes ``{"url": address}``."""
    image: Mapping[str, Any] | str = part["image_url"]
    return {"url": image} if isinstance(image, str) else image


def data_in(url: str) -> tuple[str, str, str] | None:
    """Return the kind of data in a ``data:`` address, what is said of its form, and the data; None for another address."""
    found = _DATA_URL.match(url)
    return (found[1].lower(), found[2].lower(), url[found.end() :]) if found else None
