"""The data that Calls and their scheduler pass around, and how Calls read prompts, earlier steps and conversations."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from enum import StrEnum
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.logger import push_warning

_SPELLINGS = {"zh": "zh", "chinese": "zh", "中文": "zh", "汉语": "zh", "en": "en", "english": "en", "英文": "en"}
_KNOWN_ROLES: Final = frozenset({"user", "assistant", "tool", "system", "developer"})


class LanguageType(StrEnum):
    """The language that prompts are written in, and that answers are asked for in."""

    CHINESE = "zh"
    ENGLISH = "en"

    @classmethod
    def of(cls, value: object) -> LanguageType:
        """Return the language that `value` names (`"en"`, `"en-US"`, `"English"`); an unknown one is Chinese, with a warning."""
        if isinstance(value, cls):
            return value
        name = str(value).strip().lower()
        known = _SPELLINGS.get(name) or _SPELLINGS.get(name.replace("_", "-").split("-")[0])
        if known is None:
            push_warning(f"no prompts in language {value!r}: the Chinese ones are used. There are: zh, en.")
            return cls.CHINESE
        return cls(known)


Language = Annotated[LanguageType, BeforeValidator(LanguageType.of)]
"""A field that takes all that `LanguageType.of` takes."""


def prompt_files(package: str, name: str) -> dict[LanguageType, str]:
    """Return the template `name` of a Call by language, from ``<name>.<language>.jinja`` in its package."""
    return {
        language: files(package).joinpath(f"{name}.{language}.jinja").read_text("utf-8").removesuffix("\n")
        for language in LanguageType
    }


class CallOutputType(StrEnum):
    """What a chunk of output holds."""

    TEXT = "text"
    DATA = "data"
    ERROR = "error"


class ByPosition(BaseModel):
    """A model whose fields can also be given by position, in their order."""

    def __init__(self, *given: Any, **fields: Any) -> None:
        names = list(type(self).model_fields)
        if len(given) > len(names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}; {len(given)} values were given.")
        super().__init__(**dict(zip(names, given, strict=False)), **fields)


class CallOutputChunk(ByPosition):
    """One piece of the output of a Call.

    Attributes:
        type: TEXT (a piece of a text), DATA (a result) or ERROR (`{"message": …, "data": …}`).
        content: text for TEXT, a dict for the others.
    """

    type: CallOutputType = Field(description="输出类型")
    content: str | dict[str, Any] = Field(description="输出内容")

    if TYPE_CHECKING:

        def __init__(
            self,
            type: CallOutputType | str,  # noqa: A002 - the design note's
            content: str | dict[str, Any],
            **others: Any,
        ) -> None: ...


class CallInfo(ByPosition):
    """What a Call is called and what it does, for people."""

    name: str = Field(description="Call的名称")
    description: str = Field(description="Call的描述")

    if TYPE_CHECKING:

        def __init__(self, name: str, description: str, **others: Any) -> None: ...


class CallIds(BaseModel):
    """To whom and to what a task belongs.

    Attributes:
        task_id: of the task; a new one where none is given.
        executor_id: of the flow that runs.
        session_id, app_id, conversation_id: each may be None.
        user_sub: the user's own id.
    """

    task_id: uuid.UUID = Field(default_factory=uuid.uuid4, description="任务ID")
    executor_id: str = Field(default="", description="Flow执行器ID")
    session_id: str | None = Field(default=None, description="会话ID")
    app_id: uuid.UUID | None = Field(default=None, description="应用ID")
    user_sub: str = Field(default="", description="用户唯一标识符")
    conversation_id: uuid.UUID | None = Field(default=None, description="对话ID")


class ExecutorBackground(BaseModel):
    """What is known before the first step.

    Attributes:
        num: how many records of the conversation count, the latest ones; 0 for all.
        conversation: `{"role": …, "content": …}` items; older data has `{"question": …, "answer": …}`.
        facts: one sentence each.
    """

    num: int = Field(default=0, description="对话记录最大数量")
    conversation: list[dict[str, str]] = Field(default=[], description="对话记录")
    facts: list[str] = Field(default=[], description="当前Executor的背景信息")


class ExecutorHistory(ByPosition):
    """What one step has put out, as later steps read it.

    Attributes:
        output_data: the whole text of a step that gave text, else its data.
    """

    step_name: str = Field(description="步骤名称")
    step_description: str = Field(default="", description="步骤描述")
    output_data: str | dict[str, Any] = Field(default="", description="步骤输出")

    if TYPE_CHECKING:

        def __init__(
            self, step_name: str, step_description: str = "", output_data: str | dict[str, Any] = "", **others: Any
        ) -> None: ...

    @property
    def data(self) -> dict[str, Any]:
        """The output as a dict: of a text step it is `{"text": <the whole text>}`."""
        return {"text": self.output_data} if isinstance(self.output_data, str) else self.output_data


class CallVars(BaseModel):
    """The state of the task that a Call can read.

    Attributes:
        thinking: what the AI has thought so far (`task.runtime.reasoning`).
        question: of the user.
        step_data: the earlier steps by name; where a name was used several times, the latest has it.
        step_order: the keys of `step_data`, oldest first.
    """

    thinking: str = Field(default="", description="上下文思考信息")
    question: str = Field(default="", description="改写后的用户输入")
    step_data: dict[str, ExecutorHistory] = Field(default={}, description="历史工具的结构化数据")
    step_order: list[str] = Field(default=[], description="历史工具的顺序")
    background: ExecutorBackground = Field(default_factory=ExecutorBackground, description="Executor的背景信息")
    ids: CallIds = Field(default_factory=CallIds, description="Call的ID")
    language: Language = Field(default=LanguageType.CHINESE, description="当前使用的语言")

    def latest(self, number: int) -> list[ExecutorHistory]:
        """Return the latest `number` steps, oldest first; none for 0 or less."""
        if number <= 0:
            return []
        return [self.step_data[key] for key in self.step_order[-number:] if key in self.step_data]

    @classmethod
    def steps_of(cls, history: Sequence[ExecutorHistory]) -> dict[str, ExecutorHistory]:
        """Return steps by name, oldest first: the latest of a name has it, earlier ones are `name#1`, `name#2` …."""
        times = Counter(step.step_name for step in history)
        seen: Counter[str] = Counter()
        named: dict[str, ExecutorHistory] = {}
        for step in history:
            name = step.step_name
            seen[name] += 1
            key = name if seen[name] == times[name] else f"{name}#{seen[name]}"
            while key != name and key in times:
                key += "#"  # another step is really called so
            named[key] = step
        return named


class DataBase(BaseModel):
    """What every input and output model of a Call comes from."""

    model_config = ConfigDict(populate_by_name=True)

    @classmethod
    def model_json_schema(  # type: ignore[override]  # the name and the parameter are the design note's
        cls, override: dict[str, Any] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Return the JSON schema of the model.

        Args:
            override: properties by name that replace the model's own or join them, in this schema alone.
            **kwargs: as pydantic's `model_json_schema` takes them.
        """
        schema = super().model_json_schema(**kwargs)
        if override:
            schema["properties"] = {**schema.get("properties", {}), **deepcopy(override)}
        return schema


