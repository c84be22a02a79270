# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Show the model examples: a hundred are there, the three most like the question are shown.

The model here is a double that answers as the nearest example does; so what is printed tells which ones were shown.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import json
from typing import Literal

from SimpleLLMFunc import SignatureError, llm_function
from SimpleLLMFunc.testing import ScriptedLLM

Topic = Literal["refund", "shipping", "account"]

EXAMPLES: list[tuple[str, Topic]] = [
    ("I want my money back", "refund"),
    ("The lamp arrived broken, please refund it", "refund"),
    ("我要退款", "refund"),
    ("Where is my parcel?", "shipping"),
    ("The package has not been delivered", "shipping"),
    ("我的快递什么时候到", "shipping"),
    ("I forgot my password", "account"),
    ("The reset mail never arrives", "account"),
    ("登录不上账号", "account"),
]


# A real model: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
llm = ScriptedLLM(lambda asked: str(asked.messages[-2]["content"]), repeat=True)


@llm_function(llm, examples=EXAMPLES, max_examples=3)
def topic(message: str) -> Topic:
    """What is the message about?"""
    raise NotImplementedError


def main() -> None:
    for message in ("my parcel was not delivered", "How do I reset my password?", "可以退款吗"):
        shown = [str(each["content"]).split("message: ")[-1] for each in topic.preview(message).messages[1:-1:2]]
        print(f"{message} -> {topic(message)}")
        print(f"    shown: {json.dumps(shown, ensure_ascii=False)}")
    assert topic("可以退款吗") == "refund"
    try:
        topic.with_options(examples=[("hello", "greeting")])
    except SignatureError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    main()
