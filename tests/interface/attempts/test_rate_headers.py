import pytest

from SimpleLLMFunc.interface.attempts.rate_headers import Told, told_limits

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1), ("6m0s", 360), ("17ms", 0.017), ("1h2m3.5s", 3723.5), ("250us", 0.00025), ("1d", 86400), (" 2s ", 2),
        ("12", 12), ("2.5", 2.5), ("0", 0), (str(int(NOW) + 30), 30), (str(int(NOW + 30) * 1000), 30),
        (str(int(NOW) - 30), 0), ("2027-01-15T08:00:10Z", 10), ("2027-01-15T08:00:10", 10),
        ("soon", None), ("", None), ("-3", None), ("nan", None), ("inf", None), ("1x", None), ("s", None), ("1e400", None),
        ("0001-01-01T00:00:00", 0),
    ],
)  # fmt: skip
def test_moments_and_spans(text, seconds):
    (told, _) = told_limits({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": text}, NOW)
    assert told == Told(5, None, seconds if seconds is None else pytest.approx(seconds))


def test_requests_and_tokens():
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "15000",
        "x-ratelimit-reset-tokens": "30s",
    }
    requests, tokens = told_limits(headers, NOW)
    assert requests == Told(499, 500, pytest.approx(0.12))
    assert requests.refill_rate == pytest.approx(500 / 60)
    assert (tokens, tokens.refill_rate) == (Told(15000, 30000, 30), 500)


def test_other_names():
    plain = {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "3", "x-ratelimit-reset": str(int(NOW + 17) * 1000)}
    assert told_limits(plain, NOW) == (Told(3, 20, pytest.approx(17)), None)
    anthropic = {"anthropic-ratelimit-tokens-limit": "10", "anthropic-ratelimit-tokens-remaining": "1"}
    assert told_limits(anthropic, NOW) == (None, Told(1, 10))
    names = {"limit": "80", "remaining": "9", "reset": "2027-01-15T08:00:30Z"}
    split = {f"anthropic-ratelimit-input-tokens-{name}": value for name, value in names.items()}
    assert told_limits(split, NOW) == (None, Told(9, 80, 30))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-limit-requests": "5"},
        {"x-ratelimit-remaining-requests": "many"},
        {"x-ratelimit-remaining-requests": "-1"},
        {"x-ratelimit-remaining-requests": "nan"},
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-limit-requests": "0"},
        {"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-limit-tokens": "-1"},
    ],
)
def test_what_says_nothing(headers):
    assert told_limits(headers, NOW) == (None, None)


def test_what_makes_no_sense_is_left_out():
    (told, _) = told_limits({"x-ratelimit-remaining-requests": "9", "x-ratelimit-limit-requests": "5"}, NOW)
    assert told == Told(9)
    assert told.refill_rate is None
    assert Told(5, 5, 10).refill_rate is None
    assert Told(0, 5, 0).refill_rate is None
