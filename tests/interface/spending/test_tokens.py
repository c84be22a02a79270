"""How many tokens a request will take, roughly."""

import copy

import pytest

from SimpleLLMFunc.interface.spending import count_request, estimate_text_tokens, estimate_tokens
from SimpleLLMFunc.interface.spending.tokens import MESSAGE_TOKENS


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0), ("abc", 1), ("abcd" * 10, 10), ("中文字", 3), ("中文 and English", 2 + 3), ("かなカナ한국", 6), ("𠀀", 1),
        ("привет", 3), ("🎉", 1), ("\ud800", 1),
    ],
)  # fmt: skip
def test_a_cjk_character_is_a_token_and_so_are_four_bytes(text, tokens):
    assert estimate_text_tokens(text) == tokens


def test_a_conversation_is_its_texts_and_a_little_for_each_message():
    messages = [{"role": "system", "content": "abcd"}, {"role": "user", "content": "abcdefgh"}]
    assert estimate_tokens(messages) == 2 * MESSAGE_TOKENS + 3
    assert estimate_tokens([]) == 0


def test_images_sounds_and_files_are_a_flat_number_of_any_size():
    parts = [
        {"type": "text", "text": "abcd"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}},
        {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "A" * 1_000_000, "format": "wav"}},
        {"type": "file", "file": {"file_data": "A" * 1_000_000}},
    ]
    expected = MESSAGE_TOKENS + 1 + 3 * 800 + 85
    assert estimate_tokens([{"role": "user", "content": parts}]) == expected


def test_tool_calls_and_what_a_provider_adds_count():
    plain = {"role": "assistant", "content": None}
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    assert estimate_tokens([plain]) == MESSAGE_TOKENS
    assert estimate_tokens([{**plain, "tool_calls": [call]}]) > MESSAGE_TOKENS + 10
    assert estimate_tokens([{**plain, "reasoning_content": "a" * 400}]) >= MESSAGE_TOKENS + 100


def test_tools_the_schema_and_an_unknown_part_count():
    tools = [{"type": "function", "function": {"name": "f", "description": "a" * 400, "parameters": {}}}]
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"description": "中" * 100}}}
    assert estimate_tokens([], tools) >= 100
    assert 100 <= estimate_tokens([], None, schema) < 140
    assert estimate_tokens([], tools, schema) == estimate_tokens([], tools) + estimate_tokens([], None, schema)
    unknown = {"type": "new", "data": "a" * 400}
    assert estimate_tokens([{"role": "user", "content": [unknown]}]) > 100


@pytest.mark.parametrize("length", [10, 400_000])
async def test_a_request_is_counted_the_same_however_long_it_is_and_left_as_it_is(length):
    asked = [{"role": "user", "content": "a" * length, "name": "Ann"}], [{"function": {"name": "f"}}], {"type": "text"}
    before = copy.deepcopy(asked)
    assert await count_request(*asked) == estimate_tokens(*asked)
    assert asked == before
