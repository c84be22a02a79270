"""Foreign exceptions become ours, and nothing of the request stays with them."""

import asyncio
import importlib
import importlib.util
import socket
import ssl

import aiohttp
import openai
import pytest
from multidict import CIMultiDict
from yarl import URL

from SimpleLLMFunc import BadReply
from SimpleLLMFunc.errors import ConnectionFailed, DeadlineExceeded, ServerUnavailable, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http.error_mapping import BodyBroken, failure_of_exception
from SimpleLLMFunc.interface.http.timeouts import Silence
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.asking import HELLO, ask_either
from tests.support.busy_loop import ThreadServer, read_request

CANARY = "sk-CANARY0123456789abcdefghij"
GONE, TORN = OSError("gone"), OSError("gone: torn")
GONE.__cause__ = TORN.__cause__ = ValueError("torn")


def classes_of(*modules):
    found = {
        value
        for module in modules
        for value in list(vars(module).values())
        # Asked of its type: a lazy proxy of the openai package would load all that it stands for.
        if issubclass(type(value), type)
        and issubclass(value, Exception)
        and value.__module__.split(".")[0] != "builtins"
    }
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def instance(kind):
    """An object of the class without its constructor: those want what only a real exchange has."""
    error = kind.__new__(kind)
    error.args = ("it happened",)
    for name in ("message", "status", "request_info", "history", "headers", "os_error", "_os_error"):
        try:
            setattr(error, name, "text" if name == "message" else 400)
        except AttributeError:
            continue
    return error


def test_every_exception_of_the_openai_package_has_a_translation(monkeypatch):
    kinds = classes_of(openai)
    assert len(kinds) > 15
    for kind in kinds:
        if kind.__str__ is not Exception.__str__:
            monkeypatch.setattr(kind, "__str__", lambda error: "it happened")
        result = failure_of_exception(instance(kind), "m", 2)
        error = result.error if isinstance(result, AttemptFailed) else result
        assert isinstance(error, SimpleLLMFuncError), kind
        assert error is result or error.tries == 2


def test_so_has_every_one_of_the_client_below():
    # The HTTP client that the installed openai package stands on.
    name = next(name for name in ("httpx2", "httpx") if importlib.util.find_spec(name))
    for kind in classes_of(importlib.import_module(name)):
        assert isinstance(failure_of_exception(instance(kind), "m", 1), (AttemptFailed, SimpleLLMFuncError)), kind


def connector_error(kind, error):
    key = aiohttp.client_reqrep.ConnectionKey("host", 1, True, True, None, None, None)
    return kind(key, error)


def response_error(kind, **more):
    info = aiohttp.RequestInfo(URL("http://host/"), "POST", CIMultiDict({"Authorization": f"Bearer {CANARY}"}))
    return kind(info, (), **more)


def test_every_exception_of_aiohttp_has_a_translation(monkeypatch):
    for kind in classes_of(aiohttp):
        if kind.__str__ is not Exception.__str__:
            monkeypatch.setattr(kind, "__str__", lambda error: "it happened")
        error = instance(kind)
        if issubclass(kind, aiohttp.ClientConnectorError):
            error = connector_error(aiohttp.ClientConnectorError, OSError(111, "refused"))
        if issubclass(kind, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError)):
            error = connector_error(kind, ssl.SSLError(1, "handshake"))
        result = failure_of_exception(error, "m", 2)
        assert isinstance(result.error if isinstance(result, AttemptFailed) else result, SimpleLLMFuncError), kind


@pytest.mark.parametrize(
    ("error", "kind", "again", "said"),
    [
        (aiohttp.ServerDisconnectedError(), ConnectionFailed, "always", "without an answer"),
        (aiohttp.ClientPayloadError("cut"), ConnectionFailed, "always", "broke off: cut"),
        (BodyBroken("cut"), ConnectionFailed, "always", "broke off: cut"),
        (connector_error(aiohttp.ClientConnectorError, OSError(1, "x")), ConnectionFailed, "always", "host:1: Operation not"),
        (connector_error(aiohttp.ClientConnectorDNSError, socket.gaierror(-2, "not known")),
         ConnectionFailed, "always", "host:1: not known"),
        (connector_error(aiohttp.ClientConnectorSSLError, ssl.SSLError(1, "handshake")),
         ConnectionFailed, "never", "TLS: host:1: handshake). Check the address"),
        (connector_error(aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError("bad")),
         ConnectionFailed, "never", "SSL_CERT_FILE"),
        *((response_error(aiohttp.ClientHttpProxyError, status=status), ConnectionFailed, "always",
           f"proxy answered {status}") for status in (408, 429, 500)),
        (response_error(aiohttp.ClientHttpProxyError, status=407), ConnectionFailed, "never", "proxy answered 407"),
        (response_error(aiohttp.ClientResponseError, status=400, message="no line:\n\n  b'220'\n  ^"), BadReply, "once", "(no line)"),
        (ConnectionResetError("reset"), ConnectionFailed, "always", "(ConnectionResetError: reset)"),
        *((error, ConnectionFailed, "always", "(OSError: gone: torn)") for error in (GONE, TORN)),
        (TimeoutError("slow"), ConnectionFailed, "always", "slow"),
        (Silence("nothing came for 5 s"), ConnectionFailed, "always", "nothing came for 5 s"),
        (ssl.SSLCertVerificationError("bad"), ConnectionFailed, "never", "TLS"),
        (RuntimeError("Session is closed"), ConnectionFailed, "never", "closed"),
    ],
)  # fmt: skip
def test_what_a_further_try_may_cure(error, kind, again, said):
    result = failure_of_exception(error, "m", 1)
    assert isinstance(result, AttemptFailed)
    assert (type(result.error), result.again) == (kind, again)
    assert said in str(result.error)
    assert CANARY not in repr(result.__cause__) + str(result.error)


