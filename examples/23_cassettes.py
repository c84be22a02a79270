# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Record what a model really said once, and replay it for ever; notice when the prompt has drifted.

Under pytest it is a marker, `@pytest.mark.llm_cassette`; here it is the context manager behind it. A stand-in takes the
place of the service. With a real model: `with use_cassette("one.json"):` is all that is needed.

Model: answers written down (`Service`). For a real one change what `tape.wrap(…)` gets.
"""

import tempfile
from pathlib import Path

from pydantic import BaseModel

from SimpleLLMFunc import llm_function, use_llm
from SimpleLLMFunc.testing import ScriptedLLM, UnmatchedRequest, tool_calls, use_cassette


class Advice(BaseModel):
    article: str
    in_stock: int


def stock(article: str) -> int:
    """Look up how many pieces are in stock."""
    print(f"  (looked up {article})")
    return 3


@llm_function(toolkit=[stock])
def advise(question: str) -> Advice:
    """Answer a customer's question about an article."""
    raise NotImplementedError


class Service(ScriptedLLM):
    """In the place of a real model."""


def main() -> None:
    path = Path(tempfile.mkdtemp()) / "advise.json"
    service = Service(tool_calls(("stock", {"article": "lamp"})), Advice(article="lamp", in_stock=3))

    print("recording:")
    with use_cassette(path) as tape, use_llm(tape.wrap(service)):
        print(" ", advise("Do you have lamps?"))

    print("replaying:")  # the tool is ours, and runs again; the model is not asked
    with use_cassette(path) as tape, use_llm(tape.wrap(Service())):
        print(" ", advise("Do you have lamps?"), f"from {tape.replayed} exchanges")

    print("what is in the file:")
    for line in path.read_text(encoding="utf-8").splitlines():
        if "Do you have" in line or "in_stock" in line:
            print(" ", line.strip())

    print("asking something else:")
    try:
        with use_cassette(path) as tape, use_llm(tape.wrap(Service())):
            advise("Do you have sofas?")
    except UnmatchedRequest as error:
        for line in str(error).splitlines():
            if line.startswith(("-  ", "+  ")):
                print(" ", line)


if __name__ == "__main__":
    main()
