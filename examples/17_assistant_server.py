# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[local,view]", "aiohttp"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""The assistant behind a small web server: server-sent events, a page that shows them, one session a window.

``python 17_assistant_server.py serve`` serves it on http://127.0.0.1:8000 with the model that SIMPLELLMFUNC_MODEL
names, or the small one inside this process. Without `serve` it asks itself one question, with a scripted model.

Model: answers written down (`ScriptedLLM`). For a real one change the line `uvicorn.Config(app(…`.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from SimpleLLMFunc import LLM_Interface, LocalModel
from SimpleLLMFunc.assistant import AIAssistant
from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallStarted
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.testing import ScriptedLLM

PAGE = """<!doctype html><meta charset="utf-8"><title>Assistant</title>
<main id="said"></main><form><input name="text" autofocus autocomplete="off"><button>Ask</button></form>
<script>
let session = null;
document.querySelector("form").onsubmit = async (event) => {
  event.preventDefault();
  const input = event.target.text, said = document.getElementById("said");
  const line = (text) => { const p = document.createElement("p"); p.textContent = text; return said.appendChild(p); };
  line("> " + input.value);
  const answer = line("");
  const body = JSON.stringify({ text: input.value, session });
  input.value = "";
  const reply = await fetch("/ask", { method: "POST", headers: { "content-type": "application/json" }, body });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", step; !(step = await reader.read()).done; ) {
    const events = (rest + step.value).split("\\n\\n");
    rest = events.pop();
    for (const each of events) {
      const data = JSON.parse(each.slice("data: ".length));
      if (data.text) answer.textContent += data.text;
      if (data.tool) answer.textContent += `[${data.tool}] `;
      if (data.error) answer.textContent += data.error;
      if (data.session) session = data.session;
    }
  }
};
</script>"""


def app(llm: LLM_Interface) -> Starlette:
    assistant = AIAssistant(llm, tools=(), language="en")

    async def page(_: Request) -> Response:
        return HTMLResponse(PAGE)

    async def ask(request: Request) -> Response:
        asked = await request.json()

        async def events() -> AsyncIterator[str]:
            # A reader who goes away closes this generator, and with it the connection to the model.
            async with aclosing(assistant.stream_query(str(asked["text"]), asked.get("session"))) as items:
                try:
                    async for item in items:
                        if event := shown(item):
                            yield f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
                except SimpleLLMFuncError as error:
                    yield f"data: {json.dumps({'error': str(error)})}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    return Starlette(routes=[Route("/", page), Route("/ask", ask, methods=["POST"])])


def shown(item: object) -> dict[str, object] | None:
    match item:
        case str():
            return {"text": item}
        case ToolCallStarted(call=call):
            return {"tool": call.function.name}
        case ToolCallFinished():
            return None
        case {"session_id": session, "sources": sources}:
            return {"session": session, "sources": sources}
    return None


async def ask_itself() -> None:
    server = uvicorn.Server(
        uvicorn.Config(app(ScriptedLLM("Good morning! What can I do for you?")), log_level="warning")
    )
    door = socket.create_server(("127.0.0.1", 0))  # a question that comes before the server is up waits here
    port = door.getsockname()[1]
    serving = asyncio.create_task(server.serve(sockets=[door]))
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/ask", json={"text": "Good morning"}) as reply,
    ):
        async for line in reply.content:
            if line.startswith(b"data: "):
                print(line.decode().strip())
    server.should_exit = True
    await serving


def main() -> None:
    if sys.argv[1:] == ["serve"]:
        try:
            llm = resolve_llm(None)
        except SimpleLLMFuncError:
            llm = LocalModel()
        uvicorn.run(app(llm), port=8000)
    else:
        asyncio.run(ask_itself())


if __name__ == "__main__":
    main()
