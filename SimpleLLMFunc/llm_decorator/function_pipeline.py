"""The five steps of a call of an `@llm_function`."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.metadata import code_version
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import Answer, Result
from SimpleLLMFunc.base.schemas import OutputSpec, ThinkFirst
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import citations_in
from SimpleLLMFunc.llm_decorator.definition import Definition, check_choice
from SimpleLLMFunc.llm_decorator.pipeline import Pipeline
from SimpleLLMFunc.llm_decorator.steps.common import log_context
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.react import Prepared
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.llm_decorator.steps.function import prompt, react, response
from SimpleLLMFunc.llm_decorator.steps.function.answers import answer_messages
from SimpleLLMFunc.llm_decorator.steps.function.improvement import Improvement
from SimpleLLMFunc.llm_decorator.steps.function.stream import growing_values, list_items
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.type import Message
from SimpleLLMFunc.utils import in_context, stepped

if TYPE_CHECKING:  # loaded where a function has them: a start need not pay for what few use
    from SimpleLLMFunc.llm_decorator.steps.function.examples import Example, Examples

_EXAMPLES = ("examples", "max_examples", "embeddings")


class FunctionPipeline(Pipeline):
    """An `@llm_function`: the five steps, and the views of them.

    Step 1 binds the arguments where the function is called; the others follow when a view is read.

    Args:
        definition: the function.
        options: the decorator's arguments.
        examples: those of the options, where they were read before.

    Raises:
        SignatureError: its return type has no schema, or an example does not fit it.
        ConfigError: there is no such file of examples.
        ToolDefinitionError: a tool the model could not be told about.
    """

    kind = "function"
    voting = None
    """A pipeline alone asks once; see `Answering`."""

    def __init__(self, definition: Definition, options: Options, examples: Examples | None = None) -> None:
        super().__init__(definition, options)
        self._examples = examples
        if definition.knows("output"):  # else an annotation names what is defined later
            _ = definition.output, self.examples
            check_choice(definition, options)

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return the pipeline of the same function with other options; an improvement goes over those given with it.

        Raises:
            ConfigError: the improvement cannot be read, or is for another version of the function.
        """
        if "improvement" in options:
            return self.followed_by(self._improved(options), options)
        return super().with_options(options)

    def _again(self, definition: Definition, options: Options) -> Self:
        is_same = all(getattr(options, name) is getattr(self.options, name) for name in _EXAMPLES)
        return type(self)(definition, options, self.examples if is_same and definition.knows("output") else None)

    def documented(self, docstring: str) -> FunctionPipeline:
        """Return the pipeline of the same function with another docstring."""
        found = self.options.improvement
        wording = {**({} if found is None else found.wording), "docstring": docstring}
        return FunctionPipeline(self.definition.reworded(wording), self.options)

    def _improved(self, options: Mapping[str, Any]) -> Self:
        found, before = Improvement.of(options["improvement"]), self.options.improvement
        options = {**({} if before is None else before.replaced), **options, "improvement": None}
        plain = type(self)(self.definition.reworded({}), self.options.changed(options, self.kind))
        if found is None:
            return plain
        if not found.is_checked and plain.definition.knows("output"):
            found.check(plain.called.metadata)
            found = replace(found, is_checked=True)
        ours = found.decorator_options
        found = replace(found, replaced={name: getattr(plain.options, name) for name in ours})
        changed = replace(plain.options.changed(ours, self.kind), improvement=found)
        return type(self)(plain.definition.reworded(found.wording), changed)

    @property
    def called(self) -> Self:
        """The pipeline as it is called: for a function in a class, without the instance."""
        return self.as_method() if self.definition.as_called()[1] else self

    def bound(self, instance: object) -> Self:  # noqa: ARG002
        """Return the same for a method of this instance: the model does not see the instance."""
        return self

    # --- steps 2 to 5 ---

    async def _events(self, run: FunctionRun) -> AsyncGenerator[ReActEvent, None]:
        async with log_context.setup_log_context(run.func_name, run.trace_id, run.arguments), run:  # 2
            await self.guard(run)
            request = await prompt.first_request(run, self.parts)  # 3
            review = response.FunctionReview(run, self.parts, self.guards)  # 5: reads every reply of the loop
            async with aclosing(react.answer_events(run, request, self.tools, review)) as events:  # 4
                async for event in events:
                    yield event

    async def _reply(self, run: FunctionRun) -> Any:
        async with log_context.setup_log_context(run.func_name, run.trace_id, run.arguments), run:  # 2
            await self.guard(run)
            request = await prompt.first_request(run, self.parts)  # 3
            review = response.FunctionReview(run, self.parts, self.guards)  # 5: reads every reply of the loop
            reply = await react.execute_react_loop(  # 4
                request.llm,
                request.messages,
                self.options.toolkit,
                self.options.max_tool_calls,
                run.params,
                run.func_name,
                prepared=Prepared(run, request, self.tools, review),
            )
            return (await review.value_of(reply)).value

    # --- the views ---

    def value(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        """Return the value of a call when awaited."""
        return self._value(self.start(args, kwargs))

    @border
    async def _value(self, run: FunctionRun) -> Any:
        return await stepped(self._reply(run), run.context)

    def result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Result[Any]]:
        """Return the value of a call with all that is known of it when awaited."""
        return self.result_of(self.start(args, kwargs))

    @border
    async def result_of(self, run: FunctionRun, emit: Callable[[ReActEvent], object] | None = None) -> Result[Any]:
        """Read a run that `start` gave to its end, and return what it found; `emit` is called with each event."""
        if emit is None:
            await stepped(self._reply(run), run.context)
        else:
            async with aclosing(self.events_of(run)) as events:
                async for event in events:
                    emit(event)
        parsed, reply = run.parsed, run.reply
        assert parsed is not None, "an accepted answer was parsed"
        assert reply is not None, "and there was a reply"
        return Result(
            value=parsed.value,
            text=reply.text,
            repairs=parsed.repairs,
            tries=reply.tries,
            thinking="\n".join(filter(None, (reply.message.reasoning_content, parsed.thinking))),
            server_tools=run.server_tools,
            citations=citations_in({**reply.message.extra, "content": reply.text}),
            **run.facts(),
        )

    async def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer[Any]:
        """Return the answer for a row of a map."""
        result = await self.result_of(self.start(args, kwargs))
        return Answer(result.value, result.text, result.output_mode, result.usage, result.tries)

    def events_of(self, run: FunctionRun) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of a run that `start` gave."""
        return in_context(self._events(run), run.context)

    def stream(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Return the growing values of a call, the last one complete; for `str` each new piece of text."""
        run = self.start(args, kwargs, stream=True)
        return growing_values(self.events_of(run), run, self.parts, is_held=self.guards.judge_values)

    def items(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Return the items of a call of a function that gives an iterator, each when it is complete."""
        run = self.start(args, kwargs, stream=True)
        return list_items(self.events_of(run), run, self.parts, is_held=self.guards.judge_values)

    def planned(self, run: FunctionRun, llm: LLM_Interface) -> ModelRequest:
        """Return what the run would send first."""
        return prompt.build_request(run, self.parts, llm)

    # --- built once ---

    @cached_property
    def examples(self) -> Examples | None:
        """The examples to choose from, checked, or None."""
        options, definition = self.options, self.definition
        if self._examples is not None or options.examples is None:
            return self._examples
        from SimpleLLMFunc.llm_decorator.steps.function.examples import ExampleReader, Examples

        reader = ExampleReader(definition.name, definition.as_called()[0], definition.hints, definition.output)
        return Examples(options, reader, definition.folder)

    @cached_property
    def parts(self) -> prompt.FunctionParts:
        """The parts that the steps need; built once."""
        definition, found = self.definition, self.options.improvement
        if found is not None and not found.is_checked:  # when it was given, an annotation could not be read yet
            found.check(self.with_options({"improvement": None}).metadata)
        check_choice(definition, self.options)  # it could not be done earlier where the return type was defined later
        output = self.output
        asked = output.asked_type if isinstance(output, ThinkFirst) else output.return_type
        fixed = prompt.FixedPrompt(definition.metadata, asked, definition.note)
        return prompt.FunctionParts(self.options, output, fixed, self.tools, self.examples)

    @cached_property
    def output(self) -> OutputSpec:
        """How the answer is asked for and read, with the reasons before it where they are wanted."""
        plain = self.definition.output
        return ThinkFirst(plain, has_examples=self.examples is not None) if self.options.think_first else plain

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """JSON Schema of the answer; None for plain text."""
        output = self.definition.output
        return None if output.is_text else output.schema

    @property
    def version_parts(self) -> list[Any]:
        """The parts of the version besides docstring, signature, types and tools, as JSON data."""
        own = self.own_version_parts()
        return [*super().version_parts, *([own] if own else [])]

    def own_version_parts(self) -> dict[str, Any]:
        """Return these parts by name; empty for a function that has none."""
        found = self.examples.definition() if self.examples is not None else {}
        options = self.options
        if self.definition.confident_of is not None:
            found["votes"] = [options.votes, options.min_agreement, list(options.vote_on or ())]
            if options.confidence != "auto":
                found["votes"].append(options.confidence)
            found["escalate_to"] = options.escalate_to.model_name if options.escalate_to else ""
        if isinstance(options.calibration, Calibration):
            found["calibration"] = options.calibration.digest
        for kind, code in (("first", options.first), ("fallback", options.fallback)):
            if code is not None:
                found[kind] = code_version(code)
        if options.think_first:
            found["think_first"] = True
        if options.improvement is not None and options.improvement.options:
            found["improvement"] = dict(options.improvement.options)
        if self.definition.output.quotes:
            found["quotes"] = list(self.definition.output.quotes)
        return found

    def lesson(self, example: Example) -> list[Message]:
        """Return a conversation from which a model can learn to answer as the example does: question and answer.

        The answer is asked for as the function would ask its model now.

        Raises:
            ConfigError: there is no model to ask.
        """
        if self.examples is not None:
            return self.with_options({"examples": None}).lesson(example)
        own, hints, _, docstring, name = self.definition.metadata
        bound = inspect.BoundArguments(own, OrderedDict(example.arguments))
        asked = FunctionSignature(name, "", bound, own, hints, self.definition.output.return_type, docstring)
        request = self.planned(FunctionRun(self, asked, None, self.options), self.llm)
        in_json = request.response_format is not None
        said = answer_messages(self.output, example.answer, request.output_mode, in_json=in_json)
        return [*request.messages, *said]
