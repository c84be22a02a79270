# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""One function under many conditions: previewed, tested, tuned, given another model, called many times at once.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import asyncio
import time

from SimpleLLMFunc import forbid_real_calls, llm_function, use_llm
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest


@llm_function(temperature=0.2)
async def translate(text: str) -> str:
    """Translate the text into {language}. Give the translation alone."""
    raise NotImplementedError


to_french = translate.with_options(template_params={"language": "French"}, temperature=0.0)


async def look_up(request: ScriptedRequest) -> str:
    """Answer like a slow service: after a while, with what was asked for."""
    await asyncio.sleep(0.2)
    words = {"bread": "pain", "wine": "vin", "cheese": "fromage"}
    return next(french for english, french in words.items() if english in request.text)


async def main() -> None:
    forbid_real_calls()  # from here on no request can leave by mistake
    # A real model, and no forbid_real_calls(): from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
    llm = ScriptedLLM(look_up, repeat=True)

    with use_llm(llm):  # the function itself names no model
        preview = to_french.preview("bread")
        print(f"would send {preview.input_tokens} tokens (estimated) with {preview.params}:")
        print(preview.messages[0]["content"])

        started = time.perf_counter()
        print(await asyncio.gather(to_french("bread"), to_french("wine"), to_french("cheese")))
        print(f"three calls of 0.2 s each took {time.perf_counter() - started:.1f} s together")

    # What a test would check: the double keeps every request.
    assert llm.calls[0].params["temperature"] == 0.0
    assert "French" in str(llm.requests[0][0]["content"])


asyncio.run(main())
