"""Listening at an address of this machine."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.runtime.listening import THIS_MACHINE, address_of, listening, serve_until_cancelled


@pytest.mark.parametrize("host", ["0.0.0.0", "example.com", ""])
def test_other_machines_may_not_call_where_that_is_said(host):
    with (
        pytest.raises(ConfigError, match=r"on this machine only.*: because it costs"),
        listening(host, 0, others="because it costs."),
    ):
        pass


def test_what_is_there_begins_the_error():
    with (
        pytest.raises(
            ConfigError, match=r"^the page is served on this machine only \(.*\), not at '10\.0\.0\.1': no\.$"
        ),
        listening("10.0.0.1", 0, others="no.", offered="the page is served"),
    ):
        pass


def test_an_address_is_written_as_clients_write_it():
    for host in ("127.0.0.1", "localhost"):
        assert host in THIS_MACHINE
        with listening(host, 0) as listener:
            assert address_of(host, listener) == f"http://{host}:{listener.getsockname()[1]}"
            assert address_of("::1", listener).startswith("http://[::1]:")


def test_a_port_that_is_taken_and_one_that_is_none():
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=f":{port} cannot be used .*0 for any free one"),
            listening("127.0.0.1", port),
        ):
            pass
    with pytest.raises(ConfigError, match="cannot be used"), listening("127.0.0.1", 70_000):
        pass


async def test_it_serves_until_it_is_cancelled():
    async def hello(scope, receive, send):
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})

    with listening("127.0.0.1", 0) as listener:
        address = address_of("127.0.0.1", listener)
        serving = asyncio.create_task(serve_until_cancelled(hello, listener, lifespan="off"))
        read = lambda: urllib.request.urlopen(address, timeout=20).read()
        assert await asyncio.to_thread(read) == b"hello"
        serving.cancel()
        await asyncio.wait({serving}, timeout=20)
        assert serving.cancelled()
