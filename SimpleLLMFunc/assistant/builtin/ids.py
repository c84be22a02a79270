"""AI-IDs, and the frequency number that belongs to each.

An AI-ID reads ``AI-7ZK3Q-M9T2V-4HBNC-R8WEX``: twenty characters of Crockford's alphabet, nineteen of them random (95
bits, from the system, so that neither threads nor processes nor forks meet) and the last one a check character, so that
an id which a model copied wrongly is told from one that was never given out. A frequency number reads
``FN-4821-0937-5566-1203``; it is a checksum of the id, the same for ever.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

from SimpleLLMFunc.assistant.words import WORDS, Language, localized
from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.tools import ModelRetry, Tool

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_CHARACTERS = 19
_GROUP = 5
_AI_ID: Final = re.compile(rf"AI(?:-[{ALPHABET}]{{5}}){{4}}")
_DIGITS = 16


def new_ai_id() -> str:
    """Return a new, unique AI-ID."""
    bits = secrets.randbits(5 * _RANDOM_CHARACTERS)
    body = "".join(ALPHABET[bits >> 5 * number & 31] for number in range(_RANDOM_CHARACTERS))
    body += _check_character(body)
    return "AI-" + "-".join(body[at : at + _GROUP] for at in range(0, len(body), _GROUP))


def check_ai_id(text: str) -> str:
    """Return an AI-ID in capital letters.

    Raises:
        ValueError: it is no AI-ID, or was copied wrongly.
    """
    plain = text.strip().upper()
    if not _AI_ID.fullmatch(plain):
        raise ValueError(f"{cut(text, 60)!r} is no AI-ID; one reads AI-7ZK3Q-M9T2V-4HBNC-R8WE0, with other characters")
    bare = plain.removeprefix("AI-").replace("-", "")
    if _check_character(bare[:-1]) != bare[-1]:
        raise ValueError(f"{cut(text, 60)!r} is an AI-ID copied wrongly: its last character does not fit the others")
    return plain


def frequency_number(ai_id: str) -> str:
    """Return the frequency number of an AI-ID: the same one for ever, another one for another id.

    Raises:
        ValueError: it is no AI-ID.
    """
    digest = hashlib.sha256(b"SimpleLLMFunc frequency number 1\0" + check_ai_id(ai_id).encode()).digest()
    number = f"{int.from_bytes(digest[:16]) % 10**_DIGITS:0{_DIGITS}d}"
    return "FN-" + "-".join(number[at : at + 4] for at in range(0, _DIGITS, 4))


def _check_character(body: str) -> str:
    """Return the check character: one wrong character changes it, and so do two neighbours swapped (but for 0 and Z).

    Source: the Luhn algorithm modulo N, with N = 32.
    """
    size = len(ALPHABET)
    total = 0
    for number, character in enumerate(reversed(body)):
        value = ALPHABET.index(character) * (1 + (number + 1) % 2)
        total += value // size + value % size
    return ALPHABET[-total % size]


# --- as tools ------------------------------------------------------------------------------------------------


def id_tools(language: Language = "zh") -> list[Tool]:
    """Return the tools `generate_ai_id` and `generate_frequency_number`."""

    def generate_ai_id() -> str:
        """Generate a unique AI-ID."""
        return new_ai_id()

    def generate_frequency_number(ai_id: str) -> str:
        """Generate the frequency number of an AI-ID; the same AI-ID always gets the same number.

        Args:
            ai_id: The AI-ID, exactly as `generate_ai_id` returned it.
        """
        try:
            return frequency_number(ai_id)
        except ValueError as error:
            raise ModelRetry(WORDS["ids"][language]["wrong"].format(problem=error, text=cut(ai_id, 60))) from None

    return [localized(generate_ai_id, language), localized(generate_frequency_number, language)]
