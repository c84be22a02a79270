"""What the tests of this room share: a plain environment, and a server that echoes."""

import os

import pytest

from tests.support.server import LoopbackServer


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    named = ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "SSL_CERT")
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith(named):
            monkeypatch.delenv(name)


@pytest.fixture
async def server():
    async with LoopbackServer() as server:
        yield server