def test_a_cause_without_a_secret_is_kept():
    result = failure_of_exception(ConnectionResetError("cut"), "m", 1)
    assert "cut" in str(result.error)
    error = ValueError("x")
    assert failure_of_exception(error, "m", 1).__cause__ is error
    copied = failure_of_exception(ValueError(f"Bearer {CANARY}"), "m", 1).__cause__
    assert CANARY not in str(copied)
    assert "ValueError" in str(copied)


def test_ours_pass_as_they_are():
    for error in (UsageError("x"), DeadlineExceeded(1), AttemptFailed(ServerUnavailable("m"))):
        assert failure_of_exception(error, "m", 1) is error


@pytest.mark.parametrize(
    ("url", "said"),
    [("http://127.0.0.1:9/v1", "127.0.0.1:9: Connection refused"), ("https://127.0.0.1:9/v1", "Connection refused")],
)
async def test_a_connection_that_fails_is_told_in_few_words(url, said):
    llm = OpenAICompatible("m", api_key="a-key-for-nobody", base_url=url, max_retries=0)
    with pytest.raises(ConnectionFailed, match=said) as failed:
        await llm.chat(HELLO)
    assert "object at" not in str(failed.value)
    assert str(failed.value).count("refused") == 1


async def test_a_name_that_is_unknown_is_told(monkeypatch):
    def unknown(*_):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    llm = OpenAICompatible("m", base_url="http://nowhere.example/v1", api_key=CANARY, max_retries=0)
    with pytest.raises(ConnectionFailed, match=r"nowhere\.example:80: Name or service not known"):
        await llm.chat(HELLO)


# --- the key is in no frame ------------------------------------------------------------------------------


def in_frames(error):
    """Yield where the key stands in what an error reporter sends along: every variable of every frame, of every cause."""
    seen, waiting = set(), [error]
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        waiting += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())]
        if CANARY in f"{part!r} {part!s} {vars(part)!r}":
            yield f"{type(part).__name__} itself"
        trace = part.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if "/tests/" not in code.co_filename:
                for name, value in trace.tb_frame.f_locals.items():
                    if CANARY in repr(value):
                        yield f"{type(part).__name__}: {name} in {code.co_qualname}"
            trace = trace.tb_next


HELD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 500\r\n\r\n"
EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
FAILURES = {
    "no answer": (None, {"deadline": 0.1}), "no first byte": (None, {"timeout": 0.1}),
    "no body": (HELD, {"deadline": 0.1}), "half a stream": (HELD + EVENT, {"deadline": 0.2}), "closed": (b"", {}),
    "half a head": (b"HTTP/1.1 200", {}), "half a body": (HELD + EVENT + b"end", {}),
    "no HTTP": (b"220 mail.example\r\n", {}), "a refusal": (b"HTTP/1.1 401 No\r\ncontent-length: 2\r\n\r\n{}", {}),
    "overloaded": (b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\n{}", {}),
    "a bad chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", {}),
    "elsewhere": (b"HTTP/1.1 307 No\r\nlocation: http://else.example/\r\ncontent-length: 0\r\n\r\n", {}),
}  # fmt: skip


def failing(data):
    def serve(sock, _):
        read_request(sock)
        sock.sendall(data or b"")
        if data is None or (data.startswith(HELD) and not data.endswith(b"end")):
            sock.recv(1)  # until the other side gives up

    return ThreadServer(serve)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", FAILURES)
async def test_the_key_is_in_no_frame_of_a_failure(name, stream):
    data, options = FAILURES[name]
    with failing(data) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, api_key=CANARY, max_retries=1, retry_delay=0.001)
        with pytest.raises(SimpleLLMFuncError) as caught:
            await ask_either(llm, stream, **options)
    assert list(in_frames(caught.value)) == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "https://127.0.0.1:9/v1", "http://host.invalid/v1"])
async def test_nor_of_a_connection_that_does_not_come_about(address, monkeypatch):
    llm = OpenAICompatible("m", base_url=address, api_key=CANARY, max_retries=1, retry_delay=0.001)
    with pytest.raises(ConnectionFailed) as caught:
        await llm.chat(HELLO, deadline=5)
    assert list(in_frames(caught.value)) == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("data", [None, HELD + EVENT])
async def test_nor_of_a_time_limit_around_a_call(stream, data):
    with failing(data) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, api_key=CANARY)
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.2):
                await ask_either(llm, stream)
        assert list(in_frames(caught.value)) == []
        asking = asyncio.ensure_future(ask_either(llm, stream))
        await asyncio.sleep(0.1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await asking
        assert list(in_frames(cancelled.value)) == []
