"""What a service refuses is told from its words only where they are known; all else stays a plain `BadRequest`."""

import pytest

from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.interface.wires import refused_in, tool_name

KNOWN = [
    ("wire", "Function tools with reasoning_effort are not supported for gpt-5.4. Please use /v1/responses instead."),
    ("wire", "This model is only supported in v1/responses and not in v1/chat/completions."),
    ("images", "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    ("images", "Invalid content type. image_url is only supported by certain models."),
    ("images", "No endpoints found that support image input"),
    ("images", "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`"),
    ("images", "m is not a multimodal model"),
    ("sound", "audio input is not supported - hint: you may need to provide the mmproj"),
    ("model", "The model `gpt-9.1` does not exist or you do not have access to it."),
    ("model", "model 'llama9.1:7b' not found"),
    ("model", 'model "x" not found, try pulling it first'),
    ("model", "models/gemini-9 is not found for API version v1beta"),
    ("model", "Model Not Exist"),
    ("model", "x/y is not a valid model ID"),
    ("model", "Invalid model: mistral-huge"),
    ("response_format", "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
    ("response_format", "This response_format type is unavailable now"),
    ("response_format", "This model does not support response format `json_schema`. See supported models"),
    ("response_format", "Unrecognized request argument supplied: response_format"),
    ("response_format", "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"),
    ("response_format", "Function calling with a response mime type: 'application/json' is unsupported"),
    ("response_format", "The provided JSON schema contains features not supported by xgrammar."),
    ("tool_choice", "The tool_choice parameter does not support being set to required or object in thinking mode"),
    ("tool_choice", "tool_choice 'required' is incompatible with thinking enabled"),
    ("tools", "registry.ollama.ai/library/gemma3:latest does not support tools"),
    ("tools", "deepseek-reasoner does not support Function Calling"),
    ("tools", "`tool calling` is not supported with this model"),
    ("tools", "<400> InternalError.Algo.InvalidParameter: The tool call is not supported."),
    ("tools", "Function calling is not enabled for this model"),
    ("tools", "Function call is not supported for this model."),
    ("tools", '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    ("tools", "No endpoints found that support tool use. To learn more about provider routing, visit: …"),
]  # fmt: skip
OTHERS = [
    "Invalid schema for function 'search': 'lookup' is not valid under any of the given schemas.",
    "tools.0.custom.input_schema: JSON schema is invalid.",
    "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    "Parallel tool calls are not supported by this model",
    "Strict tools are not supported",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200.",
    "max_tokens is too large: 99999",
    "The function of temperature: use a tool with a value between 0 and 2",
    "",
]


@pytest.mark.parametrize(("part", "said"), KNOWN, ids=[said[:40] for _, said in KNOWN])
def test_the_words_of_known_services(part, said):
    status = 500 if "mmproj" in said else 404 if part == "model" or "endpoints" in said else 400
    assert refused_in(BadRequest("m", status=status, body=said)) == part


def test_all_else_is_not_taken_for_a_refusal_of_a_way_to_ask():
    assert [said for said in OTHERS if refused_in(BadRequest("m", status=400, body=said))] == []


@pytest.mark.parametrize(
    ("part", "param", "code"),
    [
        ("response_format", "response_format", ""), ("response_format", "text.format.schema", ""),
        ("response_format", "response_format.json_schema.schema", "invalid_value"), ("model", "model", "model_not_found"),
        ("tool_choice", "tool_choice", "unsupported_value"), ("tools", "tools", "unsupported_parameter"),
        ("", "tools", "array_above_max_length"), ("", "parallel_tool_calls", "unsupported_parameter"),
        ("", "tools[0].function.parameters", "invalid_function_parameters"),
    ],
)  # fmt: skip
def test_param_and_code_decide_with_any_words(part, param, code):
    assert refused_in(BadRequest("m", status=400, body="no", param=param, code=code)) == part


def test_an_error_that_names_something_else_means_that():
    for expected, facts in {"tools": {}, "": {"param": "reasoning_effort"}}.items():
        assert refused_in(BadRequest("m", **{"status": 400, "body": "tools are not supported", **facts})) == expected
    assert refused_in(BadRequest("m", status=402, body="tools are not supported")) == ""


@pytest.mark.parametrize(
    ("param", "said", "name"),
    [
        ("tools[1].function.parameters", "no", "second"),
        ("tools.1.function.name", "String should match pattern", "second"),
        ("", "tools.0.custom.input_schema: JSON schema is invalid.", "first"),
        ("", "* GenerateContentRequest.tools[0].function_declarations[1].parameters.type: missing field.", "second"),
        ("", "Invalid schema for function 'second': no", "second"),
        ("tools[7]", "no", ""),
        ("messages[0]", "no", ""),
    ],
)
def test_a_number_becomes_the_name_of_the_tool(param, said, name):
    assert tool_name(param, said, lambda: ["first", "second"]) == name
