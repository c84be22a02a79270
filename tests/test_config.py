"""Settings from the environment and from a provider file."""

import errno
import json
import locale
import os
import re
import traceback
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc import CachedLLM, OpenAICompatible, TraceStore, durable, llm_function, paused
from SimpleLLMFunc.assistant import SqliteMemory
from SimpleLLMFunc.batch import Checkpoint
from SimpleLLMFunc.cli.load import store_path
from SimpleLLMFunc.config import (
    ProviderEntry,
    Settings,
    clean_key,
    file_path,
    is_local_address,
    missing_key_message,
    missing_model_message,
    read_provider_file,
    speaks_chinese,
)
from SimpleLLMFunc.errors import CheckpointError, ConfigError, UsageError
from SimpleLLMFunc.interface.attempts.credentials import Credentials
from SimpleLLMFunc.lock import read_lock
from SimpleLLMFunc.observability.store import TraceReader
from SimpleLLMFunc.serve.http_callers import Callers
from SimpleLLMFunc.testing import Cassette, ScriptedLLM
from SimpleLLMFunc.viewer.files import MapPages

CANARY = "sk-CANARY0123456789abcdefXYZ"
ENTRY = {"model_name": "gpt-4o", "api_keys": [CANARY], "base_url": "https://api.example.org/v1"}


@llm_function(llm_interface=ScriptedLLM("true", repeat=True))
def is_good(text: str) -> bool:
    """Say whether it is good."""
    raise NotImplementedError


# --- the environment -----------------------------------------------------------------------------------------


def test_each_variable_has_its_place():
    environment = {
        "OPENAI_BASE_URL": "https://h/v1",
        "OPENAI_ORG_ID": "org",
        "OPENAI_PROJECT_ID": "proj",
        "SIMPLELLMFUNC_MODEL": "local",
        "SIMPLELLMFUNC_MODEL_DIR": "/models",
        "SIMPLELLMFUNC_TRACE": "runs.sqlite",
        "OTHER": "x",
    }
    wanted = Settings("https://h/v1", "org", "proj", "local", "/models", "runs.sqlite")
    assert Settings.from_environment(environment) == wanted


def test_by_default_it_is_the_process_environment_as_it_stands(monkeypatch):
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", " local\n")
    monkeypatch.setenv("OPENAI_BASE_URL", "   ")
    settings = Settings.from_environment()
    assert (settings.model, settings.openai_base_url) == ("local", None)
    monkeypatch.delenv("SIMPLELLMFUNC_MODEL")
    assert Settings.from_environment().model is None


def test_settings_are_frozen_and_keep_a_password_to_themselves():
    address = "http://me:CANARY-too@proxy/v1"
    with pytest.raises(AttributeError):
        Settings(model="local").model = "other"
    assert "CANARY" not in repr(Settings(openai_base_url=address))


