"""Step 5 of `@llm_function`: the response becomes a value of the annotated type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from SimpleLLMFunc.base.parsing import Parsed, QuoteCheck
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import AnswerReview, Guards, read_off_loop, refuses_mode, remember_refusal
from SimpleLLMFunc.base.schemas import compile_output
from SimpleLLMFunc.errors import BadRequest, ResponseParseError
from SimpleLLMFunc.llm_decorator.steps.common.response import extract_response_content
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.llm_decorator.steps.function.prompt import FunctionParts, build_request
from SimpleLLMFunc.llm_decorator.steps.function.react import check_response_content_empty
from SimpleLLMFunc.type import ChatCompletion


def parse_response_to_type(response: Any, return_type: Any, *, read: Callable[[str], Parsed[Any]] | None = None) -> Any:
    """Return the value that the response holds.

    Args:
        response: a reply, also as dictionaries, or its text.
        return_type: of the function.
        read: reads the text; None reads it as `return_type` says.

    Raises:
        ResponseParseError: it does not fit the type (also a ValueError).
    """
    text = response if isinstance(response, str) else extract_response_content(response, "")
    return (read or compile_output(return_type).parse)(text).value


def parse_and_validate_response(
    response: Any, return_type: Any, func_name: str, *, read: Callable[[str], Parsed[Any]] | None = None
) -> Any:
    """Return the value that the response of `func_name` holds; the other arguments are those of `parse_response_to_type`.

    Raises:
        ResponseParseError: it does not fit the type (also a ValueError); names the function.
    """
    try:
        return parse_response_to_type(response, return_type, read=read)
    except ResponseParseError as error:
        error.with_run(func_name=func_name)
        raise


class FunctionReview(AnswerReview):
    """Reads every reply of a run and asks again if it does not fit.

    Args:
        run: the run; the accepted answer is written there, too.
        parts: of the function.
        guards: of the function.
    """

    def __init__(self, run: FunctionRun, parts: FunctionParts, guards: Guards | None = None) -> None:
        options, output = parts.options, parts.output
        super().__init__(
            run,
            parts.tools,
            retry_times=options.retry_times,
            spec=output,
            repair=options.repair,
            max_reasks=options.max_reasks,
            description=parts.fixed.return_type,
            quotes=QuoteCheck(run.arguments) if output.quotes else None,
            guards=guards,
        )
        self.parts, self._function_run = parts, run

    def is_empty(self, reply: ChatCompletion) -> bool:
        """Say whether the model answered with nothing."""
        return check_response_content_empty(reply, self.run.func_name)

    async def read(self, reply: ChatCompletion) -> Parsed[Any]:
        """Return the value that a reply holds.

        Raises:
            ResponseParseError: no one value fits.
        """
        name = self.run.func_name
        found: Parsed[Any] = Parsed(None)

        def read(text: str) -> Parsed[Any]:
            nonlocal found
            found = self.spec.parse(text, self.repair, mode=self.run.output_mode)
            return found

        parse = partial(parse_and_validate_response, reply, self.spec.return_type, name, read=read)
        value = await read_off_loop(self.spec, len(extract_response_content(reply, name)), parse)
        return replace(found, value=value)

    async def value_of(self, reply: ChatCompletion) -> Parsed[Any]:
        """Return the value of the reply that the loop ended with: the review has read it, where it is its own.

        Raises:
            ResponseParseError: no one value fits.
        """
        if self.run.parsed is None or reply is not self.run.reply:
            self.run.parsed = await self.read(reply)
        return self.run.parsed

    def refused(self, error: BadRequest, request: ModelRequest) -> ModelRequest | None:
        """Return the request in another form: down the ladder native → tool → prompt, or with tools as JSON actions."""
        mode = request.output_mode
        is_ours = mode == "choice" or (self.parts.options.output_mode == "auto" and mode in {"native", "tool"})
        if is_ours and refuses_mode(error, request):
            remember_refusal(error, request.llm, mode, self.spec.schema)
        elif super().refused(error, request) is None:
            return None
        # As it would be asked for now: another way to ask may take other words.
        return build_request(self._function_run, self.parts, request.llm)
