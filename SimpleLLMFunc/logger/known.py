"""Known secrets, masked in every spelling.

A service, a proxy or a traceback seldom repeats a key unchanged: it may be in a URL, in nested JSON, in a web page, in
another case, in base64. A secret is therefore a pattern with the spellings of each of its characters.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby

from SimpleLLMFunc.errors import mask_messages_with
from SimpleLLMFunc.runtime import ForkSafeLock

MASK = "***"
"""Replaces a secret."""

SHORTEST_SECRET = 8
"""Shorter values are words; masking them would hide half the log."""

_NO_SECRETS = frozenset({
    "dummy-key", "fake-key", "lm-studio", "no-api-key", "no-key-required", "not-a-key", "not-needed", "not-required", "not-used",
    "placeholder", "sk-no-key-required", "unused-key", "your-api-key", "your_api_key",
})  # fmt: skip
"""What users write as the key of a server that asks for none; masking these words would change answers."""

_SHORTEST_HINT = 4
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_ESCAPE = r"\\{0,31}"
"""Backslashes before an escaped character: up to five levels of nested JSON."""

_SHORT = {"\n": "n", "\r": "r", "\t": "t", "\a": "a", "\b": "b", "\f": "f", "\v": "v", "\0": "0"}
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


class _Secret:
    """One secret, and the search for it in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        # A part of every spelling; finding it is a hundred times faster than the pattern.
        hint = max(_PLAIN.findall(text), key=len, default="").lower()
        self.hint = hint if len(hint) >= _SHORTEST_HINT else ""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("".join(_spelled(self.text)), re.IGNORECASE)

    @cached_property
    def encoded(self) -> tuple[str, ...]:
        """The forms of the secret inside base64."""
        return tuple(sorted(set(_in_base64(self.text)), key=len, reverse=True))

    def mask(self, text: str, lowered: str) -> str:
        """Return `text` without the secret; `lowered` is the original text in lower case."""
        if self.hint in lowered:
            text = self._pattern.sub(MASK, text)
        for each in self.encoded:
            if each in text:
                text = text.replace(each, MASK)
        return text

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each occurrence."""
        if self.hint in text.lower():
            yield from (match.span() for match in self._pattern.finditer(text))
        for each in self.encoded:
            yield from (match.span() for match in re.finditer(re.escape(each), text))


def _spelled(text: str) -> Iterator[str]:
    """Yield a pattern for each character of `text`, a run of backslashes being one.

    Nothing in them is unbounded, and no two neighbours can share a character: a search takes linear time.
    """
    is_behind_run = False
    for is_run, characters in groupby(text, key="\\".__eq__):
        if is_run:
            count = len(list(characters))
            yield rf"(?:\\{{{count},{32 * count + 31}}}|(?:%5C|%255C|&#92;|&#x5C;|\\{{1,32}}(?:u00|x)5C){{{count}}})"
        else:
            first, *others = characters
            yield _spelled_character(first, "" if is_behind_run else _ESCAPE)
            yield from (_spelled_character(each, _ESCAPE) for each in others)
        is_behind_run = is_run


def _spelled_character(character: str, escape: str) -> str:
    if character.isascii() and (character.isalnum() or character == "_"):
        return character
    code = ord(character)
    percents = [f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass")]
    units = character.encode("utf-16-be", "surrogatepass")
    spellings = [
        escape + re.escape(character),
        "".join(percents),
        "".join(percents).replace("%", "%25"),
        "".join(rf"\\{{1,32}}u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)),
        "".join(rf"\\{{1,32}}x{percent[1:]}" for percent in percents),
        rf"\\{{1,32}}U{code:08x}",
        rf"&#0{{0,4}}{code};",
        rf"&#x0{{0,4}}{code:x};",
    ]
    if character in _ENTITIES:
        spellings.append(f"&{_ENTITIES[character]};")
    if code < 256:
        spellings.append(rf"\\{{1,32}}x{code:02x}")
    if character in _SHORT:
        spellings.append(rf"\\{{1,32}}{_SHORT[character]}")
    if character == " ":
        spellings.append(r"\+")
    return f"(?:{'|'.join(spellings)})"


def _in_base64(text: str) -> Iterator[str]:
    """Yield the base64 forms of `text` for each offset in the encoded data, without the edges that depend on neighbours."""
    raw = text.encode("utf-8", "surrogatepass")
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        core = encoded[(0, 2, 3)[before] : len(encoded) - ((before + len(raw)) % 3 > 0)]
        yield core
        yield core.replace("+", "-").replace("/", "_")


_known: tuple[_Secret, ...] = ()
_remembering = ForkSafeLock()


def remember_secret(value: str) -> None:
    """Mask `value` in every text from now on; values shorter than 8 characters and placeholders are ignored."""
    global _known  # noqa: PLW0603 - one set of secrets per process: a log line does not know whose key it may hold
    value = value.strip()
    if len(value) < SHORTEST_SECRET or value.lower() in _NO_SECRETS or any(value == secret.text for secret in _known):
        return
    with _remembering:
        # Longest first: a secret that contains another must not lose its middle and keep its ends.
        _known = tuple(sorted((*_known, _Secret(value)), key=lambda secret: len(secret.text), reverse=True))


def mask_known(text: str) -> str:
    """Return `text` with the secrets of `remember_secret` masked."""
    lowered = text.lower() if _known else ""
    for secret in _known:
        text = secret.mask(text, lowered)
    return text


def end_before_secret(text: str, end: int) -> int:
    """Return where to cut `text`: at `end`, or at the start of a known secret that `end` would divide."""
    window = text[: end + 2000]
    for secret in _known:
        end = min((start for start, stop in secret.places(window) if start < end < stop), default=end)
    return end


def end_before_growing_secret(text: str) -> int:
    """Return where to cut a text that still grows: at its end, or where a known secret may have begun.

    Backslashes are skipped, so that a secret inside JSON is found too.
    """
    end = len(text)
    for secret in _known:
        wanted = secret.text.replace("\\", "").lower()
        window = [at for at in range(max(len(text) - 2 * len(secret.text), 0), len(text)) if text[at] != "\\"]
        tail = "".join(text[at] for at in window).lower()
        for size in range(min(len(wanted) - 1, len(tail)), 0, -1):
            if tail.endswith(wanted[:size]):
                end = min(end, window[len(window) - size])
                break
    return end


# Our errors mask their own texts.
mask_messages_with(mask_known, end_before_secret)
