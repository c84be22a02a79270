"""What each family of OpenAI's models takes, told from the name; a newer name counts as the newest one known.

Source: design notes on the wires, sections 1, 10 and 12, from OpenAI's pages of 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.interface.wires.asking import no_such_thinking

_SAMPLING = ("temperature", "top_p", "top_logprobs", "logprobs")
WORDS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class OpenAIFamily:
    """What a model takes.

    Attributes:
        thinks: it reasons before it answers; None for a model that is not OpenAI's, of which nothing is known.
        off: the effort that switches reasoning off; None where it cannot be.
    """

    thinks: bool | None = None
    off: str | None = "none"


_GPT = re.compile(r"(?:^|[/:])gpt-(\d+)(?:\.(\d+))?(?:-(\w+))?")
_O = re.compile(r"(?:^|[/:])o[134](?:-|$)")


def openai_family(model_name: str) -> OpenAIFamily:
    """Return what the model of this name takes."""
    name = model_name.lower()
    if _O.search(name):
        return OpenAIFamily(thinks=True, off=None)
    found = _GPT.search(name)
    if found is None:
        return OpenAIFamily()
    version, kind = (int(found[1]), int(found[2] or 0)), found[3] or ""
    if found[1].startswith("35") or version < (5, 0) or kind == "chat":
        return OpenAIFamily(thinks=False)
    if version < (5, 1):
        return OpenAIFamily(thinks=True, off="minimal")
    if (version >= (6, 0) and kind == "astra") or version == (6, 1) or kind in {"pro", "codex"}:
        return OpenAIFamily(thinks=True, off=None)
    return OpenAIFamily(thinks=True)


def effort_of(thinking: object, model_name: str) -> str:
    """Return the effort that `thinking` means.

    Raises:
        ConfigError: the model has no such word; the error names those it has.
    """
    family = openai_family(model_name)
    if thinking == "off" and family.thinks is False:
        return ""
    if family.thinks is not False:
        if thinking in WORDS:
            return str(thinking)
        if thinking == "off" and family.off:
            return family.off
    words = () if family.thinks is False else WORDS
    raise no_such_thinking(model_name, thinking, words=words, off=family.off is not None)


def leave_out_sampling(params: dict[str, Any], model_name: str, effort: object) -> list[tuple[str, str]]:
    """Take out the sampling parameters that the model refuses, and return what is told of them.

    Args:
        params: of the request; changed.
        model_name: one that reasons takes none.
        effort: of its reasoning; "none" leaves that, and any parameter is taken.
    """
    if effort == "none" or not openai_family(model_name).thinks:
        return []
    given = [name for name in _SAMPLING if params.pop(name, None) is not None]
    return [(f"sampling: {name} is left out", "a model that reasons takes none") for name in given]
