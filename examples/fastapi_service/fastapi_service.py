# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[view]", "fastapi"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = "../.." }
# ///
"""A FastAPI service: a typed route behind keys, with a budget for each caller and a trace of every run.

python fastapi_service.py --new-key alice              # prints a key once, and writes its hash to callers.json
python fastapi_service.py                              # recorded answers, no key of a model
python fastapi_service.py --model openai:gpt-5-mini
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import uvicorn
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field

from SimpleLLMFunc import budget, llm_function, watching
from SimpleLLMFunc.observability.store import RunQuery, TraceStore
from SimpleLLMFunc.serve import fastapi_errors
from SimpleLLMFunc.serve.http_callers import Callers, hash_of, new_key
from SimpleLLMFunc.testing import use_cassette

HERE = Path(__file__).parent
CALLERS = Path(os.environ.get("CALLERS", "callers.json"))
TRACES = Path(os.environ.get("TRACES", "traces.sqlite"))


class Review(BaseModel):
    text: Annotated[str, Field(max_length=5000)]


class Grade(BaseModel):
    stars: int = Field(ge=1, le=5)
    mood: Literal["happy", "neutral", "angry"]


@llm_function(deadline=30)
async def grade(review: str) -> Grade:
    """Grade a review: how many stars would the author give, and in which mood?"""
    raise NotImplementedError


@asynccontextmanager
async def life(app: FastAPI) -> AsyncIterator[None]:
    """Open what the service needs; without a model in the environment, replay recorded answers."""
    recorded = not os.environ.get("SIMPLELLMFUNC_MODEL")
    with TraceStore(TRACES) as store, use_cassette(HERE / "cassette.json", "none") if recorded else nullcontext():
        app.state.callers, app.state.store = Callers.load(CALLERS), store
        yield


app = FastAPI(title="Grades", lifespan=life)
fastapi_errors(app)


def caller(key: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> str:
    """Return who calls."""
    found = app.state.callers.find(key.credentials)
    if found is None:
        raise HTTPException(401, "unknown key")
    return str(found.entry.name)


@app.post("/grades")
async def grades(review: Review, name: Annotated[str, Depends(caller)]) -> Grade:
    """Grade one review; at most five requests and 20,000 tokens for it."""
    with watching(app.state.store, user_id=name), budget(requests=5, tokens=20_000):
        return await grade(review.text)


@app.get("/runs")
def runs(name: Annotated[str, Depends(caller)]) -> list[dict[str, object]]:
    """List the latest runs of the caller."""
    app.state.store.flush()
    found = app.state.store.reader.runs(RunQuery(user=name)).runs
    return [{"function": run.function, "status": run.status, "trace_id": run.trace_id} for run in found]


def add_caller(name: str) -> str:
    """Write a new caller to the file, and return the key, which is kept nowhere."""
    known = json.loads(CALLERS.read_text("utf-8")) if CALLERS.exists() else []
    key = new_key()
    CALLERS.write_text(json.dumps([*known, {"name": name, "sha256": hash_of(key)}], indent=2), "utf-8")
    return key


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Serve grades of reviews.")
    parser.add_argument("--new-key", metavar="NAME", help="add a caller, print the key, and end")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", help="openai:gpt-5-mini, anthropic:…, gemini:…, local; without it recorded answers")
    chosen = parser.parse_args(arguments)
    if chosen.new_key:
        print(add_caller(chosen.new_key))
        return
    if chosen.model:
        os.environ["SIMPLELLMFUNC_MODEL"] = chosen.model
    uvicorn.run(app, port=chosen.port)


if __name__ == "__main__":
    main()
