"""Looking whether a rule may apply misses nothing that the rule would mask, and takes no more time than the text does."""

from __future__ import annotations

import time
import timeit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from SimpleLLMFunc.logger import looks
from SimpleLLMFunc.logger.known import MASK
from SimpleLLMFunc.logger.looks import is_secret_name, mask_looks

RULES = (((), looks._FIELD, looks._masked_field), ((), looks._WORD, looks._masked_field), *looks._RULES)
# fmt: off
PIECES = (
    *looks._PREFIXES, "api_key", "apikey", "API-KEYS", "secret", "client_secret", "secret_access_key", "privateKey", "access",
    "token", "SessionToken", "bearer", "Bearer ", "password", "passwd", "passphrase", "pwd", "Authorization", "cookie", "sig",
    "PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----", "https://", "user:pw@", "?", "&", "%3F", "%26", "%3D", ";", "=", ":",
    "=>", " = ", "\\", "\\\\", '"', "'", '\\"', "b'", "('", '("', "(b'", "(u'", ", ", ",", "(", ")", "[", "]", "\n", " ", "\x1c",
    "ſ", "K", "İ", "é", "中", "x9", "none", "***", "abcdefgh", "ABCDEFGH12345678abcd", "eyJabcdefgh.", "eyJ", "x-api-key",
    "%20", "+", "-", "_", "/", "@",
)
# fmt: on


def always_all(text):
    for _, pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return text


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=14).map("".join))
@example("('x-api-key', 'AKIA0000000000000000')")
@example("secret_access_key => 'x y'")
@example("https://h/?a=1%26token%3Dabc")
def test_a_rule_that_is_not_run_would_have_changed_nothing(text):
    assert mask_looks(text) == always_all(text)


@pytest.mark.parametrize("prefix", looks._PREFIXES)
def test_every_prefix_is_looked_for(prefix):
    key = f"{prefix}Ab1{'x' * 20}"
    assert mask_looks(f"it is {key}.") == f"it is {prefix}{MASK}."


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "API-KEY", "apikeys", "secret_key", "secretKey", "private_key", "secret_access_key", "access_token",
        "bearerToken", "id-token", "client_secret", "password", "passwd", "Passphrase", "pwd", "OPENAI_API_KEY",
    ],
)  # fmt: skip
@pytest.mark.parametrize("assigned", ["=", ": ", '": ', "\\\\' => ", " \n = "])
def test_every_name_is_looked_for(name, assigned):
    assert "hidden" not in mask_looks(f"{name}{assigned}hidden77")
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "piece",
    ["key", "api_key", "token\\", "secret ", "pass", "password" + " " * 8, "-", "sk-", "_", "A", "AKI", "(", "('", "=?", "eyJ-"],
)  # fmt: skip
def test_looking_takes_time_in_proportion_to_the_text(piece):
    def seconds(times):
        text = f"{piece * times}:="
        return min(timeit.repeat(lambda: mask_looks(text), number=1, repeat=3, timer=time.process_time)) + 1e-4

    assert seconds(16_000) < 40 * seconds(2_000)
