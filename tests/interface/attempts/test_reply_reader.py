"""Reading replies from memory: what no cut, split or noise may change."""

import asyncio
import itertools
import json

import pytest

from SimpleLLMFunc.errors import BadReply, BadRequest, ConnectionFailed, SimpleLLMFuncError, StreamInterrupted
from SimpleLLMFunc.interface.attempts.reply_reader import check_status, read_chunks, read_reply
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import HttpRequest, TryTimeout
from SimpleLLMFunc.interface.spending.deadline import Deadline
from SimpleLLMFunc.interface.wires import CHAT, Kept
from tests.support.server import chunk, completion, sse


class MemoryReply:
    """A reply whose body lies ready in pieces; `breaks` is the error that ends it."""

    url, request = "", HttpRequest("", b"", {}, "m")
    is_checked = True

    def __init__(self, *pieces, status=200, breaks=None, headers=None):
        self.status = status
        self.headers = headers or {}
        self.timeout = TryTimeout(Deadline.after(None), first_byte=60, idle=60)
        self._pieces = [piece for piece in pieces if piece]
        self._breaks = breaks

    async def piece(self):
        if self._pieces:
            return self._pieces.pop(0)
        if self._breaks:
            raise AttemptFailed(self._breaks)
        return b""


def chunks_of(*pieces, **options):
    async def run():
        return [item async for piece in read_chunks(MemoryReply(*pieces, **options), CHAT, Kept()) for item in piece]

    return asyncio.run(run())


def text_of(*pieces, **options):
    return "".join(item.text for item in chunks_of(*pieces, **options))


def error_of(*pieces, **options):
    try:
        chunks_of(*pieces, **options)
    except AttemptFailed as failed:
        return failed.error
    except SimpleLLMFuncError as error:
        return error
    raise AssertionError("nothing was raised")


def reply_of(*pieces, **options):
    return asyncio.run(read_reply(MemoryReply(*pieces, **options), CHAT, Kept()))


STREAM = sse(
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "caf\u00e9 \u2028"}),
    chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
    chunk({}, finish_reason="tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
)


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
def test_split_at_every_byte_it_is_the_same(end):
    stream = STREAM.replace(b"\n\n", end.encode())
    whole = chunks_of(stream)
    assert "".join(item.text for item in whole) == "caf\u00e9 \u2028"
    for at in range(1, len(stream)):
        assert chunks_of(stream[:at], stream[at:]) == whole
    assert chunks_of(*(stream[at : at + 1] for at in range(len(stream)))) == whole


@pytest.mark.parametrize("breaks", [None, ConnectionFailed("m", reason="torn")])
def test_ended_at_every_byte_it_is_the_same_or_interrupted(breaks):
    outcomes = set()
    for at in range(len(STREAM)):
        try:
            outcomes.add(("whole", text_of(STREAM[:at], breaks=breaks)))
        except StreamInterrupted as error:
            outcomes.add(("interrupted", error.partial))
        except AttemptFailed as failed:
            outcomes.add((failed.again, type(failed.error).__name__, failed.error.partial))
    text = "caf\u00e9 \u2028"
    assert outcomes == {("whole", text), ("interrupted", text), ("always", "StreamInterrupted", "")}


@pytest.mark.parametrize(("before", "kind"), [([], BadReply), ([chunk({"content": "Hel"})], StreamInterrupted)])
def test_what_breaks_the_transport_after_some_text_is_not_asked_for_again(before, kind):
    pieces = [b": ping\n\n", *(sse(event, done=False) for event in before)]
    with pytest.raises((AttemptFailed, StreamInterrupted)) as caught:
        chunks_of(*pieces, breaks=BadReply("m", problem="not HTTP"))
    error = caught.value.error if isinstance(caught.value, AttemptFailed) else caught.value
    assert isinstance(error, kind)
    assert isinstance(caught.value, AttemptFailed) == (kind is BadReply)


def escaped(text):
    return json.dumps(text)  # ASCII only: a half of a pair stands as its escape


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a\ud83d", "\ude00b"], "a\U0001f600b"), (["a", "\ud83d", "\ude00"], "a\U0001f600"),
        (["\ud83d", "b"], "\ufffdb"), (["\ude00b"], "\ufffdb"), (["a\U0001f600"], "a\U0001f600"), (["a\ud83d"], "a\ufffd"),
    ],
)  # fmt: skip
def test_pairs_split_between_chunks_are_joined(pieces, text):
    stream = b"".join(
        b'data: {"choices":[{"index":0,"delta":{"content":%b}}]}\n\n' % escaped(piece).encode() for piece in pieces
    )
    assert text_of(stream + sse(chunk({}, finish_reason="stop"))) == text


def test_what_is_read_of_whole_replies():
    assert reply_of(json.dumps([completion("x")]).encode()).text == "x"
    assert reply_of(b"\n\n  ", json.dumps(completion("x")).encode()).text == "x"
    assert reply_of(b"\xef\xbb\xbf" + json.dumps(completion("x")).encode()).text == "x"
    data = json.dumps(completion("x" * 400_000)).encode()
    cuts = [0, 7, 100_000, len(data)]
    assert len(reply_of(*(data[left:right] for left, right in itertools.pairwise(cuts))).text) == 400_000


@pytest.mark.parametrize(("written", "declared"), [("gbk", '"GBK"; a=b'), ("utf-16", "utf-16"), ("utf-8", "latin-1")])
def test_a_body_that_is_not_utf_8_is_read_in_the_charset_that_is_declared(written, declared):
    options = {"headers": {"content-type": f"text/json; Charset={declared}"}}
    body = json.dumps(completion("\u4e2d"), ensure_ascii=False)
    assert reply_of(body.encode(written), **options).text == "\u4e2d"
    # A stream may hold a whole reply; its lines cannot be told apart in UTF-16.
    assert written == "utf-16" or text_of(f"data: {body}\n\n".encode(written), **options) == "\u4e2d"


async def test_a_long_error_is_read_off_the_loop():
    body = json.dumps({"detail": [{"field": number} for number in range(150_000)]}).encode()
    with pytest.raises(AttemptFailed) as caught:
        await check_status(MemoryReply(body, status=422), CHAT)
    error = caught.value.error
    assert isinstance(error, BadRequest)
    assert "field" in error.body
    assert len(error.body) <= 500
    with pytest.raises(AttemptFailed, match="the status is 300"):
        await check_status(MemoryReply(status=300), CHAT)


@pytest.mark.parametrize(("told", "cost"), [("0.0025", 0.0025), ("0", 0.0), ("None", None), ("-1", None)])
def test_the_cost_that_a_litellm_proxy_tells_is_the_cost(told, cost):
    headers = {"x-litellm-response-cost": told}
    assert reply_of(json.dumps(completion("hi")).encode(), headers=headers).usage.cost == cost
    assert reply_of(json.dumps({**completion("hi"), "usage": None}).encode(), headers=headers).usage is None


def test_with_several_choices_all_must_have_ended():
    def piece(index, finish=None):
        return {"choices": [{"index": index, "delta": {"content": str(index)}, "finish_reason": finish}]}

    assert text_of(sse(piece(0), piece(1), piece(0, "stop"), piece(1, "stop"), done=False)) == "00"
    error = error_of(sse(piece(0), piece(1), piece(0, "stop"), done=False))
    assert isinstance(error, StreamInterrupted)
    assert error.partial == "00"
