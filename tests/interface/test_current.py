"""Which model is asked when nobody said."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from SimpleLLMFunc.config import missing_model_message
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface import current
from SimpleLLMFunc.interface.current import resolve_llm, standing_in, use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.local.local_model import LocalModel
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.runtime.sync import run_sync

CANARY = "sk-CANARY0123456789abcdefXYZ"


class Named(LLM_Interface):
    """A model that is never asked."""

    def __init__(self, name):
        self.model_name = name

    async def chat(self, messages, **params):
        raise NotImplementedError

    async def chat_stream(self, messages, **params):
        raise NotImplementedError
        yield

    def __len__(self):
        return 0  # an odd model, which is falsy


OWN, ONE, TWO = Named("own"), Named("one"), Named("two")


def in_thread():
    with ThreadPoolExecutor() as pool:
        return pool.submit(resolve_llm, OWN).result()


@pytest.fixture(autouse=True)
def nothing_built(monkeypatch):
    """Each test begins with no model built."""
    monkeypatch.setattr(current, "_built", None)


@pytest.fixture
def environment(monkeypatch):
    return lambda value: monkeypatch.setenv("SIMPLELLMFUNC_MODEL", value)


# --- use_llm -------------------------------------------------------------------------------------------------


def test_use_llm_comes_before_the_functions_own_and_that_before_the_environment(environment):
    environment("openai:gpt-5-mini")
    with use_llm(ONE) as used:
        assert used is resolve_llm(OWN) is resolve_llm(None) is ONE
    assert resolve_llm(OWN) is OWN
    assert resolve_llm(None).model_name == "gpt-5-mini"


def test_they_nest_and_end_also_after_an_error():
    with use_llm(ONE):
        with pytest.raises(LookupError), use_llm(TWO):
            assert resolve_llm(OWN) is TWO
            raise LookupError
        assert resolve_llm(OWN) is ONE
    assert resolve_llm(OWN) is OWN


def test_it_reaches_the_bridge_and_not_other_threads():
    async def inside():
        return resolve_llm(OWN)

    with use_llm(ONE):
        assert run_sync(inside()) is ONE
        assert in_thread() is OWN


@pytest.mark.parametrize("wrong", [None, "gpt-5-mini", LocalModel])
def test_something_that_is_no_model(wrong):
    with pytest.raises(UsageError, match=f"use_llm takes a model .*not {re.escape(repr(wrong))}"), use_llm(wrong):
        pass


# --- the environment -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", "  "])
def test_no_model_at_all(environment, value):
    if value is not None:
        environment(value)
    with pytest.raises(ConfigError) as caught:
        resolve_llm(None)
    assert str(caught.value) == missing_model_message()
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("value", "name"),
    [("openai:gpt-5-mini", "gpt-5-mini"), (" openai:ft:gpt:x ", "ft:gpt:x"), ("openai:a.json:b/c", "a.json:b/c")],
)
def test_a_model_of_openai_and_the_local_one(environment, value, name):
    environment(value)
    llm = resolve_llm(None)
    assert (type(llm), llm.model_name) == (OpenAICompatible, name)
    environment("local")
    assert isinstance(resolve_llm(None), LocalModel)


@pytest.mark.parametrize("model", ["gpt-4o", "meta/llama-3:8b", "a.json:b/c"])
def test_a_model_of_a_provider_file(environment, tmp_path, monkeypatch, model):
    entry = {"model_name": model, "api_keys": [CANARY], "base_url": "https://h/v1"}
    (tmp_path / "provider.json").write_text(json.dumps({"openai": [entry]}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("provider.json", str(tmp_path / "provider.json"), "~/provider.json"):
        environment(f"{path}:openai/{model}")
        llm = resolve_llm(None)
        assert (type(llm), llm.model_name, llm.base_url) == (OpenAICompatible, model, "https://h/v1")


def test_it_is_built_once_while_the_environment_says_the_same(environment, monkeypatch):
    environment("nonsense")
    with pytest.raises(ConfigError):
        resolve_llm(None)
    environment("openai:one")  # after a mistake the next call looks again
    first = resolve_llm(None)
    assert resolve_llm(None) is first
    environment("openai:two")
    second = resolve_llm(None)
    assert (first.model_name, second.model_name) == ("one", "two")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    third = resolve_llm(None)
    assert third is not second
    assert third.base_url.startswith("http://localhost:1/")


@pytest.mark.parametrize(
    "value", ["gpt-5-mini", "openai:", "openai: ", "Local", "provider.json", "provider.json:openai", "x.yaml:a/b"]
)
def test_a_value_that_names_nothing(environment, value):
    environment(value)
    with pytest.raises(ConfigError, match=r"SIMPLELLMFUNC_MODEL=.* names no model") as caught:
        resolve_llm(None)
    for form in ("openai:gpt-5-mini", "local", "provider.json:openai/gpt-5-mini"):
        assert form in str(caught.value)
    assert f"Did you mean '{value.strip()}'" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "value", "said"),
    [
        (None, "missing.json:openai/x", "does not exist"),
        (None, "~/missing.json:openai/x", f"{str(Path.home() / 'missing.json')!r} does not exist"),
        ({"openai": []}, "p.json:azure/x", "has no provider 'azure'. It has: openai"),
        ({}, "p.json:azure/x", "has no provider 'azure'. It has: none"),
        ({"openai": [{"model_name": "gpt-4o", "api_keys": [CANARY]}]}, "p.json:openai/x",
         "has no model 'x'. It has: gpt-4o"),
        ({"openai": [{"api_keys": [CANARY]}]}, "p.json:openai/x", "entry 1, field 'model_name': it is missing"),
        ([CANARY], "p.json:openai/x", "should be a valid dictionary"),
    ],
)  # fmt: skip
def test_a_provider_file_that_does_not_hold_it(environment, tmp_path, monkeypatch, content, value, said):
    if content is not None:
        (tmp_path / "p.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    environment(value)
    with pytest.raises(ConfigError) as caught:
        resolve_llm(None)
    message = str(caught.value)
    assert (said in message, "SIMPLELLMFUNC_MODEL" in message, "CANARY" in message) == (True, True, False)


# --- in the place of every model ---


def test_standing_in_for_what_would_be_asked():
    told = []

    def stand_in(llm):
        told.append(llm)
        return TWO

    with standing_in(stand_in):
        assert resolve_llm(OWN) is TWO
        with use_llm(ONE):
            assert resolve_llm(OWN) is TWO
        with standing_in(lambda llm: llm):  # the innermost counts
            assert resolve_llm(OWN) is OWN
        told.append(in_thread())
    assert told == [OWN, ONE, OWN, TWO]
    assert resolve_llm(OWN) is OWN


def test_standing_in_where_no_one_named_a_model(environment):
    with standing_in(lambda llm: TWO if llm is None else None):
        assert resolve_llm(None) is TWO
        assert resolve_llm(OWN) is OWN
    with standing_in(lambda llm: None), pytest.raises(ConfigError):
        resolve_llm(None)
