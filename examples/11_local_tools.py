# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[local]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""A real ReAct round without a key: the small model inside this process calls a tool, and answers.

It knows no tool calls, so it is asked for a JSON action under a schema; events, history and limits are the
same as with any other model. The weights (93 MB) are fetched at the first run, once.

Model: the small `LocalModel`, inside this process. For another one change the line `llm = LocalModel(…`.
"""

from SimpleLLMFunc import LocalModel, llm_function
from SimpleLLMFunc.base.events import ReplyDelta, RunFinished, ToolCallFinished, ToolCallStarted

llm = LocalModel()


def temperature(city: str) -> str:
    """Tell the temperature in a city right now."""
    return f"It is 21 degrees in {city}."


# "required": a model of this size would rather guess. One round of calls, then it must answer.
@llm_function(llm_interface=llm, toolkit=[temperature], tool_choice="required", max_tool_calls=1, max_tokens=200)
def ask(question: str) -> str:
    """Answer the question in one sentence. Use the tools."""
    raise NotImplementedError


def main() -> None:
    question = "What is the temperature in Rome?"
    print(f"> {question}  ({llm.model_name})")
    for event in ask.events(question):
        match event:
            case ToolCallStarted(call=call):
                print(f"act:     {call.function.name}({call.function.arguments})")
            case ToolCallFinished(content=content):
                print(f"observe: {content}\nanswer:  ", end="")
            case ReplyDelta(text=text) if text:
                print(text, end="", flush=True)
            case RunFinished(usage=usage, turns=turns):
                print(f"\n{turns} turns, {usage.input_tokens} + {usage.output_tokens} tokens")
            case _:
                pass


if __name__ == "__main__":
    main()
