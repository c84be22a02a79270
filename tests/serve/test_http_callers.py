import hashlib
import json

import pytest

from SimpleLLMFunc.errors import BudgetExceeded, ConfigError
from SimpleLLMFunc.interface.spending.budget import charge_question
from SimpleLLMFunc.serve.http_callers import KEYS_VARIABLE, Caller, CallerEntry, Callers, hash_of, new_key
from SimpleLLMFunc.serve.http_responses import Problem
from SimpleLLMFunc.type.usage import Usage


def entry(name="alice", key="a key", **limits):
    return CallerEntry(name=name, sha256=hash_of(key), **limits)


def test_keys_are_long_and_kept_as_hashes():
    keys = {new_key() for _ in range(50)}
    assert len(keys) == 50
    assert min(map(len, keys)) > 40
    assert hash_of("abc") == hashlib.sha256(b"abc").hexdigest()
    callers = Callers([entry(key="the-key-itself-is-secret")])
    assert "the-key-itself" not in repr(vars(callers)) + repr(callers._callers[0].entry)


def test_whose_key_it_is():
    callers = Callers([entry("alice", "one"), entry("bob", "two")])
    assert callers.find("two").name == "bob"
    assert callers.find("three") is None
    assert callers.find("") is None
    assert callers.find("\udcff") is None


def test_from_a_file_and_from_the_environment(tmp_path):
    path = tmp_path / "callers.json"
    with pytest.raises(ConfigError, match="cannot be read"):
        Callers.load(path)
    alice = {"name": "alice", "sha256": hash_of("k"), "requests_per_minute": 60, "usd_per_day": 1}
    path.write_text(json.dumps([alice]))
    found = Callers.load(path)
    assert found.find("k").entry.requests_per_minute == 60
    pairs = f"alice:{hash_of('k')}, bob:{hash_of('l')}"
    assert Callers.load(environment={KEYS_VARIABLE: pairs}).find("l").name == "bob"
    assert Callers.load(environment={KEYS_VARIABLE: path.read_text()}).find("k").name == "alice"
    assert len(Callers.load(environment={})) == 0
    assert len(Callers.load(path, environment={KEYS_VARIABLE: pairs})) == 1


@pytest.mark.parametrize(
    "content",
    [
        "", "{}", "[3]", '[{"name": "a"}]', '[{"name": "a", "sha256": "slf_a-key-instead-of-its-hash"}]', "{",
        json.dumps([{"name": "a b\n", "sha256": "0" * 64}]), json.dumps([{"name": "a", "sha256": "0" * 64, "usd": 3}]),
        json.dumps([{"name": "a", "sha256": "0" * 64, "requests_per_minute": 0}]),
        json.dumps([{"name": "a", "sha256": "0" * 64}, {"name": "a", "sha256": "1" * 64}]),
        json.dumps([{"name": "a", "sha256": "0" * 64}, {"name": "b", "sha256": "0" * 64}]),
    ],
)  # fmt: skip
def test_files_that_hold_none(tmp_path, content):
    path = tmp_path / "callers.json"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        Callers.load(path)
    assert "a-key-instead" not in str(caught.value)


async def test_calls_in_a_minute():
    caller = Caller(entry(requests_per_minute=2))
    await caller.take()
    await caller.take()
    with pytest.raises(Problem, match="2 times a minute") as caught:
        await caller.take()
    assert caught.value.status == 429
    assert 1 <= int(caught.value.headers["retry-after"]) <= 30
    free = Caller(entry())
    for _ in range(100):
        await free.take()


def ask(tokens):
    with charge_question(0, 0.0) as charge:
        charge.settle(Usage(input_tokens=tokens))


def test_a_budget_of_a_day(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("SimpleLLMFunc.serve.http_callers.time.time", lambda: now[0])
    caller = Caller(entry(tokens_per_day=100))
    caller.context().run(ask, 60)
    caller.context().run(ask, 60)  # what it takes is known afterwards
    with pytest.raises(BudgetExceeded, match="120 spent"):
        caller.context().run(ask, 1)
    ask(1000)  # code outside of a call is not limited
    now[0] = 86_400.0
    caller.context().run(ask, 60)
    caller.context().run(ask, 39)
    caller.close()
    ask(1000)
