# /// script
# dependencies = ["fastapi", "httpx2"]
# ///
"""`BrowserStream` as a `StreamingResponse`, in both protocols; `fastapi_errors(app)` for a rate limit and a mistake of ours."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from scene import answers, check, seen

from SimpleLLMFunc import ConfigError, OpenAICompatible, llm_chat, llm_function
from SimpleLLMFunc.serve import BrowserStream, fastapi_errors


@llm_chat(OpenAICompatible("m"), stream=True)
async def talk(history: list, message: str):
    """Talk."""


@llm_function(OpenAICompatible("m", max_retries=0))
async def shout(word: str) -> str:
    """Shout."""


app = FastAPI()
fastapi_errors(app)


@app.post("/talk/{protocol}")
async def answer(protocol: Any, request: Request) -> StreamingResponse:
    stream = BrowserStream(talk, await request.json(), protocol)
    return StreamingResponse(stream, headers=stream.headers)


@app.get("/shout/{word}")
async def shouted(word: str) -> str:
    if word == "mistake":
        raise ConfigError("a secret of ours")
    return await shout(word)


answers("fine", "fine")
user = {"id": "1", "role": "user"}
client = TestClient(app)
reply = client.post("/talk/ag-ui", json={"messages": [{**user, "content": "hi"}]})
check("AG-UI", (reply.status_code, "RUN_FINISHED" in reply.text), (200, True))
reply = client.post("/talk/ai-sdk", json={"messages": [{**user, "parts": [{"type": "text", "text": "hi"}]}]})
check("AI SDK", (reply.headers["x-vercel-ai-ui-message-stream"], reply.text.endswith("[DONE]\n\n")), ("v1", True))
check("no error", "hello" in client.get("/shout/hello").text, True)
answers({"status": 429, "body": {"error": {"message": "slow down"}}, "headers": {"retry-after": "7"}})
reply = client.get("/shout/hello")
check("a rate limit", (reply.status_code, reply.headers["content-type"]), (503, "application/problem+json"))
check("when to try again", (reply.headers["retry-after"], reply.json()["status"]), ("7", 503))
reply = client.get("/shout/mistake")
check("a mistake", (reply.status_code, "secret" in reply.text), (500, False))
seen("both streams whole, with their headers; 503 with `retry-after`, and a 500 that tells nothing, as problem+json")
