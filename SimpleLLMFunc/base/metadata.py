"""What is known of a run besides its events: the function, the arguments, and what a request holds.

Built only when a sink watches the run. It refers to the run's own objects and copies nothing: a sink that keeps a part
of it beyond the event has to serialise it (without the secrets) or copy it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.type import ToolSpec
from SimpleLLMFunc.utils import in_one_order

FunctionKind: TypeAlias = Literal["function", "chat", "call", "assistant"]
"""Who asks: an `@llm_function`, an `@llm_chat`, a Call, or the assistant."""

_MODULES = re.compile(r"(?:(?:[^\W\d]\w*|<locals>)\.)+(?=[^\W\d])")
_PLACE = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class FunctionMetadata:
    """What a function is; one object for all of its runs until the function is changed.

    Attributes:
        name: `__name__` of the function, or the name of the Call.
        kind: who asks.
        docstring: as written, indentation cleaned.
        signature: as in the source: ``(essay: str, *, strict: bool = False) -> Grade``.
        tools: what it offers, in wire form.
        output_schema: JSON Schema of the return type; None where the answer is plain text.
        version: of docstring, prompt templates, examples, signature, types and tools; see `function_version`.
        place: ``module:qualname`` where it was defined, empty if unknown.
    """

    name: str
    kind: FunctionKind = "function"
    docstring: str = ""
    signature: str = ""
    tools: Sequence[ToolSpec] = ()
    output_schema: Mapping[str, Any] | None = None
    version: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """Who runs, with what, and inside of what.

    Attributes:
        function: the function.
        arguments: by parameter name, defaults applied; the objects that were given.
        parent_trace_id: of the run around this one, empty if this is the outermost run.
        parent_call_id: the tool call of the run around this one that began this run, empty where none did.
        session_id: the conversation it belongs to; from `watching(session_id=…)`, or the assistant's.
        user_id: whom it serves; from `watching(user_id=…)`, or the assistant's.
        restarts: how often its `durable` block had been begun before; the run is the same one, under the same trace id.
    """

    function: FunctionMetadata
    arguments: Mapping[str, Any] = field(default_factory=dict)
    parent_trace_id: str = ""
    parent_call_id: str = ""
    session_id: str = ""
    user_id: str = ""
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class SentRequest:
    """What a turn is about to send.

    Attributes:
        request: the run's own; its lists never change, a turn that adds to them makes new ones.
        stream: the reply is asked for in pieces.
        is_last: no tool is offered any more.
    """

    request: ModelRequest
    stream: bool
    is_last: bool

    @property
    def llm(self) -> LLM_Interface:
        """The model that is asked; `model_name`, `provider` and `base_url` are among its attributes."""
        return self.request.llm

    @property
    def output_mode(self) -> OutputMode:
        """How the answer is asked for."""
        return self.request.output_mode

    def wire(self) -> dict[str, Any]:
        """Return the arguments of `LLM_Interface.chat` by name: `messages`, `tools`, `response_format`, the params.

        A new dictionary at each call, with copies of the messages.
        """
        return self.request.wire(is_last=self.is_last)

    def params(self) -> dict[str, Any]:
        """Return the parameters besides messages, tools and response format: the model's own settings, and the call's."""
        own: Any = getattr(self.llm, "api_params", None)
        return {**(own if isinstance(own, Mapping) else {}), **self.request.params}


def signature_text(signature: inspect.Signature) -> str:
    """Return a signature as in the source: the types without their modules."""
    return _PLACE.sub("", str(shown_signature(signature)))


def shown_signature(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature with its annotations as a reader writes them: no quotes, no modules."""
    parameters = [
        each.replace(annotation=_written(each.annotation), default=_in_order(each.default))
        for each in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters, return_annotation=_written(signature.return_annotation))


def _in_order(default: Any) -> Any:
    """Return a default as it is; of a set, the text with sorted items, since each process has its own order of a set."""
    if type(default) not in (set, frozenset) or len(default) < 2:
        return default
    items = ", ".join(map(repr, in_one_order(default, repr)))
    return Written(f"{{{items}}}" if type(default) is set else f"frozenset({{{items}}})")


class Written(str):
    """An annotation as text, which a signature shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _written(annotation: Any) -> Any:
    if annotation is inspect.Signature.empty:
        return annotation
    is_text = isinstance(annotation, str)
    return Written(annotation if is_text else _MODULES.sub("", inspect.formatannotation(annotation)))


def function_version(docstring: str, signature: str, types: Any, tools: Any) -> str:
    """Return 16 hexadecimal digits that change when one of these does: what tells two versions of a function apart.

    The same in every process and on every machine: a default that shows where it lies in memory counts without that.

    Args:
        docstring: of the function.
        signature: as text.
        types: JSON data about what goes in and comes out, and what else makes it another function (templates, examples).
        tools: in wire form.
    """
    text = json.dumps([docstring, signature, types, tools], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(_PLACE.sub("", text).encode(), digest_size=8).hexdigest()


def code_version(code: Callable[..., Any]) -> list[str]:
    """Return the name of plain code and a hash of its source: what makes it another one."""
    name = f"{getattr(code, '__module__', '')}:{getattr(code, '__qualname__', type(code).__qualname__)}"
    try:
        source = textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError):
        compiled = getattr(code, "__code__", None)
        source = repr((compiled.co_code, compiled.co_names)) if compiled is not None else ""
    return [name, hashlib.blake2b(source.encode(), digest_size=8).hexdigest()]
