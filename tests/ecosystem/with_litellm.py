# /// script
# dependencies = ["litellm[proxy]"]
# ///
"""Through its proxy (`base_url=`): a typed answer, a tool, a stream, a map, the cost it tells, an error of the model behind it."""

import asyncio
import os
import secrets
import socket
import subprocess
import time
from pathlib import Path

from pydantic import BaseModel
from scene import answers, asked, check, seen

from SimpleLLMFunc import BadRequest, OpenAICompatible, llm_function

with socket.create_server(("127.0.0.1", 0)) as listener:
    port = listener.getsockname()[1]
key = f"sk-{secrets.token_hex(32)}"
Path("config.yaml").write_text(f"""
model_list:
  - model_name: shop
    litellm_params: {{model: openai/m, api_base: "{os.environ["OPENAI_BASE_URL"]}", api_key: sk-of-nobody, input_cost_per_token: 0.001, output_cost_per_token: 0.002}}
general_settings: {{master_key: {key}}}
litellm_settings: {{num_retries: 0, telemetry: false}}
""")


class Note(BaseModel):
    text: str


def weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


model = OpenAICompatible("shop", base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0)


@llm_function(model)
async def note(about: str) -> Note:
    """Take a note."""


@llm_function(model, toolkit=[weather])
async def tell(question: str) -> str:
    """Tell."""


async def main() -> None:
    answers('{"text": "hi"}', {"calls": [["weather", {"city": "Oslo"}]]}, "done", "streamed")
    noted = await note.call("a")
    check("typed", noted.value, Note(text="hi"))
    spent = 0.001 * noted.usage.input_tokens + 0.002 * noted.usage.output_tokens
    check("its cost", (round(noted.cost or 0, 9), spent > 0), (round(spent, 9), True))
    told = await tell.call("?")
    check(
        "tool", (told.value, [m["content"] for m in told.messages if m["role"] == "tool"]), ("done", ["rain in Oslo"])
    )
    check("streamed", "".join([piece async for piece in tell.stream("?")]), "streamed")
    report = await tell.map(["a", "b", "c"], progress=False)
    check("map", [row.error for row in report.rows], [None] * 3)
    check("requests", len([each for each in asked() if each["body"]]), 7)
    answers({"status": 400, "body": {"error": {"message": "no such thing", "code": "nothing"}}})
    try:
        await tell("?")
    except BadRequest as error:
        check("the error", "no such thing" in str(error), True)
    else:
        raise SystemExit("no error")


environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
command = ["litellm", "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
with Path("proxy.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as proxy:
    try:
        for _ in range(2400):
            check("the proxy ended", proxy.poll(), None)
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit("the proxy does not answer")
        asyncio.run(main())
    except BaseException:
        print(Path("proxy.log").read_text()[-3000:])
        raise
    finally:
        proxy.kill()
seen("7 requests came through; the cost of the call is the one in its header, a 400 arrives as BadRequest")
