"""What a call sends, byte for byte: a change of a prompt or of a body is seen in `tests/golden/requests_*.txt`."""

from __future__ import annotations

import re

import pytest

from tests.llm_decorator.golden_calls import CASES, Asked
from tests.support.connections import Recorded
from tests.support.golden import golden
from tests.support.server import LoopbackServer

SHOWN_HEADERS = ("accept", "authorization", "content-type", "x-team")


def shown(request: Recorded) -> str:
    headers = [f"{name}: {request.headers[name]}" for name in SHOWN_HEADERS if name in request.headers]
    # Random: the id that we give to a call that has none, and the marks around text from outside.
    body = re.sub(r"(?<=call_)[0-9a-f]{24}|(?<=id=\\\")[0-9a-f]{16}", "RANDOM", request.raw.decode())
    return "\n".join([f"{request.method} {request.path}", *headers, body])


def test_there_are_many_of_them():
    assert sum(map(len, CASES.values())) >= 60


@pytest.mark.parametrize("group", CASES)
async def test_the_requests_are_those_of_before(group, tmp_path):
    texts = []
    for name, run in CASES[group].items():
        async with LoopbackServer() as server:
            await run(Asked(server, tmp_path))
            assert server.requests, name
            texts.append("\n\n".join([f"=== {name}", *map(shown, server.requests)]))
    golden(f"requests_{group}.txt", "\n\n".join(texts))
