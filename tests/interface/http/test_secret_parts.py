"""What may hold a secret beside the key is shown without it."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.interface.http.secret_parts import Address, Headers, Hidden
from SimpleLLMFunc.logger.redact import redact

KEY = "q7Zr2LmVx9TbK4nWc8YpD1sGh6JfAe3uRo5iBtQv"


def test_headers_show_their_names_alone_and_their_secrets_are_known_from_then_on():
    secrets = {"X-Gateway-Key": KEY, "Helicone-Auth": "Bearer secret-of-mine"}
    given = {**secrets, "X-Title": "my app", "OpenAI-Project": KEY[::-1]}
    headers = Headers(given)
    assert headers.secrets == list(secrets)
    assert dict(headers)["X-Gateway-Key"] == KEY
    assert repr(headers) == repr(dict.fromkeys(given, "***"))
    assert redact(f"{KEY} secret-of-mine my app") == "*** *** my app"


@pytest.mark.parametrize(
    ("address", "shown", "secrets"),
    [
        *(
            (plain, plain, [])
            for plain in (
                "https://h/v1", "https://h/v1?api-version=2024-10-21", "https://h/v1?key=short", "https://h/v1?a&b=",
                "https://h/v1?deployment=gpt-4o-mini-2024-07-18&v=1",
            )
        ),
        ("https://h/v1?key=abcdefgh&v=1", "https://h/v1?key=***&v=1", ["key"]),
        (f"https://h/v1?x={KEY}", "https://h/v1?x=***", ["x"]),
        ("https://h/v1?id=0b5c2f6e-9d5b-4c1f-8f55-0a2a5a4c9a11", "https://h/v1?id=***", ["id"]),
        ("https://h/v1?subscription%2Dkey=abc%2Fdefgh", "https://h/v1?subscription%2Dkey=***", ["subscription-key"]),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_the_secrets_of_its_query(address, shown, secrets):
    made = Address(address)
    assert (made.shown, made.secrets, repr(made)) == (shown, secrets, repr(shown))
    assert made == address
    assert redact(f"asked {made}") == redact(f"asked {shown}")


def test_the_query_of_an_address_has_each_value():
    assert Address("https://h/v1?a&b=1&b=2&c=3").query == {"a": "", "b": ["1", "2"], "c": "3"}


def test_a_hidden_dict_shows_nothing():
    hidden = Hidden({KEY: KEY})
    assert (repr(hidden), repr(Hidden()), hidden[KEY]) == ("{***}", "{}", KEY)
