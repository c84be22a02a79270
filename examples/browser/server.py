"""A chat for a web page, in the two protocols that pages' libraries speak; see page.jsx.

npm install && npx esbuild page.jsx --bundle --outfile=page.js --jsx=automatic
python server.py                  # http://127.0.0.1:8000; the model is the one in SIMPLELLMFUNC_MODEL, else a double
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from SimpleLLMFunc import ChatPair, Message, fill, llm_chat
from SimpleLLMFunc.serve import BrowserStream
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest, tool_calls

HERE = Path(__file__).parent


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"rain in {city}"


def double(request: ScriptedRequest) -> str | dict[str, Any]:
    """Answer as a model might: ask the tool first, then tell what it said; count the user's messages."""
    if request.messages[-1]["role"] == "tool":
        asked = sum(message["role"] == "user" for message in request.messages)
        return f"It is {request.messages[-1]['content']}. That was question {asked}."
    return tool_calls(("weather", {"city": "Oslo"}))


MODEL = None if os.environ.get("SIMPLELLMFUNC_MODEL") else ScriptedLLM(double, repeat=True)


@llm_chat(llm_interface=MODEL, toolkit=[weather], stream=True)
def talk(history: list[Message], message: str) -> AsyncIterator[ChatPair]:
    """Answer questions about the weather."""
    return fill()


async def answer(request: Request) -> Response:
    """Answer the page; in FastAPI the same, in Django StreamingHttpResponse(stream, headers=stream.headers)."""
    stream = BrowserStream(talk, await request.json(), request.path_params["protocol"])
    return StreamingResponse(stream, headers=stream.headers)


async def page(_: Request) -> Response:
    return HTMLResponse("<!doctype html><div id=root></div><script src=page.js></script>")


async def script(_: Request) -> Response:
    return FileResponse(HERE / "page.js")


app = Starlette(
    routes=[
        Route("/", page),
        Route("/page.js", script),
        Route("/talk/{protocol}", answer, methods=["POST"]),
    ]
)

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
