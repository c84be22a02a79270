"""The core of an `@llm_function`: how a typed answer is asked for, reviewed and handed out."""

from __future__ import annotations

import inspect
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import REFUSAL_WORDS, AnswerReview, Result, RunRecord, names_refusal, refused_by
from SimpleLLMFunc.base.schemas import OutputSpec, choose_output_mode, compile_output
from SimpleLLMFunc.errors import BadRequest, ConfigError, SignatureError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.core import CallContext, Core, Plan, Run
from SimpleLLMFunc.llm_decorator.options import Options
from SimpleLLMFunc.llm_decorator.scope import iterator_kind
from SimpleLLMFunc.llm_decorator.steps.common.prompt import extract_parameter_type_hints
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.llm_decorator.steps.function.prompt import FixedPrompt, build_initial_prompts, quotes_line
from SimpleLLMFunc.logger import get_location, push_warning
from SimpleLLMFunc.type import Message, confident_type

if TYPE_CHECKING:  # loaded where a function has them: a start need not pay for what few use
    from SimpleLLMFunc.base.parsing import QuoteCheck
    from SimpleLLMFunc.llm_decorator.answering.answering import Answering
    from SimpleLLMFunc.llm_decorator.answering.plain_code import Agreement
    from SimpleLLMFunc.llm_decorator.answering.voting import ConfidentOutput
    from SimpleLLMFunc.llm_decorator.steps.function.examples import Example, Examples

__all__ = ["FunctionCore"]


