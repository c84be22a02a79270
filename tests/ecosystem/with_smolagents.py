# /// script
# dependencies = ["smolagents"]
# ///
"""A `Tool` of the library's own class, with an input that may be null, in `toolkit=`."""

from scene import answers, asked, check, seen
from smolagents import Tool

from SimpleLLMFunc import OpenAICompatible, llm_function


class Adder(Tool):
    name = "adder"
    description = "Add two numbers."
    inputs = {
        "a": {"type": "integer", "description": "the first"},
        "b": {"type": "integer", "description": "the second", "nullable": True},
    }
    output_type = "integer"

    def forward(self, a: int, b: int | None = None) -> int:
        return a + (b or 1)


@llm_function(OpenAICompatible("m"), toolkit=[Adder()])
def ask(question: str) -> str:
    """Answer."""


answers({"calls": [["adder", {"a": 1}], ["adder", {"a": 1, "b": 5}]]}, "done")
said = [message["content"] for message in ask.call("?").messages if message["role"] == "tool"]
check("results", said, ["2", "6"])
check("schema", asked()[0]["body"]["tools"][0]["function"]["parameters"]["required"], ["a"])
seen("both calls ran")
