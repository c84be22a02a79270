"""What an error means is told by its status, its codes and known words; all else stays a plain `BadRequest`."""

import json
from pathlib import Path

import pytest

from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BadRequest,
    ContentBlocked,
    ContextTooLong,
    RateLimited,
    ServerUnavailable,
)
from SimpleLLMFunc.interface.wires import Received, failure_of, read_error, refused_in, tool_name
from SimpleLLMFunc.interface.wires.failures import status_of_error
from tests.interface.wires.test_recordings import WIRES

KNOWN = [line.split(": ", 1) for line in Path(__file__).with_name("refusals.txt").read_text("utf-8").splitlines()]
OTHERS = Path(__file__).with_name("other_errors.txt").read_text("utf-8").splitlines()


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
        ("text", "prompt", "content_filter"), ("", "tools", "array_above_max_length"), ("", "parallel_tool_calls", "unsupported_parameter"),
        ("", "tools[0].function.parameters", "invalid_function_parameters"),
    ],
)  # fmt: skip
def test_param_and_code_decide_with_any_words(part, param, code):
    assert refused_in(BadRequest("m", status=400, body="no", param=param, code=code)) == part


def test_an_error_that_names_something_else_means_that():
    for expected, facts in {"tools": {}, "": {"param": "reasoning_effort"}}.items():
        assert refused_in(BadRequest("m", **{"status": 400, "body": "tools are not supported", **facts})) == expected
    for status, body in ((402, "tools are not supported"), (422, "model m not found")):
        assert refused_in(BadRequest("m", status=status, body=body)) == ""


@pytest.mark.parametrize(
    ("param", "said", "name"),
    [
        ("tools[1].function.parameters", "no", "second"),
        ("tools.1.function.name", "String should match pattern", "second"),
        ("", "tools.0.custom.input_schema: JSON schema is invalid.", "first"),
        ("", "* GenerateContentRequest.tools[0].function_declarations[1].parameters.type: missing field.", "second"),
        ("", "Invalid schema for function 'second': no", "second"), ("tools[2]", "no", ""), ("messages[0]", "no", ""),
    ],
)  # fmt: skip
def test_a_number_becomes_the_name_of_the_tool(param, said, name):
    assert tool_name(param, said, lambda: ["first", "second"]) == name


# --- the error --------------------------------------------------------------------------------------------


def failed(status, body=b"", headers=None):
    error = read_error(body if isinstance(body, bytes) else json.dumps(body).encode())
    return failure_of(error, Received("m", 2, status, headers or {}))


@pytest.mark.parametrize(
    ("status", "kind", "again"),
    [
        *((status, BadRequest, "never") for status in (400, 404, 422)),
        *((status, BadRequest, "always") for status in (408, 409)),
        *((status, AuthenticationError, "never") for status in (401, 403)),
        *((status, ServerUnavailable, "always") for status in (500, 502, 503, 529)), (402, RateLimited, "never"),
        (429, RateLimited, "always"), (304, BadReply, "never"),
    ],
)  # fmt: skip
def test_each_status_has_its_error(status, kind, again):
    failure = failed(status, {"error": {"message": "so it is"}}, {"x-request-id": "req_1"})
    error = failure.error
    assert type(error) is kind
    assert failure.again == again
    assert (error.model, error.status, error.request_id, error.tries) == ("m", status, "req_1", 2)
    assert kind is RateLimited or "so it is" in str(error)
    assert again == "never" or "Try again later" in str(error)


def test_a_prompt_that_is_blocked_is_no_bad_request_and_no_bad_key():
    for status, error in ((400, {"code": "1301"}), (403, {"message": "Your input was flagged for x."})):
        failure = failed(status, {"error": {"message": "no", **error}})
        assert (type(failure.error), failure.error.tries, failure.again) == (ContentBlocked, 2, "never")


