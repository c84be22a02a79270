"""AI-IDs: unique everywhere, checked when they come back; frequency numbers: the same for ever."""

import pytest

from SimpleLLMFunc.assistant.builtin.ids import ALPHABET, check_ai_id, frequency_number, id_tools, new_ai_id
from SimpleLLMFunc.tools import ModelRetry, ToolRegistry


def test_ten_thousand_are_all_different():
    assert len({new_ai_id() for _ in range(10_000)}) == 10_000


def test_what_people_make_of_an_id_is_read():
    made = new_ai_id()
    assert check_ai_id(f" {made.lower()} ") == made


def accepts(text):
    try:
        check_ai_id(text)
    except ValueError:
        return False
    return True


def test_one_wrong_character_is_always_noticed():
    proper = new_ai_id()
    for place in range(3, len(proper)):
        for wrong in {*ALPHABET, "-"} - {proper[place]}:
            assert not accepts(proper[:place] + wrong + proper[place + 1 :])


def test_swapped_neighbours_are_noticed():
    body = "AI-23456-789AB-CDEFG-HJKM"
    whole = next(body + last for last in ALPHABET if accepts(body + last))
    pairs = [(place, place + 1) for place in range(3, len(whole) - 1) if "-" not in whole[place : place + 2]]
    for left, right in pairs:
        assert not accepts(whole[:left] + whole[right] + whole[left] + whole[right + 1 :])


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