def test_a_path_that_cannot_be_is_a_config_error_at_every_door(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    doors = [
        *(lambda path: is_good.map([1], checkpoint=path), is_good.map, is_good.map([1]).write),
        *(lambda path: is_good.with_options(improvement=path), lambda path: is_good.with_options(calibration=path)),
        *(lambda path: durable(path, key="k").__enter__(), partial(CachedLLM, ScriptedLLM()), TraceStore, SqliteMemory),
        *(OpenAICompatible.load_from_json_file, lambda path: MapPages([path]), lambda path: store_path(path, "view")),
        *(Callers.load, read_lock, paused, Checkpoint.status, Cassette, lambda path: TraceReader(path).runs()),
    ]
    wrong = product(doors, ["~nobody-of-this-name/a.jsonl", "~/a\0b.jsonl", "\ud800.jsonl", "x" * 250 + ".jsonl"])
    for door, path in (*wrong, *product([file_path], ["", b"a", None, 3, "/", "a long text, given by mistake " * 20])):
        with pytest.raises(ConfigError, match="is the path of a file, not") as caught:
            door(path)
        assert ("no user of this name" in str(caught.value)) is str(path).startswith("~nobody")
    monkeypatch.chdir(tmp_path)
    found = [file_path(file_path(each)) for each in ("~/a", "~$a.csv", "./~root/a")]
    assert found == [tmp_path / "a", Path("~$a.csv"), tmp_path / "~root" / "a"]
    with pytest.raises(FileNotFoundError, match="Rows given as a str are the path"):
        is_good.map("none.parquet")
    with pytest.raises(CheckpointError, match=r"there is no journal .*, or it may not be read"):
        paused("none.sqlite")
    Path("circle").symlink_to("circle")
    for door in (doors[0], doors[5], paused, Checkpoint.status, lambda path: TraceReader(path, create=True).runs()):
        with pytest.raises((CheckpointError, ConfigError), match=r"Too many levels of symbolic links|there is no "):
            door("circle")
    monkeypatch.setattr(Path, "stat", Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(ConfigError, match=r"'a\.jsonl' cannot be read: Permission denied"):
        is_good.map("a.jsonl")


@pytest.mark.parametrize(
    "key", ["", " \n", None, 3, b"sk", [CANARY], f"{CANARY}\nHost: x", f"{CANARY} x", f"é{CANARY}"]
)
def test_a_key_is_cleaned_and_what_is_none_is_refused_and_not_shown(key):
    assert clean_key(f"\t{CANARY} \r\n", "here") == CANARY
    with pytest.raises(ConfigError, match=r"^here: ") as caught:
        clean_key(key, "here")
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("http://localhost:8000/v1", True), ("http://LOCALHOST/v1", True), ("http://127.0.0.1:11434/v1", True),
        ("http://127.8.8.8/v1", True), ("http://[::1]:8000/v1", True), ("http://0.0.0.0:8000/v1", True),
        ("http://192.168.1.5:8000/v1", True), ("http://10.0.0.1/v1", True),
        ("http://host.docker.internal:8000/v1", True), ("http://box.local/v1", True), ("http://vllm:8000/v1", True),
        ("https://api.openai.com/v1", False), ("https://8.8.8.8/v1", False), ("https://localhost.evil.com/v1", False),
        ("https://user:localhost@example.org/v1", False), ("http://[bad", False), ("", False), (None, False),
    ],
)  # fmt: skip
def test_local_addresses(address, is_local):
    assert is_local_address(address) is is_local


# --- what to say when nothing is set up ----------------------------------------------------------------------


MESSAGES = [
    missing_model_message,
    lambda: missing_key_message("gpt-5-mini"),
    lambda: missing_key_message("m", "https://h/v1"),
]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_message_is_one_paragraph_in_one_language_with_the_way_out(message, language, monkeypatch):
    monkeypatch.setenv("SIMPLELLMFUNC_LANG", language)
    said = message()
    assert "\n" not in said
    letters = re.findall("[\u4e00-\u9fff]", said)
    assert len(letters) > 30 if language == "zh" else not letters
    assert bool(re.search(r"Looked at|Without a key", said)) == (language == "en")
    for needed in ("OPENAI_API_KEY", "OpenAICompatible(", "LocalModel()", "SIMPLELLMFUNC_MODEL=local", "pip install"):
        assert needed in said, needed


