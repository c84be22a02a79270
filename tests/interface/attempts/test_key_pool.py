"""Several keys of one provider."""

import copy
import pickle

import pytest

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
from SimpleLLMFunc.logger.redact import redact
from tests.support.clock import Clock
from tests.support.processes import forks, in_child

CANARY = "sk-CANARY0123456789abcdefXYZ"


# --- choosing ------------------------------------------------------------------------------------------------


def test_the_least_loaded_key_is_given():
    pool = APIKeyPool(["a", "b", "c"])
    for key in "aabcc":
        pool.increment_task_count(key)
    assert pool.get_least_loaded_key() == "b"


def test_among_equals_they_take_turns():
    pool = APIKeyPool(["a", "b", "c"])
    keys = [pool.get_least_loaded_key() for _ in range(6)]
    assert keys == ["a", "b", "c", "a", "b", "c"]
    for key in keys:
        pool.increment_task_count(key)
    assert [pool.task_count(key) for key in "abc"] == [2, 2, 2]
    assert pool.tasks == 6


def test_a_key_given_twice_counts_once():
    pool = APIKeyPool(["a", "b", " a ", "a\n"])
    assert len(pool) == 2
    assert [pool.get_least_loaded_key() for _ in range(3)] == ["a", "b", "a"]


def test_counts_never_fall_below_zero():
    pool = APIKeyPool(["a", "b"])
    pool.decrement_task_count("a")
    assert pool.task_count("a") == 0
    for count in (pool.increment_task_count, pool.increment_task_count, pool.decrement_task_count):
        count("a")
    assert pool.get_least_loaded_key() == "b"


# --- leasing -------------------------------------------------------------------------------------------------


def test_a_lease_counts_for_as_long_as_it_lasts():
    pool = APIKeyPool(["a", "b"])
    with pool.lease() as first, pool.lease() as second:
        assert {first, second} == {"a", "b"}
        assert pool.tasks == 2
    assert pool.tasks == 0


# --- cooling down --------------------------------------------------------------------------------------------


def test_a_key_that_cools_down_is_given_last_and_the_pool_says_when_one_is_ready():
    clock = Clock()
    pool = APIKeyPool(["a", "b"], clock=clock)
    pool.cool_down("a", 30)
    assert [pool.get_least_loaded_key() for _ in range(3)] == ["b", "b", "b"]
    assert pool.ready_in() == 0
    pool.cool_down("b", 10)
    assert (pool.get_least_loaded_key(), pool.ready_in()) == ("b", 10), "the one that is ready first"
    clock.now += 11
    assert pool.ready_in() == 0
    assert pickle.loads(pickle.dumps(pool)).ready_in() == 0
    pool.cool_down("a", 0)
    assert pool.get_least_loaded_key() == "a", "a cool-down can be ended"


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [[], (), iter([]), "sk-one-string", b"bytes", None, 3])
def test_no_list_of_keys(keys):
    with pytest.raises(ValueError, match=r"Give at least one|give a list") as caught:
        APIKeyPool(keys, "openai")
    assert isinstance(caught.value, UsageError)
    assert "'openai'" in str(caught.value)


@pytest.mark.parametrize("key", ["", "  ", None, 3, b"bytes", f"{CANARY}\nX: y", f"{CANARY} two", f"{CANARY}é"])
def test_something_that_is_no_key(key):
    with pytest.raises(ValueError, match="key 2") as caught:
        APIKeyPool(["a", key])
    assert isinstance(caught.value, ConfigError)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("use", ["increment_task_count", "decrement_task_count", "task_count", "cool_down"])
def test_a_key_that_is_not_in_the_pool(use):
    with pytest.raises(ValueError, match="not in the pool of 'openai'") as caught:
        getattr(APIKeyPool(["a"], "openai"), use)(CANARY, *([1] if use == "cool_down" else []))
    assert isinstance(caught.value, ConfigError)
    assert "CANARY" not in str(caught.value)


# --- keys stay inside ----------------------------------------------------------------------------------------


def test_a_key_is_in_no_repr_and_no_pickle():
    pool = APIKeyPool([CANARY, CANARY + "2"], "openai")
    shown = repr(pool) + str(pool) + f"{pool}"
    assert "CANARY" not in shown
    assert shown.startswith("APIKeyPool(provider_id='openai', 2 keys, 0 calls in flight)")
    assert b"CANARY" not in pickle.dumps(pool)
    with pytest.raises(TypeError):
        vars(pool)


def test_the_log_knows_its_keys():
    APIKeyPool(["not-even-like-a-key"])
    assert redact("it is not-even-like-a-key") == "it is ***"


@pytest.mark.parametrize(
    "use",
    [
        lambda pool: pool.get_least_loaded_key(),
        lambda pool: pool.lease().__enter__(),
        lambda pool: pool.increment_task_count("a"),
    ],
)
def test_after_a_pickle_the_pool_says_that_its_keys_are_gone(use):
    pool = pickle.loads(pickle.dumps(APIKeyPool(["a"], "openai")))
    assert pool.provider_id == "openai"
    with pytest.raises(ConfigError, match="never in a pickle"):
        use(pool)


def test_a_copy_is_the_same_pool():
    pool = APIKeyPool(["a"])
    assert copy.copy(pool) is pool
    assert copy.deepcopy({"pool": pool})["pool"] is pool


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_does_not_count_its_parents_calls():
    pool = APIKeyPool(["a", "b"])
    with pool.lease():
        assert in_child(lambda: pool.tasks) == "0"
        assert pool.tasks == 1
