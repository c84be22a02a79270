"""The core of an `@llm_function`: how a typed answer is asked for, reviewed and handed out."""

from __future__ import annotations

from functools import cached_property
from types import GenericAlias
from typing import Any, get_args

from SimpleLLMFunc.base.output_mode import OutputSpec, choose_output_mode, compile_output
from SimpleLLMFunc.base.record import RunRecord
from SimpleLLMFunc.base.refusals import REFUSAL_WORDS, names_refusal, refused_by
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.result import Result
from SimpleLLMFunc.base.review import AnswerReview
from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.core import CallContext, Core, Plan, Run
from SimpleLLMFunc.llm_decorator.scope import iterator_kind
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.llm_decorator.steps.function.prompt import FixedPrompt, build_initial_prompts

__all__ = ["FunctionCore"]


class FunctionCore(Core):
    """The core of an `@llm_function`."""

    def prepare(self) -> None:
        """Compile the return type."""
        _ = self.spec

    @cached_property
    def spec(self) -> OutputSpec:
        """How the answer is asked for and read; an iterator's items go over the wire as a list."""
        return_type = self._scope.metadata(self.func)[2]
        if iterator_kind(return_type):
            item_type = (get_args(return_type) or (Any,))[0]
            return compile_output(GenericAlias(list, (item_type,)))
        return compile_output(return_type)

    @cached_property
    def _native_format(self) -> dict[str, Any] | None:
        # The strict form wherever it means the same: a model held to every key forgets none.
        return self.spec.response_format(strict=True) or self.spec.response_format(strict=False)

    @cached_property
    def fixed_prompt(self) -> FixedPrompt:
        """The parts of the prompt that are the same for every call."""
        _, hints, _, _, _ = self.metadata
        return FixedPrompt(hints, self.spec.return_type)

    def warm(self) -> None:
        """Build what copies of this core share."""
        _ = self.fixed_prompt

    def plan(self, signature: FunctionSignature, template_params: Any, llm: LLM_Interface) -> Plan:
        """Choose the output mode and build the first request."""
        options = self.options
        mode, reason = choose_output_mode(
            self.spec,
            llm.profile,
            options.output_mode,
            refused_by(llm) if options.output_mode == "auto" else frozenset(),
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
        request = ModelRequest(messages, self.specs_for(llm), response_format, options.llm_kwargs, answer_tool, actions)
        return Plan(request, mode, reason)

    def review(self, record: RunRecord) -> AnswerReview:
        """Read the answer, and ask again for one that does not fit."""
        options = self.options
        return AnswerReview(
            record,
            options.retry_times,
            spec=self.spec,
            repair=options.repair,
            max_reasks=options.max_reasks,
            description=self.fixed_prompt.return_type,
        )

    def refused_part(self, error: BadRequest, request: ModelRequest, run: CallContext) -> str | None:
        """Move down the ladder native → tool → prompt, and from native tool calls to JSON actions."""
        mode = run.record.output_mode
        if mode in REFUSAL_WORDS and self.options.output_mode == "auto" and names_refusal(error, mode):
            return mode
        return super().refused_part(error, request, run)

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
