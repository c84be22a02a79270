"""A known secret is masked in every spelling, in time linear in the text."""

from __future__ import annotations

import base64
import html
import json
import pickle
import time
import timeit
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.errors import BadReply, ConfigError, ResponseParseError
from SimpleLLMFunc.logger import known, remember_secret
from SimpleLLMFunc.logger.redact import MASK, redact, redact_head

pytestmark = pytest.mark.usefixtures("no_secrets")

KEYS = [
    "sk-CANARY-0123456789abcdefXYZ",
    "q7Zr2LmVx9TbK4nWc8YpD1sGh6JfAe3uRo5iBtQv",
    "Ab1+/=&?%\"\\'<>#;@:$!*()~^|{}[],.`9z",
    "\\\\\"\\''\"\\key/\\\\",
]


def go_json(text):
    """As Go's encoder writes it."""
    return json.dumps(text).replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def spellings(key):
    raw = key.encode()
    yield from (key, key.upper(), key.lower(), key.swapcase())
    yield from (repr(key), repr(raw), repr(repr(key)))
    yield from (json.dumps(key), json.dumps(json.dumps(key)), json.dumps(json.dumps(json.dumps(key))))
    yield json.dumps(key).replace("/", r"\/")
    yield go_json(key)
    yield "".join(f"\\u{ord(character):04X}" if not character.isalnum() else character for character in key)
    yield from (quote(key, safe=""), quote(key), quote_plus(key))
    yield quote(quote(key, safe=""), safe="")
    yield quote(key, safe="").replace("%2F", "%2f").replace("%3D", "%3d")
    yield from (html.escape(key), html.escape(key, quote=False))
    yield "".join(f"&#{ord(character)};" if not character.isalnum() else character for character in key)
    yield "".join(f"&#x{ord(character):02X};" if not character.isalnum() else character for character in key)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_masked_in_every_spelling(key):
    remember_secret(key)
    for text in spellings(key):
        masked = redact(f"before {text} after")
        assert masked.startswith("before ")
        assert masked.endswith(" after")
        rest = masked.removeprefix("before ").removesuffix(" after")
        assert MASK in rest
        assert set(rest.replace(MASK, "")) <= set("b\"'\\"), (text, masked)  # the quotes around it


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_masked_in_base64_wherever_it_stands_in_it(key):
    remember_secret(key)
    for before in ("", "a", "ab", "user:"):
        for after in ("", "x", "xy"):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                text = encode(f"{before}{key}{after}".encode()).decode()
                masked = redact(f"Basic header {text}")
                decoded = masked.rpartition(" ")[2].replace(MASK, "")
                assert len(decoded) <= len(before) * 2 + len(after) * 2 + 6, masked


def test_what_is_looked_for_follows_the_secrets_that_are_known():
    remember_secret("LM-Studio")  # a placeholder
    assert redact("lm-studio LM-Studio") == "lm-studio LM-Studio"
    assert redact(f"{KEYS[1]} {KEYS[3]}") == f"{KEYS[1]} {KEYS[3]}"
    remember_secret(KEYS[1])
    assert redact(f"{KEYS[1]} {KEYS[3]}") == f"{MASK} {KEYS[3]}"
    remember_secret(KEYS[3])
    assert redact(f"{KEYS[1]} {KEYS[3]}") == f"{MASK} {MASK}"
    known._known = ()
    assert redact(KEYS[1]) == KEYS[1]


def test_no_error_holds_a_secret_in_its_text():
    remember_secret(KEYS[1])
    shown = quote(KEYS[1].lower())
    for error in (
        ConfigError(f"what is {shown}?"),
        BadReply("m", problem=f"it says {shown}"),
        ResponseParseError(f"I am {KEYS[1]}", int, [("", "int", repr(KEYS[1]))]),
    ):
        for text in (str(error), repr(error), repr(pickle.loads(pickle.dumps(error)))):
            assert MASK in text
            assert KEYS[1].lower() not in text.lower()


@settings(max_examples=50)
@given(st.sampled_from(KEYS), st.integers(0, 60), st.text(max_size=30), st.text(max_size=30))
def test_a_head_never_ends_in_half_a_key(key, limit, before, after):
    known._known = ()
    remember_secret(key)
    text = redact_head(before + key + after, limit)
    end = text.removesuffix("…").removesuffix(MASK).removesuffix(before)
    assert not (len(end) > 3 and key.startswith(end[-4:]) and end[-4:] not in before), (text, end)
    assert key not in text


@pytest.mark.heavy
@pytest.mark.parametrize(
    "key", [*KEYS, "\\" * 20, '"' * 20, '\\"' * 10, "%" * 12, "&#92;" * 4, "\n" * 10 + "x" + "\t" * 9]
)
@pytest.mark.parametrize(
    "piece",
    ["\\", '\\"', '\\\\\\"', "%25", "%", "&#92;", "\\u0022", "Ab1+/", "q7Zr2LmVx9TbK4nWc8YpD1sGh6JfAe3uRo5iBtQ", "\\n"],
)
def test_looking_takes_time_in_proportion_to_the_text(key, piece):
    remember_secret(key if key.strip() else f"x{key}x")

    def seconds(times):
        text = piece * times
        return min(timeit.repeat(lambda: redact(text), number=1, repeat=3, timer=time.process_time)) + 1e-4

    assert seconds(8000) < 40 * seconds(1000)
