"""SchemaLLM: any valid value of the wanted type, from a seed."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from SimpleLLMFunc.base.json_action import parameters_of
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires import schema_of
from SimpleLLMFunc.testing.requests import answer_message, answer_tool_of, asks_for_action, tool_calls
from SimpleLLMFunc.testing.schema_values import Schema, value_of, words
from SimpleLLMFunc.testing.scripted import ScriptedLLM, ScriptedRequest
from SimpleLLMFunc.type import Message, content_text

NATIVE = Profile("schema", native=True)


class SchemaLLM(ScriptedLLM):
    """A model that answers every request with a valid value of the type it asks for; for smoke tests of whole programs.

    Decorated functions pass the schema of the return type inside the process, for every profile; other requests have it
    in the response format. A request for text gets a few words. Values respect lengths, ranges, formats, enumerations,
    unions and recursion; patterns need `examples` of the field, or rstr. Validators in code are not in the schema, and
    neither are the texts that a `Quoted` may copy, so a value may fail them. The same seed gives the same answer to the same
    request, independent of earlier requests.

    Args:
        seed: another seed gives other values.
        model_name: the name in replies and traces.
        profile: abilities of the model; by default JSON schema and tool calls.
        chunk_size: characters in each chunk of a stream; None splits like a model.
        tool_rounds: rounds of a run that call tools, with valid arguments, before the answer; 0 calls only required
            tools.
    """

    provider = "scripted"
    wants_schema = True

    def __init__(
        self,
        seed: int = 0,
        *,
        model_name: str = "schema",
        profile: Profile | None = None,
        chunk_size: int | None = None,
        tool_rounds: int = 0,
    ) -> None:
        if tool_rounds < 0:
            raise UsageError(f"tool_rounds is {tool_rounds}; it must be 0 or more.")
        super().__init__(
            self._reply, model_name=model_name, profile=profile or NATIVE, chunk_size=chunk_size, repeat=True
        )
        self.seed = seed
        self.tool_rounds = tool_rounds

    def __repr__(self) -> str:
        return f"SchemaLLM(seed={self.seed}, tool_rounds={self.tool_rounds}, asked={len(self.calls)})"

    def _reply(self, asked: ScriptedRequest) -> dict[str, Any]:
        rng = random.Random(f"{self.seed} {_digest(asked)}")  # noqa: S311 - data for tests, no secret
        offered = schema_of(asked.response_format)
        is_action = asks_for_action(asked.messages, asked.response_format)
        if is_action and offered is not None:
            return self._action(offered, asked, rng)
        if not is_action and (calls := self._calls(asked, rng)):
            return tool_calls(*calls)
        answer_tool = answer_tool_of(asked.tools)
        wanted = offered if asked.wanted_schema is None else asked.wanted_schema
        schema = parameters_of(answer_tool) if answer_tool else wanted
        made = words(rng) if schema is None else value_of(schema, rng)
        if schema is not None and offered is None and not answer_tool and not is_action:
            return {"role": "assistant", "content": json.dumps(made, ensure_ascii=False)}  # a text in quotes, too
        return answer_message(made, asked.messages, asked.tools, asked.response_format)

    def _calls(self, asked: ScriptedRequest, rng: random.Random) -> list[tuple[str, Any]]:
        """Return the tool calls of this turn; [] for an answer."""
        offered = list(asked.tools or ())
        answer_tool = answer_tool_of(offered)
        own = [tool for tool in offered if tool is not answer_tool]
        choice = asked.params.get("tool_choice")
        named = ((choice.get("function") or {}).get("name")) if isinstance(choice, Mapping) else None
        if named is not None:
            own = [tool for tool in own if tool["function"]["name"] == named]
        must = named is not None or (choice == "required" and answer_tool is None)
        if not own or choice == "none" or not (must or _rounds(asked.messages) < self.tool_rounds):
            return []
        chosen = rng.sample(own, rng.randint(1, min(2, len(own))))
        return [(tool["function"]["name"], value_of(parameters_of(tool), rng)) for tool in chosen]

    def _action(self, schema: Schema, asked: ScriptedRequest, rng: random.Random) -> dict[str, Any]:
        """Return a JSON action: the branches of its schema are one for each tool, and the answer last."""
        branches: Sequence[Schema] = schema.get("anyOf", ())
        answers = [branch for branch in branches if "answer" in branch.get("properties", {})]
        tools = [branch for branch in branches if branch not in answers]
        may_call = tools and _rounds(asked.messages) < self.tool_rounds
        chosen = rng.choice(tools) if tools and (may_call or not answers) else answers[0]
        made = value_of(chosen, rng, definitions=schema.get("$defs", {}))
        return {"role": "assistant", "content": json.dumps(made, ensure_ascii=False)}


def _rounds(messages: Sequence[Message]) -> int:
    """Return the number of tool rounds after the last user message."""
    rounds = 0
    for message in reversed(messages):
        text = content_text(message.get("content")) or ""
        if message["role"] == "user" and not text.startswith("Result of "):
            break
        is_call = message.get("tool_calls") or text.lstrip().startswith('{"tool"')
        rounds += bool(message["role"] == "assistant" and is_call)
    return rounds


def _digest(asked: ScriptedRequest) -> str:
    # Without call ids, which count the requests of this object.
    messages = [{key: part for key, part in each.items() if key != "tool_call_id"} for each in asked.messages]
    for message in messages:
        calls: Any = message.get("tool_calls")
        if calls:
            message["tool_calls"] = [call.get("function") for call in calls]
    said = [messages, asked.tools, asked.response_format]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()
