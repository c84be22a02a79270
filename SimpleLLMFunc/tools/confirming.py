"""Asking whether a tool may run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from SimpleLLMFunc.errors import RunPaused, UsageError
from SimpleLLMFunc.logger import push_warning, shown_traceback
from SimpleLLMFunc.tools.running import run_callable

Confirm: TypeAlias = Callable[[str, dict[str, Any]], Any]
"""``confirm(tool_name, arguments) -> bool``, sync or async; only `True` lets the tool run."""


class AnsweredInstead(Exception):
    """Raised by a confirmation that answers in place of the tool: its text is what the model reads."""


class NobodyToAsk(UsageError):
    """Raised by a confirmation that cannot ask anybody in the way it was told to; any other failure is a no."""


async def is_agreed(confirm: Confirm, tool: str, arguments: dict[str, Any]) -> bool:
    """Return whether `confirm` says `True`; a text such as "no", a number or a failure is no agreement, and is logged.

    Raises:
        AnsweredInstead: the model is to read something else.
        RunPaused: the answer comes later, and from elsewhere.
        NobodyToAsk: no person can be asked in this way.
    """
    said = await _said(confirm, tool, arguments, AnsweredInstead, RunPaused, NobodyToAsk)
    if not isinstance(said, bool):
        kind = type(said).__name__
        push_warning(f"the confirmation of {tool} gave a {kind}, which counts as no. Return True to let it run.")
    return said is True


async def filled_in(confirm: Confirm, tool: str, form: dict[str, Any]) -> bool | dict[str, Any]:
    """Return what `confirm` says to a form that a tool's server wants filled in: the fields, yes or no; a failure is a no."""
    said = await _said(confirm, tool, form)
    if isinstance(said, bool):
        return said
    if isinstance(said, Mapping):
        return dict(said)
    push_warning(
        f"the confirmation of {tool} gave a {type(said).__name__}, which counts as no. Return a bool or a dict."
    )
    return False


async def _said(confirm: Confirm, tool: str, given: dict[str, Any], *passing: type[Exception]) -> Any:
    """Return what `confirm` says, False where it fails; the errors of `passing` are raised."""
    try:
        # A thread for a sync one: it may well wait at a prompt.
        return await run_callable(confirm, [tool, given], {})
    except passing:
        raise
    except Exception as error:  # noqa: BLE001 - a user who cannot be asked has not agreed
        reason = error
    push_warning(lambda: f"the confirmation of {tool} failed: {shown_traceback(reason)}")
    return False
