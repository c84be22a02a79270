"""AI-IDs: unique everywhere, checked when they come back; frequency numbers: the same for ever."""

from __future__ import annotations

import re

import pytest

from SimpleLLMFunc.assistant.builtin.ids import ALPHABET, check_ai_id, frequency_number, id_tools, new_ai_id
from SimpleLLMFunc.tools import ModelRetry, ToolRegistry

FORM = re.compile(r"AI(-[0-9A-HJKMNP-TV-Z]{5}){4}")


def test_the_form():
    assert FORM.fullmatch(new_ai_id())


def test_ten_thousand_are_all_different():
    assert len({new_ai_id() for _ in range(10_000)}) == 10_000


def test_what_people_make_of_an_id_is_read():
    made = "AI-0123456789ABCDEFGHJ"
    whole = next(f"{made}{last}" for last in ALPHABET if accepts(made + last))
    proper = check_ai_id(whole)
    assert check_ai_id(whole.lower()) == proper
    assert check_ai_id(f"  {proper} ") == proper
    assert check_ai_id(proper.replace("0", "O").replace("1", "l")) == proper
    assert check_ai_id("".join(chr(ord(each) + 0xFEE0) for each in proper)) == proper  # full-width


def accepts(text):
    try:
        check_ai_id(text)
    except ValueError:
        return False
    return True


def test_one_wrong_character_is_always_noticed():
    proper = new_ai_id()
    bare = proper.removeprefix("AI-").replace("-", "")
    for place, right in enumerate(bare):
        for wrong in set(ALPHABET) - {right}:
            assert not accepts("AI-" + bare[:place] + wrong + bare[place + 1 :])


def test_swapped_neighbours_are_noticed():
    bare = "23456789ABCDEFGHJKM"
    last = next(each for each in ALPHABET if accepts(f"AI-{bare}{each}"))
    whole = bare + last
    for place in range(len(whole) - 1):
        swapped = whole[:place] + whole[place + 1] + whole[place] + whole[place + 2 :]
        assert swapped == whole or not accepts("AI-" + swapped)


@pytest.mark.parametrize(
    "text",
    ["", "AI-", "x", "AI-00000", "7ZK3Q-M9T2V-4HBNC-R8WEX", "AI-" + "U" * 20, "AI-" + "0" * 21, "A" * 10**6, "AI-\x00"],
)
def test_what_is_no_id_is_refused(text):
    with pytest.raises(ValueError, match="is no AI-ID") as caught:
        check_ai_id(text)
    assert len(str(caught.value)) < 250


def test_the_frequency_number_is_the_same_for_ever():
    # Written down once: a change would give every id another number.
    assert frequency_number("AI-00000-00000-00000-00000") == "FN-2346-0528-6973-7495"
    assert frequency_number("ai-ooooo-00000-00000-00000") == frequency_number("AI-00000-00000-00000-00000")


def test_other_ids_have_other_numbers():
    numbers = {frequency_number(new_ai_id()) for _ in range(2_000)}
    assert len(numbers) == 2_000
    assert all(re.fullmatch(r"FN(-\d{4}){4}", number) for number in numbers)


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_as_tools(language):
    tools = ToolRegistry(*id_tools(language))
    assert tools.names() == ["generate_ai_id", "generate_frequency_number"]
    made = await tools.invoke("generate_ai_id")
    assert await tools.invoke("generate_frequency_number", ai_id=made) == frequency_number(made)
    described = tools.get_tool_definitions()[1]["function"]
    assert ("频率编号" in described["description"]) == (language == "zh")
    assert described["parameters"]["properties"]["ai_id"]["description"]


async def test_a_wrong_id_tells_the_model_what_to_do():
    (_, tool) = id_tools("en")
    with pytest.raises(ModelRetry, match="Copy the AI-ID exactly"):
        tool("AI-1")