class FunctionCore(Core):
    """The core of an `@llm_function`."""

    def prepare(self) -> None:
        """Compile the return type, and check what has to fit it."""
        _ = self.spec
        if self.options.examples is not None:
            _ = self.examples
        self._check_answering()

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return this core with other options."""
        other = super().with_options(options)
        if not vars(other).keys() >= {"spec"}:
            return other  # an annotation is not resolved yet
        if options.keys() & {"examples", "max_examples", "user_prompt_template"}:
            vars(other).pop("examples", None)
        if options.keys() & {"first", "fallback"}:
            vars(other).pop("agreement", None)
        for name in ("answering", "confident_output"):
            vars(other).pop(name, None)
        other.prepare()
        return other

    @cached_property
    def examples(self) -> Examples | None:
        """The examples to show, checked; None where there are none."""
        options = self.options
        if options.examples is None:
            return None
        from SimpleLLMFunc.llm_decorator.steps.function.examples import ExampleReader, Examples

        reader = ExampleReader(*self._called()[:3], self.spec)
        beside = _folder_of(self.func)
        return Examples(options.examples, reader, options.max_examples, options.user_prompt_template, beside)

    def _called(self) -> tuple[str, inspect.Signature, Mapping[str, Any], bool]:
        """Return name, signature and hints of the function as it is called, and whether it is a method.

        A method's signature is without the instance.
        """
        signature, hints, _, _, name = self.metadata
        # At decoration nobody has told yet that the function stands in a class.
        is_method = self.binds_class or (not self.is_static and _stands_in_class(self.func))
        if is_method and not self.takes_instance:
            signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        return name, signature, extract_parameter_type_hints(hints), is_method or self.takes_instance

    @property
    def plans_slowly(self) -> bool:
        """Whether examples are chosen among many."""
        return self.options.examples is not None and self.examples is not None and self.examples.choice_is_slow

    @property
    def _return_type(self) -> Any:
        return self._scope.metadata(self.func)[2]

    def _confident(self, return_type: Any) -> tuple[Any] | None:
        try:
            return confident_type(return_type)
        except TypeError as error:
            raise SignatureError(f"{getattr(self.func, '__name__', self.func)}: {error}") from error

    @cached_property
    def confident_output(self) -> ConfidentOutput | None:
        """How the value of a function annotated ``-> Confident[T]`` is decided and kept; None for any other."""
        if not self._confident(self._return_type):
            return None
        from SimpleLLMFunc.llm_decorator.answering.voting import ConfidentOutput

        return ConfidentOutput(self.spec, self._return_type, self.options.min_agreement, self.options.vote_on)

    @cached_property
    def agreement(self) -> Agreement:
        """Counts who answers, plain code or the model."""
        from SimpleLLMFunc.llm_decorator.answering.plain_code import Agreement

        return Agreement()

    @cached_property
    def answering(self) -> Answering | None:
        """Who answers a call, where that is more than one question to the model; None for most functions."""
        options = self.options
        has_code = options.first is not None or options.fallback is not None
        if not has_code and self.confident_output is None:
            return None
        from SimpleLLMFunc.llm_decorator.answering.answering import Answering
        from SimpleLLMFunc.llm_decorator.answering.plain_code import PlainCode

        if not has_code:
            return Answering(None, None, self.agreement)
        name, signature, hints, is_method = self._called()
        inner = self._confident(self._return_type)
        hints = {**hints, "return": inner[0] if inner else self._return_type}
        codes = [
            PlainCode(kind, code, name, signature, hints, is_method=is_method) if code is not None else None
            for kind, code in _kinds(options)
        ]
        return Answering(codes[0], codes[1], self.agreement)

    def _check_answering(self) -> None:
        """Check that what the decorator was told of votes and plain code fits the function."""
        options, name = self.options, getattr(self.func, "__name__", "")
        plain = [kind for kind, code in _kinds(options) if code is not None]
        if iterator_kind(self._return_type) and plain:
            raise SignatureError(f"{name}: {plain[0]}= is for a function that returns one value, not for an iterator.")
        if not self._confident(self._return_type):
            names = ("votes", "min_agreement", "vote_on", "escalate_to")
            told = [each for each in names if getattr(options, each) is not None]
            if told:
                raise ConfigError(f"{name}: {', '.join(told)} is for a function annotated `-> Confident[...]`.")
        elif options.llm_kwargs.get("temperature") == 0:
            push_warning(f"{name!r} votes, and temperature=0 makes all votes the same.", location=get_location())
        if self.answering is not None:
            _ = self.agreement  # shared by all copies

    @cached_property
    def spec(self) -> OutputSpec:
        """How the answer is asked for and read; an iterator's items go over the wire as a list."""
        return_type = self._return_type
        if confident := self._confident(return_type):
            return compile_output(confident[0])
        if iterator_kind(return_type):
            item_type = (get_args(return_type) or (Any,))[0]
            return compile_output(GenericAlias(list, (item_type,)))
        return compile_output(return_type)

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """JSON Schema of the answer; None for plain text."""
        return None if self.spec.is_text else self.spec.schema

    @property
    def version_parts(self) -> list[Any]:
        """What else makes the function another one: templates, examples, what has to be quoted, plain code; JSON data."""
        return [*super().version_parts, *([part] if (part := self.own_definition()) else [])]

    def own_definition(self) -> dict[str, Any]:
        """Return by name what only some functions have; empty for all others."""
        found: dict[str, Any] = {}
        if self.options.examples is not None and self.examples is not None:
            found |= self.examples.definition()
        options = self.options
        if self.confident_output is not None:
            found["votes"] = [options.votes, options.min_agreement, list(options.vote_on or ())]
            found["escalate_to"] = options.escalate_to.model_name if options.escalate_to else ""
        for kind, code in _kinds(options):
            if code is not None:
                from SimpleLLMFunc.llm_decorator.answering.plain_code import code_version

                found[kind] = code_version(code)
        if self.spec.quotes:
            found["quotes"] = list(self.spec.quotes)
        return found

    @cached_property
    def _native_format(self) -> dict[str, Any] | None:
        # The strict form wherever it means the same: a model held to every key forgets none.
        return self.spec.response_format(strict=True) or self.spec.response_format(strict=False)

    @cached_property
    def fixed_prompt(self) -> FixedPrompt:
        """The parts of the prompt that are the same for every call."""
        _, hints, _, _, _ = self.metadata
        return FixedPrompt(hints, self.spec.return_type, quotes_line(self.spec.quotes))

    def warm(self) -> None:
        """Build what copies of this core share."""
        _ = self.fixed_prompt
        if self.answering is not None:
            _ = self.agreement

    def plan(self, signature: FunctionSignature, template_params: Any, llm: LLM_Interface) -> Plan:
        """Choose the output mode and build the first request."""
        options = self.options
        mode, reason = choose_output_mode(
            self.spec,
            llm.profile,
            options.output_mode,
            refused_by(llm) if options.output_mode == "auto" and not self.spec.is_text else frozenset(),
            has_tools=bool(options.toolkit),
        )
        messages = build_initial_prompts(
            signature,
            options.system_prompt_template,
            options.user_prompt_template,
            template_params,
            mode,
            self.fixed_prompt,
        )
        response_format = self._native_format if mode == "native" else None
        answer_tool = self.spec.answer_tool() if mode == "tool" else None
        actions = None
        if answer_tool is None:
            actions = self.actions_for(llm, None if mode == "text" else self.spec.schema)
        if options.examples is not None and self.examples is not None:
            arguments = signature.bound_args.arguments
            messages[1:1] = self.examples.messages(arguments, mode, as_action=actions is not None)
        request = ModelRequest(messages, self.specs_for(llm), response_format, options.llm_kwargs, answer_tool, actions)
        return Plan(request, mode, reason)

    def lesson(self, example: Example) -> list[Message]:
        """Return a conversation from which a model can learn to answer as the example does: question and answer.

        The answer is asked for as the function would ask its model now.

        Raises:
            ConfigError: there is no model to ask.
        """
        from SimpleLLMFunc.llm_decorator.steps.function.answers import answer_messages

        signature, hints, _, docstring, name = self.metadata
        bound = inspect.BoundArguments(signature, OrderedDict(example.arguments))
        asked = FunctionSignature(name, "", bound, signature, hints, self.spec.return_type, docstring)
        plain = self if self.options.examples is None else self.with_options({"examples": None})
        plan = plain.plan(asked, self.options.template_params, resolve_llm(self.options.llm_interface))
        return [*plan.request.messages, *answer_messages(self.spec, example.answer, plan.mode)]

    def review(self, record: RunRecord, signature: FunctionSignature) -> AnswerReview:
        """Read the answer, and ask again for one that does not fit."""
        options = self.options
        return AnswerReview(
            record,
            options.retry_times,
            spec=self.spec,
            repair=options.repair,
            max_reasks=options.max_reasks,
            description=self.fixed_prompt.return_type,
            quotes=_quotes_in(signature) if self.spec.quotes else None,
        )

    def refused_part(self, error: BadRequest, request: ModelRequest, run: CallContext) -> str | None:
        """Move down the ladder native → tool → prompt, and from native tool calls to JSON actions."""
        mode = run.record.output_mode
        if mode in REFUSAL_WORDS and self.options.output_mode == "auto" and names_refusal(error, mode):
            return mode
        return super().refused_part(error, request, run)

    def ask_value(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        """Return the value of a call when awaited, whoever answers it."""
        if self.answering is None:
            return self.value(self.start(args, kwargs, stream=False, is_shared=False))
        return self.answering.value(self, args, kwargs)

    def events(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of a call, with the replies in pieces; of all its runs where it has several."""
        return super().events(args, kwargs) if self.answering is None else self.answering.events(self, args, kwargs)

    def ask_result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Result[Any]]:
        """Return the result of a call when awaited, whoever answers it."""
        if self.answering is None:
            return self.result(self.start(args, kwargs, stream=False, is_shared=False))
        return self.answering.result(self, args, kwargs)

    async def value(self, run: Run) -> Any:
        """Read a run to its end and return its value; `result` knows more of it, and takes longer."""
        await run.finish()
        assert isinstance(run.review, AnswerReview), "a function is reviewed"
        assert run.review.parsed is not None, "an accepted answer was parsed"
        return run.review.parsed.value

    async def result(self, run: Run) -> Result[Any]:
        """Read a run to its end and return what it found."""
        await run.finish()
        record = run.record
        assert isinstance(run.review, AnswerReview), "a function is reviewed"
        assert run.review.parsed is not None, "an accepted answer was parsed"
        assert record.reply is not None, "a finished run has a reply"
        return Result(
            value=run.review.parsed.value,
            text=record.reply.text,
            repairs=run.review.parsed.repairs,
            tries=record.reply.tries,
            **record.facts(),
        )


def _quotes_in(signature: FunctionSignature) -> QuoteCheck:
    from SimpleLLMFunc.base.parsing import QuoteCheck

    return QuoteCheck(signature.bound_args.arguments)


def _kinds(options: Options) -> list[tuple[Literal["first", "fallback"], Callable[..., Any] | None]]:
    return [("first", options.first), ("fallback", options.fallback)]


def _stands_in_class(func: Any) -> bool:
    around = getattr(func, "__qualname__", "").rpartition(".")[0]
    return bool(around) and not around.endswith("<locals>")


def _folder_of(func: Any) -> Path | None:
    """Return the folder of the module that a function stands in; None where it stands in no file."""
    place = getattr(sys.modules.get(getattr(func, "__module__", "")), "__file__", None)
    return Path(place).parent if place else None