# --- the outputs of earlier steps, by path ---


def read_history(path: Any, history: Any) -> Any:
    """Return the value at ``step/key/sub`` in the outputs of earlier steps, or None.

    The step's name alone gives its whole output. The text of a text step is also its ``text``. A segment is a key of
    an object or an index of a list; ``~1`` in it is a slash and ``~0`` a tilde, as in a JSON Pointer. Never raises.

    Args:
        path: with or without a leading slash.
        history: steps by name (`CallVars.step_data`), or a list of them, oldest first.
    """
    if not isinstance(path, str):
        return None
    steps = _by_name(history)
    first, *keys = path.removeprefix("/").split("/")
    step = steps.get(_unescaped(first), steps.get(first))
    output = getattr(step, "output_data", step)
    if isinstance(output, str) and keys and keys[0] == "text":
        keys = keys[1:]
    for key in keys:
        if (output := _below(output, key)) is None:
            return None
    return output


def _by_name(history: Any) -> Mapping[str, Any]:
    if isinstance(history, Mapping):
        return history
    if isinstance(history, Sequence) and not isinstance(history, str):
        return CallVars.steps_of([step for step in history if isinstance(step, ExecutorHistory)])
    return {}


def _below(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(_unescaped(key), value.get(key))
    if isinstance(value, (list, tuple)) and key.isascii() and key.isdigit() and len(key) < 10:
        return value[int(key)] if int(key) < len(value) else None
    return None


def _unescaped(segment: str) -> str:
    return segment.replace("~1", "/").replace("~0", "~")


# --- conversations in several forms ---


def conversation_messages(
    conversation: Iterable[Any], *, roles: Sequence[str] = ("user", "assistant"), latest: int = 0
) -> list[dict[str, str]]:
    """Return ``{"role": …, "content": …}`` messages, oldest first.

    A record is one message, or a question with its answer. What has no text is left out, and so is every role that is
    not asked for: instructions do not come out of a history. Neither does what is no record at all, with a warning.

    Args:
        conversation: ``{"role": …, "content": …}`` items, messages of a chat (parts of text are joined, images are
            named), or ``{"question": …, "answer": …}`` items.
        roles: that are kept, spelled exactly so.
        latest: keep that many records at the end; 0 keeps all.
    """
    records: list[list[dict[str, str]]] = []
    unusable = 0
    for item in conversation:
        messages = _messages(item)
        unusable += messages is None
        kept = [message for message in messages or () if message["role"] in roles and message["content"].strip()]
        if kept:
            records.append(kept)
    if unusable:
        push_warning(f"left out of the conversation: {counted(unusable, 'item')} that cannot be read as messages.")
    return [message for record in records[-max(latest, 0) :] for message in record]


def _messages(item: Any) -> list[dict[str, str]] | None:
    """Return the messages of a record; None if this is no record."""
    if not isinstance(item, Mapping):
        return None
    role = item.get("role")
    if isinstance(role, str) and role in _KNOWN_ROLES:
        return [{"role": role, "content": _text(item.get("content"))}]
    if "role" not in item and ("question" in item or "answer" in item):
        said = (("user", item.get("question")), ("assistant", item.get("answer")))
        return [{"role": role, "content": _text(content)} for role, content in said]
    return None


def _text(content: Any) -> str:
    """Return what of a content can be read: its text, and the kind of every other part."""
    if not isinstance(content, (list, tuple)):
        return content if isinstance(content, str) else ""
    return "\n".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return part if isinstance(part, str) else ""
    text = part.get("text")
    return text if isinstance(text, str) else f"[{str(part.get('type', 'part')).removesuffix('_url')}]"