@pytest.mark.parametrize(
    ("environment", "system", "is_chinese"),
    [
        ({}, None, False), ({}, "Chinese (Simplified)_China", True), ({"LANG": "zh_CN.UTF-8"}, None, True),
        ({"LANG": "de_DE.UTF-8"}, None, False), ({"LC_ALL": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, None, True),
        ({"SIMPLELLMFUNC_LANG": "zh", "LANG": "en_US.UTF-8"}, None, True),
        ({"SIMPLELLMFUNC_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, None, False),
        ({"SIMPLELLMFUNC_LANG": " ", "LC_MESSAGES": "zh_CN"}, None, True),
    ],
)  # fmt: skip
def test_the_language_is_that_of_the_environment_at_this_moment(environment, system, is_chinese, monkeypatch):
    for name in ("SIMPLELLMFUNC_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(locale, "getlocale", lambda: (system, None))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert speaks_chinese() is is_chinese


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"https://host.example:8000/v1?key={CANARY}", "https://host.example:8000/v1"),
        ("http://93.184.216.34/v1/", "http://93.184.216.34/v1"),
    ],
)
def test_the_missing_key_names_model_and_address_and_no_secret(address, shown):
    with pytest.raises(ConfigError) as caught:
        Credentials("gpt-5-mini", address, None, None).key()
    message = str(caught.value)
    assert message.count("gpt-5-mini") == 2
    assert message.count(shown) == 1
    assert "CANARY" not in message


# --- the provider file: what is read -------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "provider.json"

    def write(content):
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def test_a_short_entry_has_defaults_and_keeps_its_keys_to_itself(file):
    found = read_provider_file(file({"openai": [ENTRY]}))
    assert found == {"openai": [ProviderEntry(**ENTRY)]}
    assert "CANARY" not in repr(found) + str(found["openai"][0])
    (entry,) = read_provider_file(file({"openai": [{"model_name": "m", "api_keys": ["k"]}]}))["openai"]
    told = {name: value for name, value in entry.model_dump().items() if value not in (None, {})}
    assert told == {"model_name": "m", "api_keys": ["k"], "max_retries": 2, "retry_delay": 0.5}


def test_a_full_entry_is_read_as_it_stands(file):
    full = {
        **ENTRY,
        "max_retries": 5,
        "retry_delay": 1,
        "rate_limit_capacity": 20,
        "rate_limit_refill_rate": 3.5,
        "requests_per_minute": 60,
        "tokens_per_minute": 90000,
        "context_window": 128000,
        "api_params": {"temperature": 0.5, "extra": {"a": [1, None]}},
        "wire": "responses",
    }
    (entry,) = read_provider_file(file({"openai": [full]}))["openai"]
    assert entry.model_dump() == full


def test_variables_in_keys_are_read_from_the_environment(file, monkeypatch):
    path = file({"p": [{**ENTRY, "api_keys": ["${KEY_ONE}", "sk-${KEY_TWO}-${KEY_ONE}", "plain$key"]}]})
    (entry,) = read_provider_file(path, {"KEY_ONE": "one\n", "KEY_TWO": "two"})["p"]
    assert entry.api_keys == ["one", "sk-two-one", "plain$key"]
    monkeypatch.setenv("KEY_ONE", "from the process".replace(" ", "-"))
    monkeypatch.setenv("KEY_TWO", "${KEY_ONE}")
    (entry,) = read_provider_file(path)["p"]
    assert entry.api_keys[1] == "sk-${KEY_ONE}-from-the-process", "a value is not expanded again"


@pytest.mark.parametrize("keys", [{}, {"api_keys": []}])
def test_a_local_service_needs_no_keys(file, keys):
    named = {"model_name": "n", "wire": "gemini", **keys}  # its address stands in the environment
    path = file({"p": [{"model_name": "m", "base_url": "http://localhost:8000/v1", **keys}, named]})
    entry, _ = read_provider_file(path, {"GOOGLE_GEMINI_BASE_URL": "http://localhost:8001"})["p"]
    assert entry.api_keys == []


# --- the provider file: what is refused ----------------------------------------------------------------------


def refused(path, environ=None):
    """Return the error's text after checking what holds for every refusal."""
    with pytest.raises(ValueError) as caught:
        read_provider_file(path, environ)
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, UsageError)
    whole = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    whole = whole.replace(str(path), "")  # the folder bears the name of the test case
    assert "CANARY" not in whole
    assert "pydantic" not in whole
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, OSError)
    assert caught.value.__context__ is caught.value.__cause__
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_the_builtin_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such provider file") as caught:
        read_provider_file(tmp_path / "missing.json")
    assert type(caught.value) is FileNotFoundError
    assert caught.value.errno == errno.ENOENT
    assert str(tmp_path / "missing.json") in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "this is not a file" in refused(tmp_path / "pipe")


def test_a_file_that_cannot_be_read(file, monkeypatch):
    path = file({"p": [ENTRY]})

    def deny(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(type(path), "read_bytes", deny)
    assert "cannot be read" in refused(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Expecting value: line 1 column 1"), (f'{{"p": "{CANARY}" oops}}'.encode(), "line 1"),
        (b'{"p": "\xff"}', "not UTF-8 (byte 7)"), ("{}".encode("utf-16"), "not UTF-8"),
        (b'{"p": NaN}', "NaN is no JSON number"), (b"[" * 100_000, "recursion"),
        (b'{"p": ' + b"9" * 5000 + b"}", "this is not JSON"), (b'{"p": [], "p": []}', "'p' stands twice"),
        (json.dumps({CANARY: []})[:-1].encode() + f', "{CANARY}": []}}'.encode(), "stands twice"),
        ([ENTRY], "Input should be a valid dictionary"),
        ({"openai": ENTRY}, "provider 'openai': Input should be a valid list"),
        ({"openai": [ENTRY, CANARY]}, "provider 'openai', entry 2: Input should be a valid dictionary"),
        ({CANARY: {}}, "a provider that is no plain name"),
    ],
)  # fmt: skip
def test_what_is_not_json_or_has_the_wrong_shape(file, content, said):
    assert said in refused(file(content))


