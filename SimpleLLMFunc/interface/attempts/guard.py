"""The switch that forbids requests to real services: for tests that must not cost anything."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from SimpleLLMFunc.errors import UsageError

_in_force: set[RealCallsForbidden] = set()


class RealCallsForbidden:
    """What `forbid_real_calls` returns; several may be in force at once, and requests stay forbidden until the last ends."""

    is_lifted = False

    def undo(self) -> None:
        """Allow what this one forbade; a second time does nothing."""
        _in_force.discard(self)

    def __enter__(self) -> Self:
        _in_force.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def forbid_real_calls() -> RealCallsForbidden:
    """Let every request of `OpenAICompatible` raise `UsageError` from now on, in all threads and to every address.

    It holds until ``.undo()`` of the returned object, or the end of its ``with`` block. Models inside this process
    and test doubles go on.
    """
    return RealCallsForbidden().__enter__()


@contextmanager
def real_calls_asked_for() -> Generator[None, None, None]:
    """Allow requests in the block, although they were forbidden before: the user has asked for just these."""
    mine = [each for each in tuple(_in_force) if not each.is_lifted]
    for each in mine:
        each.is_lifted = True
    try:
        yield
    finally:
        for each in mine:
            each.is_lifted = False


def are_real_calls_forbidden() -> bool:
    """Say whether `forbid_real_calls` is in force."""
    return not all(each.is_lifted for each in tuple(_in_force))


def check_real_call_allowed(model_name: str) -> None:
    """Return if requests may leave; every adapter asks this before it opens a connection.

    Raises:
        UsageError: `forbid_real_calls` is in force.
    """
    if are_real_calls_forbidden():
        raise UsageError(
            f"{model_name}: a request was about to leave, and forbid_real_calls() is in force. Give the function a "
            "ScriptedLLM (SimpleLLMFunc.testing) or a LocalModel, or call .undo() on what "
            "forbid_real_calls() returned."
        )
