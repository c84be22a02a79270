"""Texts inside messages: cut, counted, spelled nearly right, and without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

BODY_LIMIT = 500
"""Characters of a service's reply that an error keeps."""


def cut(text: str, limit: int = BODY_LIMIT) -> str:
    """Return `text` shortened to at most `limit` characters; if it was cut, the last one is an ellipsis.

    It never cuts inside a secret: half of a secret would not be recognised when the rest is masked.
    """
    return text if len(text) <= limit else text[: _end(text, limit - 1)] + "…"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 run``, ``2 runs``."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the nearest of the known names; empty if no name is near."""
    from difflib import get_close_matches  # only a misspelled name needs it

    close = get_close_matches(name, list(known))
    close.sort(key=lambda each: sorted(each) != sorted(name))  # two letters that changed places come first
    return f" Did you mean {close[0]!r}?" if close else ""


def refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which are no JSON: the `parse_constant` of a decoder.

    Raises:
        ValueError: always; the name is one of them.
    """
    raise ValueError(f"{name} is no JSON number")


def masked(text: str) -> str:
    """Return `text` with all known secrets masked."""
    return _mask(text)


def mask_messages_with(mask: Callable[[str], str], end: Callable[[str, int], int]) -> None:
    """Set how error messages are masked; `logger`, which knows the secrets, calls this when it is imported.

    Args:
        mask: returns a text with its secrets masked.
        end: returns the last place, at or before the given one, where a text can be cut without cutting a secret.
    """
    global _mask, _end
    _mask, _end = mask, end


_mask: Callable[[str], str] = str
_end: Callable[[str, int], int] = lambda _, end: end  # noqa: E731 - no secret is known yet
