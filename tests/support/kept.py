"""Tells what calls have left behind once the garbage is collected."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from SimpleLLMFunc.errors import BadReply, BadRequest, ConnectionFailed, ServerUnavailable
from SimpleLLMFunc.interface.attempts.http_model import Call, HttpModel
from SimpleLLMFunc.interface.attempts.reply_reader import check_status, read_reply
from SimpleLLMFunc.interface.composite.fallback import FallbackLLM
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from tests.support.loop_guard import forget_call

_KINDS = {Call, AttemptFailed, ServerUnavailable, BadRequest, BadReply, ConnectionFailed}
_FRAMES = {
    function.__code__
    for function in (
        HttpModel._send,
        HttpModel._pause,
        OpenAICompatible.chat,
        OpenAICompatible.chat_stream,
        FallbackLLM.chat,
        FallbackLLM.chat_stream,
        check_status,
        read_reply,
    )
}


@contextmanager
def watching_calls() -> Iterator[Callable[[], list[Any]]]:
    """Give what returns all that there is of calls and was not there before.

    That is the calls themselves, what they raised, and the frames that ran them.
    """
    before = _of_calls()  # other tests may keep errors for long
    yield lambda: [found for found in _of_calls() if all(found is not other for other in before)]


def _of_calls() -> list[Any]:
    forget_call()  # the guard of the event loop holds the frame that it saw last
    gc.collect()
    return [
        found
        for found in gc.get_objects()
        if type(found) in _KINDS or (type(found) is types.FrameType and found.f_code in _FRAMES)
    ]
