"""`AIAssistant`: a dialogue partner with tools, memory, and a search when the model is unsure."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeAlias
from weakref import WeakSet

from SimpleLLMFunc.assistant.builtin import builtin_tools
from SimpleLLMFunc.assistant.caller import FUNC_NAME, LLMCaller, StreamItem, ToolInvoker, Turn
from SimpleLLMFunc.assistant.context import (
    ContextBuilder,
    DialogueSession,
    DialogueSessions,
    SessionFiles,
    new_session_id,
)
from SimpleLLMFunc.assistant.memory import ChatMemoryIntegration, MemoryStore
from SimpleLLMFunc.assistant.search.search import SearchClient, SearchReview
from SimpleLLMFunc.assistant.search.uncertainty import is_uncertain, model_detector
from SimpleLLMFunc.assistant.words import SPOKEN, WORDS
from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata, function_version
from SimpleLLMFunc.base.run import Run, generate_trace_id
from SimpleLLMFunc.errors import ConfigError, UsageError, cut
from SimpleLLMFunc.interface.current import resolve_llm, use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import deadline_scope
from SimpleLLMFunc.interface.wires import check_options
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import ForkSafeLock, in_thread, iterate_sync, run_sync
from SimpleLLMFunc.tools import Tool
from SimpleLLMFunc.type import ContentPart, Message
from SimpleLLMFunc.utils import get_last_item_of_async_generator, in_context, is_number

__all__ = ["AIAssistant", "Detector", "StreamItem"]

Detector: TypeAlias = Callable[[str], bool | Awaitable[bool]] | Literal["model"]
"""Says of an answer whether the model was unsure; "model" asks the model itself."""


class AIAssistant:
    """A dialogue partner: context, memory, tools, and one search where the model says that it does not know.

    Args:
        llm: the model; None takes the current one (`use_llm`, environment) at each question.
        search: asked once, with the user's question alone, when an answer without tools is uncertain.
        memory: a `MemoryStore` such as `SqliteMemory`; users whose id begins with "anonymous" are never kept.
        tools: what the model may call; None for the built-in tools, empty for none.
        language: of the instructions, "zh" or "en".
        memory_timeout: seconds that each thing asked of the memory may take.
        max_tool_rounds: rounds of tool calls in one answer, from 0 (none is offered).
        detector: decides whether an answer is uncertain; None uses the phrases of `is_uncertain`.
        search_timeout: seconds that the search may take.
        system_prompt: in place of the default instructions.
        deadline: seconds for one question with everything it needs: memory, model, tools and search.
        toolkit_confirm: asked before a tool marked `confirm=True` runs.
        max_sessions: how many sessions are kept in memory.
        session_seconds: how long an unused session is kept.
        **llm_kwargs: request parameters and `extra_body`, which go to the provider with each request.

    Raises:
        ConfigError: a model, a language, a search, a store or a limit that cannot be used.
        ToolDefinitionError: a tool the model could not be told about.
    """

    @border
    def __init__(
        self,
        llm: LLM_Interface | None = None,
        search: SearchClient | None = None,
        memory: MemoryStore | None = None,
        tools: Iterable[Tool | Callable[..., Any]] | None = None,
        language: Literal["zh", "en"] = "zh",
        *,
        memory_timeout: float = 2.0,
        max_tool_rounds: int = 5,
        detector: Detector | None = None,
        search_timeout: float = 10.0,
        system_prompt: str | None = None,
        deadline: float | None = None,
        toolkit_confirm: Callable[..., Any] | None = None,
        max_sessions: int = 1000,
        session_seconds: float = 86_400.0,
        **llm_kwargs: Any,
    ) -> None:
        _check_settings(locals(), llm_kwargs)
        self.language: Literal["zh", "en"] = language
        self.search = search
        self.detector: Detector | None = detector
        self.deadline = deadline
        self._words: dict[str, str] = WORDS["prompts"][language]
        self.system_prompt = self._words["system"] if system_prompt is None else system_prompt
        self.llm_caller = LLMCaller(llm, params=llm_kwargs, max_tool_rounds=max_tool_rounds, confirm=toolkit_confirm)
        self.tool_invoker = ToolInvoker(
            builtin_tools(llm, language=language) if tools is None else tools, language=language
        )
        self.memory = ChatMemoryIntegration(memory, timeout=memory_timeout, language=language)
        self._search_timeout = search_timeout
        self._sessions = DialogueSessions(most=max_sessions, seconds=session_seconds)
        self._turns: WeakSet[Turn] = WeakSet()
        self._turns_lock = ForkSafeLock()

    @property
    def llm(self) -> LLM_Interface | None:
        """The model that was given."""
        return self.llm_caller.llm

    # --- one question ---

    @border
    async def process_query(
        self,
        user_input: str,
        session_id: str | None = None,
        user_id: str | None = None,
        ai_id: str | None = None,
        image_data: Any = None,
        file_data: Any = None,
    ) -> dict[str, Any]:
        """Answer a question and return ``{response, session_id, has_tool_calls, tool_results, sources}``.

        Two questions at once in one session are both answered from what was said before them, and both are kept.

        Args:
            user_input: the question.
            session_id: the conversation it belongs to; None opens a new one.
            user_id: whose memories count; None, or an id that begins with "anonymous", has none.
            ai_id: the id under which this assistant speaks; the model is told.
            image_data: an `ImgPath` or `ImgUrl`, bytes, a data URL or an address, base64 text.
            file_data: a `Path` or `File`, or ``{"name": …, "content": bytes or base64}``.

        Returns:
            `tool_results` holds ``{id, name, arguments, result, failed}`` for each call, `sources` holds
            ``{title, url, content}`` for each result of the search.

        Raises:
            UsageError: an argument that cannot be used.
            ProviderError: the service failed.
            RunError: there was no answer, or none in time.
        """
        asked = self._asked(user_input, session_id, user_id, ai_id, image_data, file_data, stream=False)
        result = await get_last_item_of_async_generator(asked)
        assert isinstance(result, dict), "a stream that raises nothing ends with the result"
        return result

    @border
    def stream_query(
        self,
        user_input: str,
        session_id: str | None = None,
        user_id: str | None = None,
        ai_id: str | None = None,
        image_data: Any = None,
        file_data: Any = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Answer a question; yield text as it comes, `ToolCallStarted`, `ToolCallFinished`, and last the result.

        Arguments, result and errors are those of `process_query`. Where a search may follow, the text of a first
        answer is held back until it is clear that it stands. A question whose stream is left early is not kept.
        """
        return self._asked(user_input, session_id, user_id, ai_id, image_data, file_data, stream=True)

    @border
    def process_query_sync(self, user_input: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As `process_query`, for code without an event loop, or inside one."""
        return run_sync(self.process_query(user_input, *args, **kwargs))

    @border
    def stream_query_sync(self, user_input: str, *args: Any, **kwargs: Any) -> Generator[StreamItem, None, None]:
        """As `stream_query`, for code without an event loop, or inside one."""
        return iterate_sync(self.stream_query(user_input, *args, **kwargs))

    # --- sessions and users ---

    def conversation(self, session_id: str, user_id: str | None = None) -> list[Message]:
        """Return what was said in a session, the instructions first; empty for a session that is not kept."""
        session = self._sessions.find(_owner(user_id), session_id)
        return session.context.get_conversation_history() if session else []

    def end_session(self, session_id: str, user_id: str | None = None) -> bool:
        """Forget a session, its files too, and say whether there was one."""
        return bool(self._sessions.remove(_owner(user_id), session_id))

    @border
    async def delete_user(self, user_id: str) -> None:
        """Forget everything about a user: sessions, files, and what the memory holds.

        What the user is asking meanwhile is answered, and not remembered.

        Raises:
            UsageError: that names no user.
            RunError: the store took longer than `memory_timeout`.
            Exception: the store's own, unchanged: what should be gone and is not must not pass in silence.
        """
        given: Any = user_id
        if not isinstance(given, str) or not given.strip():
            raise UsageError("delete_user takes the id of a user.")
        with self._turns_lock:
            for turn in self._turns:
                if turn.owner == _owner(user_id):
                    turn.is_forgotten = True
        self._sessions.remove(_owner(user_id))
        await self.memory.forget(user_id)

    def close(self) -> None:
        """Forget all sessions and remove their files."""
        self._sessions.clear()

    # --- the flow ---

    def _asked(self, *asked: Any, stream: bool) -> AsyncGenerator[StreamItem, None]:
        """Return what one question yields; it sees the context variables of this moment and sets none outside."""
        return in_context(self._process_query_internal(*asked, stream=stream), contextvars.copy_context())

    async def _process_query_internal(
        self,
        user_input: str,
        session_id: str | None,
        user_id: str | None,
        ai_id: str | None,
        image_data: Any,
        file_data: Any,
        *,
        stream: bool,
    ) -> AsyncGenerator[StreamItem, None]:
        _check(user_input, session_id, user_id, ai_id, has_more=image_data is not None or file_data is not None)
        turn = Turn(_owner(user_id))
        with self._turns_lock:
            self._turns.add(turn)
        with deadline_scope(self.deadline):
            session = await self._session(session_id or new_session_id(), user_id)
            content: str | list[ContentPart] = user_input
            if image_data is not None or file_data is not None:
                files = session.attachments = session.attachments or SessionFiles()
                content = await in_thread(self._content, files, user_input, image_data, file_data)
            messages = session.context.build_context(content)
            _tell_ai_id(messages, ai_id, self.language)
            enriched = await self.memory.enrich(
                messages, user_id=user_id, message=user_input, session_id=session.session_id
            )
            tools = self.llm_caller.toolset(self.tool_invoker, session.attachments)
            specs = tools.specs or []
            version = function_version(self.system_prompt, "", None, specs)
            function = FunctionMetadata(FUNC_NAME, "assistant", self.system_prompt, tools=specs, version=version)
            told = {"user_input": user_input}
            about = RunMetadata(function, told, session_id=session.session_id, user_id=user_id or "")
            run = Run(FUNC_NAME, generate_trace_id(FUNC_NAME), stream=stream, about=about)
            run.known_by = [content, session_id, user_id]  # the memory may hold what was said before
            turn.review = SearchReview(
                run,
                tools,
                question=user_input,
                search=self.search,
                detect=model_detector(self.llm) if self.detector == "model" else self.detector or is_uncertain,
                language=self.language,
                timeout=self._search_timeout,
            )
            async with aclosing(self.llm_caller.events(run, enriched, tools, turn.review)) as events:
                async for event in events:
                    for item in turn.read(event):
                        yield item
            for piece in turn.release():
                yield piece
            asked: Message = {"role": "user", "content": content}
            session.context.add(asked, *turn.grown)
            if not turn.is_forgotten:
                with use_llm(resolve_llm(self.llm)):  # what the memory asks a model, it asks this one
                    await self.memory.remember(
                        user_id=user_id, message=user_input, answer=turn.answer, session_id=session.session_id
                    )
        yield turn.result(session.session_id)

    async def _session(self, session_id: str, user_id: str | None) -> DialogueSession:
        owner = _owner(user_id)
        # Old sessions go on the way, and their files with them.
        session = await in_thread(self._sessions.find, owner, session_id)
        if session is None:
            history = await self.memory.history(user_id=user_id, session_id=session_id)
            context = ContextBuilder(self.system_prompt, history)
            session = await in_thread(self._sessions.add, owner, session_id, context)
        return session

    def _content(
        self, files: SessionFiles, user_input: str, image_data: Any, file_data: Any
    ) -> str | list[ContentPart]:
        """Keep what came with a question, and return the question with it; writes and encodes up to 40 MiB."""
        names: list[str] = []
        parts: list[ContentPart] = []
        if image_data is not None:
            part, name = files.add_image(image_data)
            parts.append(part)
            names += [name] if name else []
        if file_data is not None:
            names.append(files.add_file(file_data))
        # By its name a tool finds what was kept.
        attached = self._words["attached"] + ", ".join(names) if names else ""
        text = "\n\n".join(each for each in (user_input, attached) if each.strip())
        return [{"type": "text", "text": text}, *parts] if parts else text


def _owner(user_id: str | None) -> str:
    return "" if user_id is None or not user_id.strip() else user_id


def _check(user_input: Any, session_id: Any, user_id: Any, ai_id: Any, *, has_more: bool) -> None:
    if not isinstance(user_input, str):
        raise UsageError(f"user_input is a str, not {type(user_input).__name__}.")
    if not user_input.strip() and not has_more:
        raise UsageError("user_input is empty. Ask something, or give image_data or file_data.")
    for name, value in (("session_id", session_id), ("user_id", user_id), ("ai_id", ai_id)):
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} is a str or None, not {type(value).__name__}.")


def _tell_ai_id(messages: list[Message], ai_id: str | None, language: str) -> None:
    """Let the instructions name the id under which the assistant speaks."""
    if not ai_id:
        return
    if len(ai_id) > 128 or not ai_id.isprintable():
        raise UsageError("ai_id has at most 128 printable characters.")
    line = WORDS["prompts"][language]["ai id"].format(ai_id=ai_id)
    head: Any = messages[0]
    if head["role"] == "system":
        head["content"] = f"{head['content']}\n{line}"
    else:
        messages.insert(0, {"role": "system", "content": line})


# --- what an assistant is given, checked when it is made: callers are not all type-checked ---

_MODEL = "Say which model is asked as llm=OpenAICompatible('gpt-5-mini')"
_PLACES: Mapping[str, str] = {
    **dict.fromkeys(("llm_interface", "model", "model_name"), _MODEL),
    "max_tool_calls": "Write max_tool_rounds=",
    "response_format": "An assistant answers with text",
    "stream": "Call stream_query(...)",
    "toolkit": "Give tools and functions as tools=[...]",
}


_SECONDS = (lambda value: is_number(value) and value > 0, "a number of seconds above 0")
_OPTIONAL = {"llm", "search", "tools", "detector", "toolkit_confirm", "system_prompt", "deadline"}
_WANTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "llm": (lambda value: isinstance(value, LLM_Interface), "a model such as OpenAICompatible(...) or LocalModel()"),
    "language": (lambda value: isinstance(value, str) and value in SPOKEN, '"zh" or "en"'),
    "search": (
        lambda value: not isinstance(value, type) and callable(getattr(value, "search", None)),
        "an object with `search(query)`, such as TavilySearch() or WikipediaSearch()",
    ),
    "detector": (lambda value: value == "model" or callable(value), 'a callable that takes the answer, or "model"'),
    "toolkit_confirm": (callable, "a callable that takes the tool's name and its arguments"),
    "system_prompt": (lambda value: isinstance(value, str), "text"),
    "tools": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, str),
        "a list of tools and functions",
    ),
    "max_tool_rounds": (lambda value: is_number(value, int) and value >= 0, "a whole number from 0 up"),
    "max_sessions": (lambda value: is_number(value, int) and value >= 1, "a whole number from 1 up"),
    **dict.fromkeys(("memory_timeout", "search_timeout", "session_seconds", "deadline"), _SECONDS),
}
"""Each argument: whether a value can be used, and what it has to be."""


def _check_settings(given: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Make sure that the arguments of an `AIAssistant` can be used.

    Args:
        given: the arguments by name.
        params: what goes to the provider.

    Raises:
        ConfigError: one of them cannot; it is named.
    """
    for name, (fits, wanted) in _WANTED.items():
        value = given[name]
        if not (value is None and name in _OPTIONAL) and not fits(value):
            shown = cut(repr(value), 60) if isinstance(value, (str, int, float)) else type(value).__name__
            raise ConfigError(f"{name}= is {wanted}, not {shown}.")
    check_options(params, [*_WANTED, "memory"], _PLACES)
