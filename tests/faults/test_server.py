"""The fault server as a program: every scenario at an address of its own, byte-exact."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.faults import server
from tests.faults.replies import good, sends, status
from tests.faults.scenarios import SCENARIOS
from tests.faults.server import FaultServer, head, in_chunk, with_length

ROOT = Path(__file__).parents[2]
BODY = json.dumps({"messages": []}).encode()
QUESTION = b"POST /play/v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


def test_bytes_are_exact():
    assert head(200, x_a=1) == b"HTTP/1.1 200 Scripted\r\nx-a: 1\r\n\r\n"
    assert head("204 No Content", version="HTTP/1.0") == b"HTTP/1.0 204 No Content\r\n\r\n"
    assert (
        with_length(b"{}") == b"HTTP/1.1 200 Scripted\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    )
    assert in_chunk(b"0123456789abcdef") == b"10\r\n0123456789abcdef\r\n"


async def asked(address, *pieces, gap=0.0):
    reader, writer = await asyncio.open_connection("127.0.0.1", address)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(gap)
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_what_an_act_sends_is_what_arrives():
    async with FaultServer({"play": [sends(b"\x00any", b"thing\xff", end="close")]}) as faults:
        assert await asked(faults.port, QUESTION) == b"\x00anything\xff"
        assert faults.requests("play")[0].data == {"messages": []}
        assert faults.requests("play")[0].path == "/play/v1/chat/completions"


@pytest.mark.parametrize("size", [1, 7, 40])
async def test_a_request_may_come_in_pieces(size):
    pieces = [QUESTION[at : at + size] for at in range(0, len(QUESTION), size)]
    async with FaultServer({"play": [sends(b"ok", end="close")]}) as faults:
        assert await asked(faults.port, *pieces, gap=0.0001) == b"ok"


async def test_a_chunked_request_is_read():
    chunked = b"POST /play HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + in_chunk(BODY) + b"0\r\n\r\n"
    async with FaultServer({"play": [sends(b"ok", end="close")]}) as faults:
        assert await asked(faults.port, chunked) == b"ok"
        assert faults.requests("play")[0].data == {"messages": []}


async def test_a_reset_is_a_reset():
    async with FaultServer({"play": [sends(end="reset")]}) as faults:
        with pytest.raises(ConnectionResetError):
            await asked(faults.port, QUESTION)


async def test_the_last_act_is_repeated_or_the_play_begins_again():
    acts = [status(500), sends(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]
    for again, expected in ((False, [500, 200, 200]), (True, [500, 200, 500])):
        async with FaultServer({"play": acts}, again=again) as faults:
            found = [int((await asked_politely(faults.address("play")))[0]) for _ in range(3)]
        assert found == expected


async def test_an_unknown_play_is_not_found():
    async with FaultServer({"play": [good]}) as faults:
        assert await asked_politely(faults.address("nothing")) == (404, '{"error": {"message": "no such scenario"}}')


async def asked_politely(address):
    return await asyncio.to_thread(_asked, address)


def _asked(address):
    request = urllib.request.Request(address + "/chat/completions", BODY, {"content-type": "application/json"})
    try:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_scenarios_are_listed(capsys):
    server.main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [scenario.name for scenario in SCENARIOS]


async def test_the_server_as_a_program():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.server", "--port", "0", cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        address = line.split()[-1]
        assert address.startswith("http://127.0.0.1:")
        code, body = await asked_politely(address.replace("NAME", "quota"))
        assert (code, json.loads(body)["error"]["code"]) == (429, "insufficient_quota")
    finally:
        process.terminate()
        await process.communicate()
