"""The five tools of the design note, together."""

import pytest

from SimpleLLMFunc.assistant.builtin import builtin_tools
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.tools import ToolRegistry
from SimpleLLMFunc.tools.wire import is_wire_name

NAMES = ["get_weather", "generate_ai_id", "generate_frequency_number", "analyze_image", "process_document"]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_all_five_are_told_in_the_form_of_the_note(language):
    definitions = ToolRegistry(*builtin_tools(language=language)).get_tool_definitions()
    assert [each["function"]["name"] for each in definitions] == NAMES
    for each in definitions:
        assert each["type"] == "function"
        function = each["function"]
        assert is_wire_name(function["name"])
        assert function["parameters"]["type"] == "object"
        assert "context" not in function["parameters"]["properties"]
        has_chinese = any("一" <= character <= "鿿" for character in function["description"])
        assert has_chinese == (language == "zh")


async def test_the_model_and_the_folder_reach_those_that_need_them_and_their_words_come_from_outside(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    tools = {tool.name: tool for tool in builtin_tools(ScriptedLLM("short"), root=tmp_path, language="en")}
    assert await tools["process_document"]("a.txt", "summarize") == "Summary of a.txt:\nshort"
    assert tools["analyze_image"].untrusted
    assert tools["process_document"].untrusted
