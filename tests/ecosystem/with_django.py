# /// script
# dependencies = ["django"]
# ///
"""`BrowserStream` as a `StreamingHttpResponse` of an async view."""

import asyncio
import json

import django
from django.conf import settings
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from django.urls import path
from scene import answers, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_chat
from SimpleLLMFunc.serve import BrowserStream


@llm_chat(OpenAICompatible("m"), stream=True)
async def talk(history: list, message: str):
    """Talk."""


async def answer(request):
    stream = BrowserStream(talk, json.loads(request.body), "ag-ui")
    return StreamingHttpResponse(stream, headers=stream.headers)


settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="of nobody")
django.setup()
urlpatterns = [path("talk", answer)]


async def main() -> str:
    body = json.dumps({"messages": [{"id": "1", "role": "user", "content": "hi"}]})
    reply = await AsyncClient().post("/talk", data=body, content_type="application/json")
    check("head", (reply.status_code, reply["content-type"]), (200, "text/event-stream"))
    return b"".join([piece async for piece in reply]).decode()


answers("fine")
text = asyncio.run(main())
check("body", ("RUN_STARTED" in text, "RUN_FINISHED" in text), (True, True))
seen("the stream whole, with its headers")
