"""Request coalescing: identical questions that are asked at the same time on one event loop are sent once (single flight)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeAlias

from SimpleLLMFunc.errors import DeadlineExceeded, ProviderError
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.type import ChatCompletion

Outcome: TypeAlias = tuple[ChatCompletion, bool] | ProviderError
"""The answer and whether others may have it; or what the service did to the request, which is the same for all."""


_in_flight: dict[tuple[asyncio.AbstractEventLoop, Hashable], asyncio.Future[Outcome]] = {}
"""The requests in flight, by event loop and question."""


async def share_request(
    key: Hashable, ask: Callable[[], Awaitable[tuple[ChatCompletion, bool]]], clock: Deadline
) -> tuple[ChatCompletion, bool]:
    """Return the answer to a question, and whether another call has asked for it.

    Args:
        key: of the question.
        ask: returns the answer, and whether others may have it.
        clock: of the call.

    Raises:
        ProviderError: the service failed or refused, for all that ask.
        DeadlineExceeded: another call's request took too long.
    """
    loop = asyncio.get_running_loop()
    while (request := _in_flight.get((loop, key))) is not None:
        done, _ = await asyncio.wait({request}, timeout=clock.left())
        if not done:
            raise DeadlineExceeded(clock.seconds, doing="waiting for the same question asked by another call")
        if request.cancelled():
            continue  # the first call was cancelled, or failed in a way that concerns no other
        outcome = await request
        if isinstance(outcome, ProviderError):
            error = _copied(outcome)
            error.tries = 0
            raise error
        answer, may_share = outcome
        return (answer, True) if may_share else ((await ask())[0], False)
    request = _in_flight[loop, key] = loop.create_future()
    try:
        found = await ask()
    except ProviderError as error:
        # As it is now: the run around it will write its own facts into the error.
        request.set_result(_copied(error))
        raise
    else:
        request.set_result(found)
        return found[0], False
    finally:
        del _in_flight[loop, key]
        request.cancel()  # does nothing where the outcome is known


def _copied(error: ProviderError) -> ProviderError:
    copied = copy.copy(error)
    copied.__cause__ = error.__cause__
    return copied
