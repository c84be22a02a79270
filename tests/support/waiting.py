"""A run that waits for an answer, in a journal."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from SimpleLLMFunc import OutcomeUnknown, RunPaused, durable, llm_function, pause_run, paused, tool, use_llm
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls


def sell(path: Path, key: str, *, is_lost: bool = False, confirm: bool = True) -> str:
    """Sell tea in a block; the till waits for an answer, or is lost while it works."""

    @tool(confirm=confirm, once=True)
    def pay(amount: int) -> str:
        """Pay."""
        if is_lost:
            raise KeyboardInterrupt
        return f"paid {amount}"

    @llm_function(toolkit=[pay], toolkit_confirm=pause_run)
    def shop(order: str) -> str:
        """Sell."""

    def told(request: Any) -> Any:
        results = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
        return results[0] if results else tool_calls(("pay", {"amount": 3}))

    with use_llm(ScriptedLLM(told, repeat=True)), durable(path, key):
        return shop(key)


def waiting(path: Path) -> list[dict[str, Any]]:
    """Make a journal in which one run asks whether a tool may run, and another what one has done; return what waits."""
    with suppress(RunPaused):
        sell(path, "asks")
    for is_lost in (True, False):
        with suppress(KeyboardInterrupt, OutcomeUnknown):
            sell(path, "lost", is_lost=is_lost, confirm=False)
    return paused(path)