def without(name):
    return {key: value for key, value in ENTRY.items() if key != name}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (without("model_name"), "entry 1, field 'model_name': it is missing"),
        (without("api_keys"), "entry 1, field 'api_keys': there is no key"),
        ({**ENTRY, "model_name": 3}, "entry 1, field 'model_name': "),
        ({**ENTRY, "api_keys": CANARY}, "field 'api_keys': "),
        ({**ENTRY, "api_keys": []}, "field 'api_keys': there is no key"),
        ({**ENTRY, "api_keys": [CANARY, None]}, "field 'api_keys', item 2: "),
        ({**ENTRY, "api_keys": [CANARY, " "]}, "field 'api_keys', item 2: the key is empty"),
        ({**ENTRY, "api_keys": [f"{CANARY} x"]}, "field 'api_keys', item 1: the key holds blanks"),
        ({**ENTRY, "base_url": "api.example.org/v1"}, "field 'base_url': this is not an address"),
        ({**ENTRY, "base_url": "ftp://example.org"}, "field 'base_url': this is not an address"),
        ({**ENTRY, "base_url": f"https://{CANARY}:x/"}, "field 'base_url': this is not an address"),
        ({**ENTRY, "base_url": "https://"}, "field 'base_url': this is not an address"),
        ({**ENTRY, "max_retries": "2"}, "field 'max_retries': "),
        ({**ENTRY, "max_retries": True}, "field 'max_retries': "),
        ({**ENTRY, "max_retries": -1}, "field 'max_retries': "),
        ({**ENTRY, "retry_delay": -0.1}, "field 'retry_delay': "),
        ({**ENTRY, "rate_limit_capacity": 0, "rate_limit_refill_rate": 1}, "field 'rate_limit_capacity': "),
        ({**ENTRY, "rate_limit_capacity": 5}, "field 'rate_limit_refill_rate': it is missing"),
        ({**ENTRY, "rate_limit_refill_rate": 5}, "field 'rate_limit_capacity': it is missing"),
        ({**ENTRY, "requests_per_minute": -1}, "field 'requests_per_minute': "),
        ({**ENTRY, "tokens_per_minute": 0}, "field 'tokens_per_minute': "),
        ({**ENTRY, "context_window": 0}, "field 'context_window': "),
        ({**ENTRY, "api_params": CANARY}, "field 'api_params': "),
        ({**ENTRY, "modelname": "x"}, "field 'modelname': there is no such field. Did you mean 'model_name'?"),
        ({**ENTRY, "zzz": CANARY}, "field 'zzz': there is no such field. Known: model_name, api_keys"),
        ({**ENTRY, CANARY: "x"}, "a field that is no plain name: there is no such field"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be(file, entry, said):
    message = refused(file({"openai": [entry]}))
    assert said in message
    assert "provider 'openai', entry 1" in message
    assert len(message) < 1000


def test_the_same_model_twice(file):
    message = refused(file({"p": [ENTRY, {**ENTRY, "model_name": "other"}, ENTRY]}))
    assert "provider 'p', entry 3" in message
    assert "'gpt-4o' is in entry 1 already" in message
    assert read_provider_file(file({"p": [ENTRY], "q": [ENTRY]})).keys() == {"p", "q"}


@pytest.mark.parametrize("environ", [{}, {"KEY_ONE": ""}, {"KEY_ONE": " \n"}])
def test_a_variable_that_is_not_set(file, environ):
    path = file({"p": [ENTRY, {**ENTRY, "model_name": "m", "api_keys": [CANARY, "${KEY_ONE}"]}]})
    place = "provider 'p', entry 2, field 'api_keys', item 2"
    assert f"{place}: the environment variable KEY_ONE is not set" in refused(path, environ)


@pytest.mark.parametrize("key", ["${", "${}", "${1A}", "${A", "${A B}", "${A}${"])
def test_a_variable_that_is_written_wrongly(file, key):
    assert "a variable is written ${NAME}" in refused(file({"p": [{**ENTRY, "api_keys": [key]}]}), {"A": "x"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from([*ProviderEntry.model_fields]), inner),
    max_leaves=10,
)


@given(
    entry=st.dictionaries(st.sampled_from([*ProviderEntry.model_fields, "more"]), json_values | st.just([CANARY])),
    provider=st.text(),
)
def test_whatever_stands_in_it_is_read_or_refused_without_showing_a_key(tmp_path_factory, entry, provider):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({provider: [{**ENTRY, **entry}]}), encoding="utf-8")
    said = ""
    try:
        read = read_provider_file(path, {})
    except ConfigError as error:
        said = str(error)
    else:
        assert read[provider][0].model_name == {**ENTRY, **entry}["model_name"]
    assert "CANARY" not in said
