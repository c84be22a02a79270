"""The one place where exceptions of HTTP clients become ours; the result holds no secret."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable
from typing import TypeVar

from SimpleLLMFunc.errors import BadReply, ConfigError, ConnectionFailed, UsageError
from SimpleLLMFunc.interface.failed_attempt import Again, AttemptFailed
from SimpleLLMFunc.interface.http.timeouts import Silence
from SimpleLLMFunc.logger import redact, redacted_cause, shown_text, with_causes

T = TypeVar("T")

_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})
"""What OpenSSL says of a reply that is no TLS."""

_HUNG_UP = frozenset({"ServerDisconnectedError", "RemoteProtocolError", "ReadError"})
"""A server has closed a connection without an answer, as one that speaks TLS does to plain HTTP."""

_NO_TLS_THERE = "The server there does not speak TLS: write http:// instead of https:// in its address."
_TLS_THERE = "The server there speaks TLS: write https:// instead of http:// in its address."
_NO_TRUST = "Check the address and the clock. The certificates of your network's own authority go into SSL_CERT_FILE."
_PERHAPS_TLS = (
    "Check the address, the network and the proxy; where the server speaks TLS, write https:// instead of http://."
)


class BodyBroken(Exception):
    """The body of a reply ended before its end, or is not in the form that its head says."""


async def translated(work: Awaitable[T], model: str, tries: int, url: str = "") -> T:
    """Return what `work` gives, and translate its exceptions into ours.

    `url` is given while no answer has begun. Tracebacks lose the frames below this one: frames of an HTTP client hold the
    headers, and so the key.
    """
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - no foreign exception may pass
        failure = failure_of_exception(error, model, tries, url)
    except BaseException as error:  # noqa: BLE001 - it goes on: cancelled, closed, interrupted
        raise without_frames(error)  # noqa: B904 - the same one
    # Not inside the block above: the foreign one would stay as the context of ours, secrets and all.
    try:
        raise without_frames(failure)
    finally:
        del failure  # the traceback holds this frame, which would hold the traceback


def failure_of_exception(error: Exception, model: str, tries: int, url: str = "") -> Exception:
    """Return what a foreign exception is among ours: a `AttemptFailed`, or one of our errors that no further try cures.

    Its cause is the foreign one, or a copy without the secret that this holds. Ours come back as they are.
    """
    failure = _among_ours(error, model, tries)
    if failure is not error and (advice := _advice(error, url)):
        reason = getattr(getattr(failure, "error", None), "reason", "") or "the reply is no HTTP"
        again: Again = "always" if advice is _PERHAPS_TLS else "never"
        failure = _failed(reason, model, tries, again=again, advice=advice)
    if failure is not error:
        failure.__cause__ = without_frames(redacted_cause(error))
    return failure


def without_frames(error: BaseException) -> BaseException:
    """Return `error`, its tracebacks and those of what led to it taken off: they hold all that their functions held.

    The frames of an HTTP client hold the headers of the request, and programs that report errors send the variables of
    every frame along; an error that is kept for long keeps them for as long.
    """
    for part in with_causes(error):
        part.__traceback__ = None
    return error


def _among_ours(error: Exception, model: str, tries: int) -> Exception:
    text = shown_text(str(error)) or type(error).__name__
    family = type(error).__module__.partition(".")[0]
    if isinstance(error, Silence):
        return _failed(text, model, tries)
    if isinstance(error, BodyBroken):
        return _failed(f"the body broke off: {text}", model, tries)
    if isinstance(error, AttemptFailed) or family == "SimpleLLMFunc":
        return error
    if family == "aiohttp":
        return _failure_of_aiohttp(error, text, model, tries)
    if is_about_tls(error):
        return _failed(f"TLS: {text}", model, tries, again="never")
    if isinstance(error, OSError) or family in {"httpx", "httpx2", "httpcore", "httpcore2"}:
        return _failed(_reason(error, text), model, tries)
    if family == "openai":
        return _failure_of_openai(error, text, model, tries)
    if isinstance(error, (TypeError, ValueError)):
        return UsageError(f"the request cannot be sent: {text}")
    return _of_another_loop(error) or _failed(f"{type(error).__name__}: {text}", model, tries, again="never")


def _failure_of_aiohttp(error: Exception, text: str, model: str, tries: int) -> Exception:
    import aiohttp

    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError)):
        text = f"{error.host}:{error.port}: {redact(_said_by_system(error))}"
    if is_about_tls(error):
        return _failed(f"TLS: {text}", model, tries, again="never")
    if isinstance(error, aiohttp.ClientConnectorError):
        return _failed(text, model, tries)
    if isinstance(error, aiohttp.InvalidURL):
        return ConfigError("base_url cannot be used. Give an http or https address.")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        final = error.status < 500 and error.status not in {408, 429}
        return _failed(f"the proxy answered {error.status}", model, tries, again="never" if final else "always")
    if isinstance(error, aiohttp.ClientResponseError):
        said = [line.strip() for line in shown_text(error.message).splitlines() if line.strip(" ^")] or [text]
        problem = f"it is not HTTP as we know it ({said[0].rstrip(':')})"
        return AttemptFailed(BadReply(model, problem=problem, head=" ".join(said[1:]), tries=tries), again="once")
    if isinstance(error, aiohttp.ClientPayloadError):
        return _failed(f"the body broke off: {text}", model, tries)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return _failed("the server closed the connection without an answer", model, tries)
    return _failed(_reason(error, text), model, tries)


def _said_by_system(error: BaseException) -> str:
    """Return what the system, or TLS, says of a connection that did not come about."""
    cause = error.__cause__ or error
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno and cause.errno > 0:
        return os.strerror(cause.errno)
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__


def _failure_of_openai(error: Exception, text: str, model: str, tries: int) -> Exception:
    """Translate what `client=` raises."""
    import openai

    if isinstance(error, openai.APIConnectionError):
        return _of_another_loop(error.__cause__) or _failed(_reason(error, text), model, tries)
    if isinstance(error, openai.APIError):
        return AttemptFailed(BadReply(model, problem="the client refused it", head=text, tries=tries), again="never")
    return ConfigError(f"the client given as client= cannot send the request: {text}")


def _of_another_loop(error: BaseException | None) -> ConfigError | None:
    # Version 2 of the package wraps it, version 3 lets it through.
    if isinstance(error, RuntimeError) and "loop" in str(error):
        return ConfigError(
            "the client given as client= has connections of another event loop, and your own http_client, which "
            "cannot serve two. Leave that out, or make a model for each loop."
        )
    return None


def _failed(reason: str, model: str, tries: int, *, again: Again = "always", advice: str = "") -> AttemptFailed:
    advised = {"advice": advice} if advice else {}
    return AttemptFailed(ConnectionFailed(model, reason=reason, tries=tries, **advised), again=again)


def _advice(error: Exception, url: str) -> str:
    """Return what to do where TLS failed, or one side speaks it and the other may not; else nothing."""
    chain = list(with_causes(error))
    if any(isinstance(part, ssl.SSLCertVerificationError) for part in chain):
        return _NO_TRUST
    if any(isinstance(part, ssl.SSLError) and getattr(part, "reason", "") in _NO_TLS for part in chain):
        return _NO_TLS_THERE
    if not url.startswith("http://"):
        return ""
    if any("\\x15\\x03" in str(part) for part in chain):  # a TLS alert, where HTTP was wanted
        return _TLS_THERE
    is_hung_up = any(isinstance(part, ConnectionResetError) or type(part).__name__ in _HUNG_UP for part in chain)
    return _PERHAPS_TLS if is_hung_up else ""


def _reason(error: BaseException, text: str) -> str:
    """Return what went wrong, with the cause where the client only says that something did."""
    cause = error.__cause__ or error.__context__
    more = f": {shown_text(str(cause))}" if cause is not None and str(cause) and str(cause) not in text else ""
    name = "" if text.startswith(type(error).__name__) else f"{type(error).__name__}: "
    return f"{name}{text}{more}"


def is_about_tls(error: BaseException) -> bool:
    """Whether a certificate or a handshake failed, which no further try cures."""
    return any(isinstance(part, (ssl.SSLError, ssl.CertificateError)) for part in with_causes(error))
