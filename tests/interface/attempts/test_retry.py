import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.errors import ServerUnavailable
from SimpleLLMFunc.interface.attempts.retry import LONGEST_BACKOFF, backoff, decide
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.wires.wire import retry_after_seconds

ERROR = ServerUnavailable("m", status=503)


def decided(failed, **changes):
    arguments = {"attempt": 1, "max_retries": 2, "left": None, "rng": lambda: 0.5, **changes}
    return decide(failed, **arguments)


def test_tries_end_after_the_further_ones_allowed():
    failed = AttemptFailed(ERROR)
    assert [decided(failed, attempt=attempt) is not None for attempt in (1, 2, 3)] == [True, True, False]
    assert decided(failed, max_retries=0) is None


def test_what_no_try_cures_is_not_tried_again():
    assert decided(AttemptFailed(ERROR, again="never"), max_retries=9) is None
    assert decided(AttemptFailed(ERROR, again="never", retry_after=0.1), max_retries=9) is None


def test_what_is_worth_one_try_gets_one():
    failed = AttemptFailed(ERROR, again="once")
    assert decided(failed, earlier=0) is not None
    assert decided(failed, earlier=1) is None


@given(seconds=st.floats(0, 500), chance=st.floats(0, 1, exclude_max=True))
def test_the_service_decides_how_long_to_wait(seconds, chance):
    pause = decided(AttemptFailed(ERROR, retry_after=seconds), rng=lambda: chance)
    assert seconds <= pause <= seconds * 1.25


def test_a_wait_beyond_the_deadline_ends_the_call_at_once():
    failed = AttemptFailed(ERROR, retry_after=10)
    assert decided(failed, left=5) is None
    assert decided(failed, left=10) is None
    assert decided(failed, left=10.5) <= 10.5


def test_without_a_deadline_a_wait_of_hours_ends_the_call_too():
    assert decided(AttemptFailed(ERROR, retry_after=86_400)) is None
    assert decided(AttemptFailed(ERROR, retry_after=86_400), longest_wait=90_000) is not None


def test_our_own_pause_does_not_outlive_the_deadline():
    assert decided(AttemptFailed(ERROR), left=1, retry_delay=1) is decided(AttemptFailed(ERROR), left=0.001) is None
    assert decided(AttemptFailed(ERROR), left=60) is not None


@given(attempt=st.integers(1, 31), first=st.floats(0, 100), chance=st.floats(0, 1, exclude_max=True))
def test_pauses_double_and_have_a_limit(attempt, first, chance):
    pause = backoff(attempt, first, lambda: chance)
    assert 0 <= pause <= LONGEST_BACKOFF
    if first * 2 ** (attempt + 1) < LONGEST_BACKOFF:
        assert first * 2 ** (attempt - 1) * 0.5 <= pause <= first * 2 ** (attempt - 1) * 1.5


def test_pauses_are_jittered():
    chances = iter([0.0, 0.5, 0.9])
    pauses = {backoff(1, 1.0, lambda: next(chances)) for _ in range(3)}
    assert len(pauses) == 3


NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None), *(({"retry-after": said}, float(said)) for said in ("7", "0", "1.5")),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25), ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        *(({"retry-after": said}, None) for said in ("", "-3", "nan", "inf", "1e400", "soon", "Fri, 99 Foo 2026")),
        *(({"retry-after": format_datetime(NOW + timedelta(seconds=n), usegmt=True)}, float(n)) for n in (1, 9)),
        *(({"retry-after": f"Sat, 21 Nov 2026 {said}"}, 30.0) for said in ("12:00:30 -0000", "14:00:30 +0200")),
        ({"retry-after": format_datetime(NOW - timedelta(hours=1), usegmt=True)}, None),
    ],
)  # fmt: skip
def test_retry_after_in_all_its_forms(headers, expected):
    assert retry_after_seconds(headers, NOW.timestamp()) == expected


def test_a_failure_shows_its_error():
    assert str(AttemptFailed(ERROR)) == str(ERROR)
    assert pickle.loads(pickle.dumps(ERROR)).status == 503
