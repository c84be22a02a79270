"""Files and batches of a service: what its objects say, and what it says when it cannot."""

import os
import threading
from pathlib import Path

import pytest

from SimpleLLMFunc.batch.provider_batches import service as batch_service
from SimpleLLMFunc.batch.provider_batches.service import BatchService, BatchState
from SimpleLLMFunc.errors import BadReply, BadRequest
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.batch_server import BatchServer
from tests.support.server import json_answer


@pytest.fixture
async def server():
    async with BatchServer() as running:
        yield running


@pytest.fixture
async def service(server):
    async with BatchService(OpenAICompatible("m", base_url=server.base_url, retry_delay=0.001)) as opened:
        yield opened


def test_a_batch_as_the_service_tells_of_it():
    state = BatchState.read(
        {
            "id": "b",
            "status": "failed",
            "output_file_id": None,
            "error_file_id": "f",
            "request_counts": {"total": 5, "completed": 2, "failed": 1},
            "errors": {"data": [{"code": "c", "message": "bad", "line": 2}, {"code": "d"}, None]},
        }
    )
    assert (state.files, state.total, state.done, state.has_ended) == (("f",), 5, 3, True)
    assert state.problem == "bad (line 2); d"
    assert state.codes == {"c", "d"}
    assert BatchState.read({"request_counts": [], "errors": "x"}) == BatchState("", "")
    assert not BatchState("b", "finalizing").has_ended


async def test_the_disk_is_not_waited_for_on_the_event_loop(server, service, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_service, "_PORTION", 1000)
    content = os.urandom(10_500)
    server.files["f"] = content
    calls = []
    whole, append = Path.write_bytes, batch_service._append

    def begin(path, data):
        calls.append(("begin", len(data), threading.get_ident()))
        return whole(path, data)

    def go_on(path, portion):
        calls.append(("write", len(portion), threading.get_ident()))
        append(path, portion)

    monkeypatch.setattr(Path, "write_bytes", begin)
    monkeypatch.setattr(batch_service, "_append", go_on)
    (tmp_path / "down").write_text("of a try that broke off")
    await service.download("f", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == content
    assert [(what, size) for what, size, _ in calls] == [("begin", 0), *[("write", 1000)] * 10, ("write", 500)]
    assert threading.get_ident() not in {thread for *_, thread in calls}


@pytest.mark.parametrize("data", ["text", [], {}, {"id": ""}, {"id": 7}])
async def test_what_is_no_batch_is_a_bad_reply(server, service, data):
    server.trouble("GET /batches/", json_answer(data))
    if data == {"id": 7}:
        assert (await service.retrieve("x")).id == "7"
        return
    with pytest.raises(BadReply):
        await service.retrieve("x")


async def test_a_name_from_the_service_leads_nowhere_else(server, service):
    with pytest.raises(BadRequest):
        await service.retrieve("../files?x=1")
    assert server.requests[-1].path.endswith("/batches/..%2Ffiles%3Fx%3D1")
