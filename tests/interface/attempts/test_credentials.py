import json
from contextlib import AsyncExitStack

import pytest

from SimpleLLMFunc.errors import AuthenticationError, RateLimited, ServerUnavailable
from SimpleLLMFunc.interface.attempts.credentials import Credentials
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.service_model import _entry_from_file
from SimpleLLMFunc.logger.redact import redact

FAR, NEAR = "https://far.example/v1", "http://localhost:8000/v1"


async def taken(credentials):
    async with AsyncExitStack() as block:
        return await credentials.take(block)


def test_a_key_is_told_without_being_counted(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    pool = APIKeyPool(["sk-pool-key-1"])
    assert Credentials("m", FAR, None, pool).key() == "sk-pool-key-1"
    assert Credentials("m", NEAR, None, None).key() == "sk-environment"


async def test_only_keys_of_the_pool_are_counted():
    pool = APIKeyPool(["sk-pool-key-1"])
    for own, tasks in ((None, 1), ("sk-own-key-1", 0)):
        async with AsyncExitStack() as block:
            await Credentials("m", FAR, own, pool).take(block)
            assert pool.tasks == tasks
        assert pool.tasks == 0


def test_keys_are_masked_from_then_on(monkeypatch):
    Credentials("m", FAR, "strange-key-format-1", None)
    monkeypatch.setenv("OPENAI_API_KEY", "strange-key-format-2")
    Credentials("m", FAR, None, None).key()
    assert redact("strange-key-format-1 strange-key-format-2") == "*** ***"


@pytest.mark.parametrize(
    ("failed", "spared"),
    [
        (AttemptFailed(AuthenticationError("m", status=401)), True),
        (AttemptFailed(RateLimited("m", kind="quota")), True), (AttemptFailed(RateLimited("m"), retry_after=20), True),
        (AttemptFailed(RateLimited("m")), True), (AttemptFailed(ServerUnavailable("m")), False),
    ],
)  # fmt: skip
async def test_a_refused_key_lets_the_others_go_first(failed, spared):
    pool = APIKeyPool(["sk-aaaaaaaa", "sk-bbbbbbbb"])
    credentials = Credentials("m", FAR, None, pool)
    first = await taken(credentials)
    credentials.spare(first, failed)
    keys = [await taken(credentials) for _ in range(4)]
    assert (first not in keys) is spared


def test_sparing_does_nothing_without_a_pool():
    Credentials("m", FAR, "sk-own-key-1", None).spare("sk-own-key-1", AttemptFailed(AuthenticationError("m")))


def test_the_keys_of_a_provider_file_are_found_again(tmp_path):
    path = tmp_path / "provider.json"
    assert _entry_from_file(str(path), "p", "m") is None
    path.write_text("{")
    assert _entry_from_file(str(path), "p", "m") is None
    path.write_text(json.dumps({"p": [{"model_name": "m", "api_keys": ["sk-aaaaaaaa"], "base_url": FAR}]}))
    assert _entry_from_file(str(path), "p", "m").api_keys == ["sk-aaaaaaaa"]
    assert _entry_from_file(str(path), "p", "other") is None
    assert _entry_from_file(str(path), "other", "m") is None


def test_whether_there_is_another_key():
    two, one = APIKeyPool(["sk-aaaaaaaa", "sk-bbbbbbbb"]), APIKeyPool(["sk-aaaaaaaa"])
    assert not Credentials("m", FAR, None, two).is_single
    assert Credentials("m", FAR, None, one).is_single
    assert Credentials("m", FAR, "sk-own-key-1", two).is_single
    assert Credentials("m", NEAR, None, None).is_single
    assert Credentials("m", NEAR, None, None).ready_in() == 0
    two.cool_down("sk-aaaaaaaa", 60)
    assert Credentials("m", FAR, None, two).ready_in() == 0
    two.cool_down("sk-bbbbbbbb", 60)
    assert 59 < Credentials("m", FAR, None, two).ready_in() <= 60
