"""Step 3 of `@llm_function`: docstring, parameters and return type become a system and a user message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.base import type_resolve
from SimpleLLMFunc.base.messages import build_multimodal_content, render_value
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.request import ModelRequest, Toolset
from SimpleLLMFunc.base.run import downgrades_of, json_actions, refused_by
from SimpleLLMFunc.base.schemas import (
    ANSWER_TOOL,
    OutputSpec,
    choose_output_mode,
    field_descriptions,
    grammar_of,
    labels_text,
)
from SimpleLLMFunc.base.templates import fill_fields
from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.prompt import check_multimodal_content, filled_docstring
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.llm_decorator.steps.common.signature import type_of_argument
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature, Metadata
from SimpleLLMFunc.llm_decorator.steps.function import templates
from SimpleLLMFunc.llm_decorator.steps.function.answers import answer_messages
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.tools.schemas import own_description, taken_apart
from SimpleLLMFunc.type import ContentPart, Message, spec_name

if TYPE_CHECKING:  # loaded where a function has them: a start need not pay for what few use
    from SimpleLLMFunc.llm_decorator.steps.function.examples import Example, Examples

_SIMPLE_TYPES = (str, int, float, bool, type(None))


def build_parameter_type_descriptions(
    param_type_hints: Mapping[str, Any], descriptions: Mapping[str, str] | None = None
) -> list[str]:
    """Return one line per parameter: ``"  - name: what its type is — what it holds"``.

    Args:
        param_type_hints: name to annotation.
        descriptions: what the docstring says of them, where it does.
    """
    lines: list[str] = []
    for name, hint in param_type_hints.items():
        described = (descriptions or {}).get(name, "").replace("\n", "\n    ")
        kind = type_resolve.get_detailed_type_description(hint) if hint else "Unknown Type"
        lines.append(f"  - {name}: {kind}{f' — {described}' if described else ''}")
    return lines


def build_return_type_description(
    return_type: Any, described_as: Callable[[Any], Any] = type_resolve.build_type_description_json
) -> str:
    """Return the description of a return type: a sentence, and for anything made of parts its JSON and an example.

    Args:
        return_type: the annotation.
        described_as: gives its JSON.
    """
    if return_type is None:
        return "未知类型"
    if not _is_complex_type(return_type):
        return type_resolve.get_detailed_type_description(return_type)
    described = json.dumps(described_as(return_type), ensure_ascii=False, indent=2)
    example = json.dumps(type_resolve.generate_example_object(return_type), ensure_ascii=False, indent=2)
    return f"Type Description (JSON):\n{described}\n\nExample JSON:\n{example}"


def _is_complex_type(return_type: Any) -> bool:
    """Say whether a type takes more than a sentence: everything but plain text, numbers, yes/no and nothing."""
    return return_type not in _SIMPLE_TYPES


def build_text_messages(
    processed_docstring: str,
    param_type_descriptions: Sequence[str],
    return_type_description: str,
    arguments: Mapping[str, Any],
    system_template: str,
    user_template: str,
    mark: str = "  - ",
) -> list[Message]:
    """Return the system and the user message as text; `mark` begins the line of each argument.

    Raises:
        TemplateError: a template has a field that cannot be filled.
    """
    told = {
        "function_description": processed_docstring,
        "parameters_description": "\n".join(param_type_descriptions),
        "return_type_description": return_type_description,
    }
    given = "\n".join([f"{mark}{name}: {render_value(value)}" for name, value in arguments.items()])
    system_prompt = fill_fields(system_template, told, name="system_prompt_template").strip()
    user_prompt = fill_fields(user_template, {"parameters": given}, name="user_prompt_template").strip()
    return [{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}]


def build_multimodal_messages(
    system_prompt: str, arguments: Mapping[str, Any], type_hints: Mapping[str, Any]
) -> list[Message]:
    """Return the system message and a user message whose content is parts: text, images, sounds, files."""
    content: list[ContentPart] = build_multimodal_content(dict(arguments), dict(type_hints))
    return [{"role": "system", "content": system_prompt}, {"role": "user", "content": content}]


def build_initial_prompts(
    signature: FunctionSignature,
    system_prompt_template: str | None = None,
    user_prompt_template: str | None = None,
    template_params: Mapping[str, Any] | None = None,
    output_mode: OutputMode = "prompt",
    fixed: FixedPrompt | None = None,
    *,
    short: bool = False,
    labels: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> list[Message]:
    """Return the two messages that a run begins with.

    Args:
        signature: of the call.
        system_prompt_template: with the fields `function_description`, `parameters_description`,
            `return_type_description`; None for the default of the output mode.
        user_prompt_template: with the field `parameters`.
        template_params: for the fields of the docstring.
        output_mode: in "prompt" the default template describes the return type; else the provider knows it.
        fixed: the parts that do not change between calls, where they were built before.
        short: the default template outside of "prompt" is the one for small models.
        labels: of a choice, which the system prompt names.
        schema: of a record, whose fields the template for small models names.

    Raises:
        TemplateError: a template has a field that cannot be filled.
    """
    if fixed is None:
        name, _, _, written, hints, return_type, described = signature
        fixed = FixedPrompt((written, hints, return_type, described, name), return_type)
    plain = templates.SHORT_SYSTEM_PROMPT_TEMPLATE if short else templates.PLAIN_SYSTEM_PROMPT_TEMPLATE
    returned = ""
    if labels:
        plain = templates.SHORT_CHOICE_PROMPT_TEMPLATE if short else templates.CHOICE_SYSTEM_PROMPT_TEMPLATE
        returned = labels_text(labels)
    elif short and not system_prompt_template and (fields := field_descriptions(schema or {})):
        plain = templates.SHORT_FIELDS_PROMPT_TEMPLATE
        returned = "\n".join(f"- {path}{said and f': {said}'}" for path, said in fields.items())
    default = templates.DEFAULT_SYSTEM_PROMPT_TEMPLATE if output_mode == "prompt" else plain
    template = system_prompt_template or default
    if returned and "{return_type_description}" not in template:
        template += "\n\n{return_type_description}"
    docstring, lines = fixed.filled(template_params, has_list="{parameters_description}" in template)
    arguments, hints = signature.bound_args.arguments, signature.type_hints
    is_multimodal = check_multimodal_content(arguments, hints)
    given = {} if is_multimodal else arguments
    user_template, mark = _user_template(user_prompt_template, short=short)
    returned = returned or fixed.return_type
    messages = build_text_messages(docstring, lines, returned, given, template, user_template, mark)
    return build_multimodal_messages(str(messages[0]["content"]), arguments, hints) if is_multimodal else messages


def _user_template(given: str | None, *, short: bool) -> tuple[str, str]:
    """Return the template of the user message, and the mark before each argument."""
    if short and given is None:
        return templates.SHORT_USER_PROMPT_TEMPLATE, ""
    return given or templates.DEFAULT_USER_PROMPT_TEMPLATE, "  - "


def build_user_message(
    arguments: Mapping[str, Any], type_hints: Mapping[str, Any], user_prompt_template: str | None, *, short: bool
) -> Message:
    """Return the message that gives the arguments of an example, as `build_initial_prompts` gives those of a call."""
    if check_multimodal_content(arguments, type_hints):
        return build_multimodal_messages("", arguments, type_hints)[1]
    return build_text_messages("", [], "", arguments, "", *_user_template(user_prompt_template, short=short))[1]


class FixedPrompt:
    """The parts of the prompt that are the same for every call of a function.

    Args:
        metadata: of the function. Its name replaces a missing docstring: a model that is told nothing has to guess from
            the arguments.
        return_type: what the model gives back.
        note: follows the docstring.
    """

    def __init__(self, metadata: Metadata, return_type: Any, note: str = "") -> None:
        signature, self.hints, _, docstring, name = metadata
        self.return_type = build_return_type_description(return_type)
        description, told = taken_apart(docstring)
        self._docstring, self._description, self._note = docstring or name, description or name, note
        # In the order of the signature; what else the docstring describes (the keys of **options) follows.
        self._types = {name: type_of_argument(each, self.hints) for name, each in signature.parameters.items()}
        self._types |= {name: Any for name in told if name not in self._types}
        self._told = {
            name: f"{text} ({kind})".strip() if kind and self._types[name] is Any else text
            for name, (text, kind) in told.items()
        }

    def filled(self, template_params: Mapping[str, Any] | None, *, has_list: bool) -> tuple[str, list[str]]:
        """Return the docstring and the lines about the parameters, with their fields filled.

        Without a list of parameters, what the docstring says of them stays in it.
        """
        parts = [self._description if has_list else self._docstring, *self._told.values()]
        described, *texts = filled_docstring(parts, template_params)
        noted = f"{described}\n\n{self._note}".strip() if self._note else described
        # What an annotation says itself comes before the docstring, as it does for a tool.
        said = {name: text for name, hint in self.hints.items() if (text := own_description(hint))}
        return noted, build_parameter_type_descriptions(self._types, dict(zip(self._told, texts, strict=True)) | said)


# --- the request that these messages open ---


@dataclass(frozen=True, slots=True)
class FunctionParts:
    """The parts that the steps of a function need: built once, the same for all of its calls.

    Attributes:
        options: the decorator's arguments.
        output: how the answer is asked for and read.
        fixed: the parts of the prompt that do not change.
        tools: what the model may call.
        examples: to choose from for each call, or None.
    """

    options: Options
    output: OutputSpec
    fixed: FixedPrompt
    tools: Toolset
    examples: Examples | None


async def first_request(run: FunctionRun, parts: FunctionParts) -> ModelRequest:
    """Return what a call sends first, to the model that is current now; see `build_request`.

    Raises:
        ConfigError: there is no model to ask.
    """
    llm = resolve_llm(parts.options.llm_interface)
    if parts.examples is not None:
        run.example_numbers = await parts.examples.nearest(run.arguments)
    if run.takes_long_to_write:
        return await in_thread(build_request, run, parts, llm)
    return build_request(run, parts, llm)


def build_request(run: FunctionRun, parts: FunctionParts, llm: LLM_Interface) -> ModelRequest:
    """Choose how the answer is asked for, and return the request: the prompts, examples, tools and the answer's shape.

    Raises:
        TemplateError: a template has a field that cannot be filled.
        ToolDefinitionError: a tool has the name of the one that takes the answer.
    """
    options, output, tools = parts.options, parts.output, parts.tools
    refused = refused_by(llm, output.schema)
    mode, reason = choose_output_mode(
        output, llm.profile, options.output_mode, refused.keys(), has_tools=bool(tools.specs)
    )
    messages = build_initial_prompts(
        run.signature,
        options.system_prompt_template,
        options.user_prompt_template,
        run.template_params,
        mode,
        parts.fixed,
        short=llm.profile.short_prompt,
        labels=output.labels if mode == "choice" else None,
        schema=output.wire_schema if mode == "native" and not output.is_wrapped else None,
    )
    shape, held = _shape_of(output, mode, llm, refused)
    answer_tool = output.answer_tool() if mode == "tool" else None
    if answer_tool and ANSWER_TOOL in map(spec_name, tools.specs or ()):
        problem = "in output mode 'tool' the tool of this name takes the answer. Give yours another `name=`."
        raise ToolDefinitionError(ANSWER_TOOL, problem)
    actions = None
    if answer_tool is None:
        actions = json_actions(llm, tools.specs, None if mode == "text" else output.schema, tools.offered)
    params = {**tools.named(run.params), **held}
    wanted = None if mode == "text" or output.is_text else output.schema
    request = ModelRequest(
        llm, messages, tools.specs_for(llm), shape, params, answer_tool, actions, mode, reason, wanted
    )
    if parts.examples is not None:
        examples = parts.examples.chosen(run.arguments, run.example_numbers)
        request = request.with_messages([messages[0], *_example_messages(parts, examples, request), *messages[1:]])
    schema = output.schema if options.output_mode in {"auto", "choice", *refused} else None
    return replace(request, downgrades=downgrades_of(request, schema, tools.specs))


def _shape_of(
    output: OutputSpec, mode: OutputMode, llm: LLM_Interface, refused: Mapping[str, str]
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the response format, and the parameters that hold the answer to the labels of a choice where it has none."""
    if mode == "choice":
        if all(each.profile.grammar and each.wire_name == "chat" for each in answering_models(llm)):
            return None, {"grammar": grammar_of(output.labels)}
        is_held = llm.profile.native and "choice" not in refused
        return (output.label_spec.native_format if is_held else None), {}
    return (output.native_format if mode == "native" else None), {}


def _example_messages(
    parts: FunctionParts, examples: Sequence[tuple[int, Example]], request: ModelRequest
) -> list[Message]:
    """Return a question and an answer for each example to show, in the form that the request asks for.

    Where tools are offered as JSON actions, an answer is one of them.
    """
    messages: list[Message] = []
    template, short = parts.options.user_prompt_template, request.llm.profile.short_prompt
    in_json = request.response_format is not None
    for number, example in examples:
        messages.append(build_user_message(example.arguments, parts.fixed.hints, template, short=short))
        if request.actions is not None:
            action = json.dumps({"answer": example.answer}, ensure_ascii=False)
            messages.append({"role": "assistant", "content": action})
        else:
            call_id = f"call_example_{number + 1}"
            mode = request.output_mode
            messages += answer_messages(parts.output, example.answer, mode, call_id=call_id, in_json=in_json)
    return messages
