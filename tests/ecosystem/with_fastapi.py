# /// script
# dependencies = ["fastapi", "httpx2"]
# ///
"""`BrowserStream` as a `StreamingResponse`, in both protocols."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_chat
from SimpleLLMFunc.serve import BrowserStream


@llm_chat(OpenAICompatible("m"), stream=True)
async def talk(history: list, message: str):
    """Talk."""


app = FastAPI()


@app.post("/talk/{protocol}")
async def answer(protocol: Any, request: Request) -> StreamingResponse:
    stream = BrowserStream(talk, await request.json(), protocol)
    return StreamingResponse(stream, headers=stream.headers)


answers("fine", "fine")
user = {"id": "1", "role": "user"}
client = TestClient(app)
reply = client.post("/talk/ag-ui", json={"messages": [{**user, "content": "hi"}]})
check("AG-UI", (reply.status_code, "RUN_FINISHED" in reply.text), (200, True))
reply = client.post("/talk/ai-sdk", json={"messages": [{**user, "parts": [{"type": "text", "text": "hi"}]}]})
check("AI SDK", (reply.headers["x-vercel-ai-ui-message-stream"], reply.text.endswith("[DONE]\n\n")), ("v1", True))
seen("both streams whole, with their headers")