def test_retry_after_counts_wherever_a_further_try_may_help_and_a_used_up_quota_is_not_tried_again():
    for status in (429, 500, 503, 408):
        assert failed(status, headers={"retry-after": "3"}).retry_after == 3
        assert failed(status).retry_after is None
    assert failed(429, headers={"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}).retry_after is None  # it is over
    error = failed(429, {"request_id": "req_2"}, {"retry-after": "2.5"}).error
    assert error.request_id == "req_2"
    assert failed(400, {"request_id": "r\n\x1b[2J" + "x" * 500}).error.request_id.startswith("r\\n")
    assert (error.retry_after, error.kind) == (2.5, "rate")
    for field, said in (("code", "insufficient_quota"), ("type", "exceeded_current_quota_error"), ("code", "1113")):
        failure = failed(429, {"error": {"message": "pay", field: said}})
        assert (failure.error.kind, failure.again) == ("quota", "never")


@pytest.mark.parametrize(
    ("status", "said", "again"),
    [
        (429, "false", "never"), (503, "false", "never"), (400, "true", "always"), (429, "?", "always"), (404, "", "never"),
    ],
)  # fmt: skip
def test_the_service_says_whether_a_further_try_may_help(status, said, again):
    assert WIRES["chat"].error(b"{}", Received("m", 1, status, {"x-should-retry": said})).again == again


TOO_LONG = [
    ({"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
                "tokens.", "code": "context_length_exceeded"}}, 8192),
    ({"message": "This model's maximum context length is 4,096 tokens, however you requested 5000"}, 4096),
    ({"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum"}}, 200000),
    ({"error": {"type": "exceed_context_size_error", "message": "the request is too large", "n_ctx": 4096}}, 4096),
    ({"error": {"message": "Range of input length should be [1, 6000]"}}, 6000),
    ([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (1200) exceeds the maximum "
                 "number of tokens allowed (1000)."}}], 1000),
    ({"error": {"message": "输入超出模型最大长度"}}, None), ({"error": {"type": "request_too_large", "message": "too large"}}, None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "limit"), TOO_LONG)
def test_a_request_too_long_is_told_apart_with_its_limit(body, limit):
    for failure in [failed(status, body) for status in (400, 413, 422)]:
        assert (type(failure.error), failure.error.limit, failure.again) == (ContextTooLong, limit, "never")
    for message in ("invalid schema", "max_tokens is too large: 99999", "unknown parameter: context"):
        assert type(failed(400, {"error": {"message": message}}).error) is BadRequest


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "a"}}, "a"), ({"error": "b"}, "b"), ({"message": "c"}, "c"), ({"detail": "d"}, "d"),
        ({"detail": [{"loc": ["x"]}]}, "[{'loc': ['x']}]"), ([{"error": {"message": "e"}}], "e"),
        ({"object": "error", "message": "f", "code": 400}, "f"), ({"other": 1}, "{'other': 1}"), ("text", "text"),
        ([], "[]"),
    ],
)  # fmt: skip
def test_the_message_is_found_in_any_shape(body, message):
    assert read_error(json.dumps(body).encode()).message == message


def test_a_body_that_is_no_json_is_shown_and_cut():
    assert read_error("服务太忙".encode("gbk"), "gbk").message == "服务太忙"
    assert read_error(b"<html>no</html>").message == "<html>no</html>"
    assert read_error(b"\xff\xfe").message == "\ufffd\ufffd"
    error = failed(400, b"x" * 10_000).error
    assert len(error.body) == 500


def test_no_key_in_what_a_service_repeats():
    error = failed(401, {"error": {"message": "Incorrect API key provided: sk-CANARY1234567890abcdef."}}).error
    assert "CANARY" not in str(error)
    assert "CANARY" not in error.body


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429}, 429), ({"code": "503"}, 503), ({"status": 400}, 400), ({"code": "insufficient_quota"}, 429),
        ({"type": "overloaded_error"}, 529), ({"status": "RESOURCE_EXHAUSTED"}, 429),
        ({"code": "invalid_api_key", "type": "invalid_request_error"}, 401), ({"code": 200}, None),
        ({"code": "invalid_prompt"}, 400), ({"code": "unsupported_image_media_type"}, 400),
        ({"code": True}, None), ({"code": "²"}, None), ({"code": "strange"}, None), ({}, None),
    ],
)  # fmt: skip
def test_the_status_behind_an_error_that_came_with_200(error, status):
    assert status_of_error(read_error({"error": {"message": "m", **error}})) == status


# --- what to change --------------------------------------------------------------------------------------


