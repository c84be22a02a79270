from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.testing.unmatched import request_text


def test_a_request_as_lines():
    call = {"id": "1", "function": {"name": "look", "arguments": '{"at": "rain"}'}}
    text = request_text(
        [
            {"role": "system", "content": "Be brief.\nBe kind."},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "wet", "tool_call_id": "1"},
        ],
        tools=[{"function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}],
        response_format={"type": "json_object"},
        params={"seed": 1},
    )
    assert text.split("\n") == [
        "[system]", "Be brief.", "Be kind.", "[user]", '{"type": "text", "text": "hello"}', "[assistant]",
        'calls look({"at": "rain"})', "[tool]", "wet", "[tool look] Look.", "{", ' "type": "object"', "}", "[response_format]",
        "{", ' "type": "json_object"', "}", "[params]", "{", ' "seed": 1', "}",
    ]  # fmt: skip


def test_long_messages_are_cut_and_secrets_masked():
    remember_secret("a-secret-that-is-known")
    text = request_text([{"role": "user", "content": "a-secret-that-is-known " + "x" * 5000}], limit=100)
    assert "a-secret" not in text
    assert len(text) < 200
    assert request_text([{}]) == "[?]"