def told(status, message, url="", *, path="/chat/completions", **error):
    received = Received("m-7", 1, status, {}, url=url)
    body = json.dumps({"error": {"message": message, **error}}).encode()
    return failure_of(read_error(body), received, path=path)


@pytest.mark.parametrize(
    ("asked", "better"),
    [
        ("http://127.0.0.1:8000/chat/completions", 'base_url="http://127.0.0.1:8000/v1"'),
        ("https://h.example/v1/chat/completions/chat/completions", 'base_url="https://h.example/v1"'),
        ("https://h.example/chat/completions/chat/completions", 'base_url="https://h.example/v1"'),
        ("https://h.example/v1/v1/chat/completions", 'base_url="https://h.example/v1"'),
        ("https://h.example/v1/chat/completions", None),
        ("https://h.example/openai/deployments/x/chat/completions?api-version=1", None),
    ],
)
def test_a_404_names_the_address_and_the_one_to_write(asked, better):
    failure = told(404, "page not found", asked)
    text = str(failure.error)
    assert failure.again == "never"
    assert all(part in text for part in (f"404 at {asked}.", "page not found", better or ""))
    assert bool(better) is ("Write base_url" in text) is ("Write base_url" in str(told(405, "no", asked).error))
    assert "answered" not in str(told(400, "no", asked).error)


@pytest.mark.parametrize(
    ("asked", "better"),
    [
        ("https://h.example/v1/messages", None), ("https://h.example/v1/v1/messages", "https://h.example"),
        ("https://h.example/v1/messages/v1/messages", "https://h.example"),
        ("https://h.example/anthropic/v1/v1/messages", "https://h.example/anthropic"),
        ("https://h.example/v1beta/v1beta/models/g:streamGenerateContent?alt=sse", "https://h.example"),
    ],
)  # fmt: skip
def test_the_address_to_write_has_no_version_where_the_wire_writes_it(asked, better):
    text = str(told(404, "page not found", asked, path="" if "beta" in asked else "/v1/messages").error)
    assert (f'Write base_url="{better}".' in text) is ("Write base_url" in text) is bool(better)


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, "model_not_found", "no"), (400, "model_not_found", "no"), (404, None, "The model `m-7` does not exist"),
        (400, None, "The model `m-7` does not exist"), (404, "not_found_error", "model: m-7"),
    ],
)  # fmt: skip
def test_a_model_that_is_not_there_is_told_by_its_name(status, code, said):
    error = told(status, said, "http://h/chat/completions", code=code).error
    assert type(error) is BadRequest
    assert all(part in str(error) for part in ("has no model 'm-7'", "model_name"))
    assert "Write base_url" not in str(error)


def test_a_picture_that_cannot_be_seen_is_told_at_once_although_the_status_is_500():
    failure = told(500, "image input is not supported - hint: you may need to provide the mmproj")
    assert (type(failure.error), failure.again) == (BadRequest, "never")
    assert all(part in str(failure.error) for part in ("'m-7'", "takes no images", "--mmproj"))


def test_plain_http_to_a_tls_server_that_says_so():
    for said in (
        "Client sent an HTTP request to an HTTPS server.",
        "<html><center>The plain HTTP request was sent to HTTPS port</center></html>",
        "You're speaking plain HTTP to an SSL-enabled server port.",
    ):
        assert "write https:// instead of http://" in str(told(400, said).error)


def test_the_param_is_kept_also_where_it_is_a_place():
    error = told(400, "no", param="tools[0]", code="invalid_function_parameters").error
    assert (error.param, error.code) == ("tools[0]", "invalid_function_parameters")
    said = read_error({"detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "no"}]})
    assert said.param == "response_format"


@pytest.mark.parametrize(("wire", "named"), [("chat", {"type": "function", "function": {"name": "f"}}), ("messages", {"name": "f"}), ("gemini", {"functionDeclarations": [{"name": "f"}]})])  # fmt: skip
def test_a_tool_that_is_told_by_its_number_is_named_on_any_wire(wire, named):
    sent = json.dumps({"tools": [named]}).encode()
    said = {"message": "tools.0: its schema is invalid", "type": "invalid_request_error"}
    error = WIRES[wire].error(json.dumps({"error": said}).encode(), Received("m", status=400, sent=sent)).error
    assert "'f'" in str(error)
    assert error.tool == "f"
