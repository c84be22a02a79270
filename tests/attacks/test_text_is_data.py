"""Attacks 2, 3, 5, 12: what a model, a tool or a history says is plain data, however it is dressed, and however deep."""

import contextlib
import json
import math
import sqlite3
import time
from typing import Any

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import CachedLLM
from SimpleLLMFunc.base.parsing import mended_arguments
from SimpleLLMFunc.base.post_process import parse_text
from SimpleLLMFunc.batch.checkpoint import codec
from SimpleLLMFunc.errors import CheckpointError, ResponseParseError, SimpleLLMFuncError
from SimpleLLMFunc.interface.composite import answer_store as cache_store
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from SimpleLLMFunc.tools.schemas.callable_schema import ArgumentsError
from SimpleLLMFunc.tools.wire import read_arguments
from tests.support.functions import async_function_of

# --- 2: type tags -----------------------------------------------------------------------------------------

TAGGED = [
    {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]},
    {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "touch pwned"}},
    {"__class__": "os.system"}, {"__reduce__": ["os.system", ["touch pwned"]]},
    {"py/object": "subprocess.Popen", "args": ["touch pwned"]},
    {"py/reduce": [{"py/function": "os.system"}, {"py/tuple": ["touch pwned"]}]}, {"$ref": "file:///etc/passwd"},
    {"$type": "System.Diagnostics.Process", "!python/object/apply:os.system": ["touch pwned"]},
    {"__pydantic_extra__": {"a": 1}, "__dict__": {"api_key": "x"}, "model_config": {}},
]  # fmt: skip


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch):
    """Whatever is run would leave its mark in the working directory."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("data", TAGGED, ids=str)
async def test_attack_02_no_answer_and_no_argument_is_more_than_data(data, in_empty_folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-shown-0123456789")
    text = json.dumps(data)
    seen: list[Any] = []

    def take(value: Any) -> Any:
        """Take."""
        seen.append(value)
        return value

    llm = ScriptedLLM(calling(("take", {"value": data})), text)
    result = await async_function_of(llm, dict, toolkit=[take]).call("x")
    assert json.dumps(result.value) == text  # byte for byte
    assert seen == [data]
    (returned,) = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert json.loads(returned) == data
    assert "sk-never" not in str(llm.requests) + str(result)


class Strict(BaseModel):
    name: str


@pytest.mark.parametrize("data", TAGGED, ids=str)
def test_attack_02_a_type_is_what_it_is_with_any_answer(data, in_empty_folder):
    with pytest.raises(ResponseParseError):
        parse_text(json.dumps(data), Strict)
    value = parse_text(json.dumps({"name": "x", **data}), Strict).value
    assert type(value) is Strict
    assert vars(value) == {"name": "x"}
    assert value.model_extra is None


# --- 3: no second format ----------------------------------------------------------------------------------


def holds_no_pickle(path):
    content = path.read_bytes()
    return not any(mark in content for mark in (b"\x80\x04\x95", b"cos\nsystem", b"csystem"))


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff", "\x00", "\U0001f327"])
async def test_attack_03_a_value_no_file_can_hold_never_leads_to_another_format(text, tmp_path):
    path = tmp_path / "answers.sqlite"
    inner = ScriptedLLM(text, repeat=True)
    llm = CachedLLM(inner, path)
    for _ in range(2):
        reply = await llm.chat([{"role": "user", "content": f"say {text}"}])
        assert reply.text == text or "\ufffd" in reply.text
    llm.close()
    assert holds_no_pickle(path)


EVIL = b"\x80\x04cos\nsystem\n(S'touch pwned'\ntR."


async def test_attack_03_a_pickle_in_a_cache_is_never_loaded(tmp_path, in_empty_folder):
    path = tmp_path / "answers.sqlite"
    llm = CachedLLM(ScriptedLLM("one", "two"), path)
    question = [{"role": "user", "content": "x"}]
    assert (await llm.chat(question)).text == "one"
    llm.close()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE answers SET answer = ?", (EVIL,))
    connection.close()
    again = CachedLLM(ScriptedLLM("two"), path)
    assert (await again.chat(question)).text == "two"  # the checksum is wrong: it is asked for again
    again.close()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        ((key,),) = connection.execute("SELECT key FROM answers")
        connection.execute("UPDATE answers SET answer = ?, checksum = ?", (EVIL, cache_store.checksum_of(key, EVIL)))
    connection.close()
    third = CachedLLM(ScriptedLLM("three"), path)
    assert (await third.chat(question)).text == "three"
    third.close()


def mapped(llm):
    return async_function_of(llm, dict[str, Any])


async def test_attack_02_and_03_a_checkpoint_gives_back_data_and_loads_no_pickle(tmp_path, in_empty_folder):
    path = tmp_path / "run.sqlite"
    rows = [f"row {number}" for number in range(len(TAGGED))]
    report = await mapped(ScriptedLLM(*map(json.dumps, TAGGED))).map(rows, checkpoint=path, concurrency=1)
    assert [row.value for row in report.rows] == TAGGED
    again = await mapped(ScriptedLLM()).map(rows, checkpoint=path)
    assert [row.value for row in again.rows] == TAGGED
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert not connection.execute("SELECT count(*) FROM rows WHERE instr(answer, x'80049580') > 0").fetchone()[0]
        connection.execute("UPDATE rows SET answer = ?", (EVIL,))
    connection.close()
    with pytest.raises(CheckpointError):
        await mapped(ScriptedLLM()).map(rows, checkpoint=path)
    # With a checksum that is right, too, it is no more than bytes that nobody can read.
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        columns = "id, key, version, error, answer, usage, given, at"
        for row in connection.execute(f"SELECT {columns} FROM rows").fetchall():
            connection.execute("UPDATE rows SET checksum = ? WHERE id = ?", (codec.checksum(row), row[0]))
    connection.close()
    with pytest.raises(CheckpointError):
        found = await mapped(ScriptedLLM()).map(rows, checkpoint=path)
        [row.value for row in found.rows]


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff", "\x00", "\U0001f327"])
async def test_attack_03_a_checkpoint_holds_every_text_in_the_same_format(text, tmp_path):
    path = tmp_path / "run.sqlite"
    llm = ScriptedLLM(json.dumps({"a": text}), repeat=True)
    first = await mapped(llm).map([text], checkpoint=path)
    again = await mapped(ScriptedLLM()).map([text], checkpoint=path)
    assert again.rows[0].value == first.rows[0].value
    assert holds_no_pickle(path)


# --- 5: code ----------------------------------------------------------------------------------------------

CODE = [
    "__import__('os').system('touch pwned')", '__import__("os").system("touch pwned")',
    "exec(\"open('pwned', 'w').write('x')\")", "open('pwned', 'w')",
    "[x for x in ().__class__.__base__.__subclasses__()]", "1 + __import__('os').system('touch pwned')",
    "{'a': __import__('os').system('touch pwned')}", "[__import__('os').system('touch pwned')]",
    "lambda: __import__('os').system('touch pwned')", "!!python/object/apply:os.system ['touch pwned']",
    "$(touch pwned)", "`touch pwned`", "; touch pwned", "' or __import__('os').system('touch pwned') or '",
    "cos\nsystem\n(S'touch pwned'\ntR.", "9**9**9**9", "'a' * 10**10",
]  # fmt: skip


def leaves(value):
    if isinstance(value, dict):
        return [leaf for pair in value.items() for part in pair for leaf in leaves(part)]
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple, set)) else [value]


def dresses(text):
    return (text, f"```python\n{text}\n```", f'{{"value": {text}}}', f"<answer>{text}</answer>", f"It is {text}.")


@pytest.mark.parametrize("return_type", [int, float, bool, list[int], dict[str, int], Strict], ids=str)
def test_attack_05_an_answer_of_code_is_refused(return_type, in_empty_folder):
    for dressed in (each for text in CODE for each in dresses(text)):
        with pytest.raises(ResponseParseError):
            pytest.fail(f"{dressed!r} gave {parse_text(dressed, return_type).value!r}")


@pytest.mark.parametrize("return_type", [list, dict, tuple, set, Any, str], ids=str)
def test_attack_05_or_is_text_where_text_may_stand(return_type, in_empty_folder):
    for dressed in (each for text in CODE for each in dresses(text)):
        try:
            value = parse_text(dressed, return_type).value
        except ResponseParseError:
            continue
        assert all(isinstance(leaf, str) and leaf in dressed for leaf in leaves(value)), value


@pytest.mark.parametrize("text", CODE)
async def test_attack_05_an_argument_of_code_is_text(text, in_empty_folder):
    seen = []

    def look(where: str, count: int = 1) -> str:
        """Look."""
        seen.append((where, count))
        return where

    replies = calling(
        ("look", {"where": text}),
        ("look", {"where": "x", "count": text}),
        ("look", text),
        ("look", f'{{"where": {text}}}'),
    )
    result = await async_function_of(ScriptedLLM(replies, "ok"), toolkit=[look]).call("x")
    assert (text, 1) in seen
    assert all(count == 1 for _, count in seen)
    assert len([message for message in result.messages if message["role"] == "tool"]) == 4


# --- 12: deep, long, odd ----------------------------------------------------------------------------------

DEEP = {
    "brackets": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "closed brackets": "[" * 100_000 + "]" * 100_000,
    "closed objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "mixed": '[{"a":' * 50_000,
    "fenced": "```json\n" + "[" * 100_000,
    "quotes": '"' * 100_000,
    "backslashes": '"' + "\\" * 100_001,
    "digits": "9" * 5_000, "negative digits": "-" + "9" * 5_000 + "e" + "9" * 5_000, "exponent": "1e400",
    "nan": "NaN", "infinity": "-Infinity", "nan in a list": "[NaN, 1]",
    "twice": '{"name": "a", "name": "b"}',
    "surrogate": '{"name": "a\\ud800b"}',
    "open surrogate": '"\\ud800',
    "commas": "[" + "," * 100_000,
    "tags": "<think>" * 20_000,
    "fences": "```\n" * 20_000,
    "half keys": '{"' * 50_000,
    "quotes inside": '{"name": "' + 'x"y' * 30_000,
    "prose": "word " * 40_000,
    "a cut text": '{"name": "' + "x" * 200_000,
    "null characters": "\x00" * 100_000,
    "surrogates": "\ud800" * 100_000,
    "numbers": "1 " * 30_000,
}  # fmt: skip
TYPES = [int, float, str, bool, None, list[int], dict[str, Any], Strict, Any, list[Any], Strict | None]


@pytest.mark.heavy
@pytest.mark.parametrize("name", DEEP)
def test_attack_12_deep_and_odd_answers_are_read_or_refused(name):
    for return_type in TYPES:
        try:
            value = parse_text(DEEP[name], return_type).value
        except ResponseParseError as error:
            assert error.violations
            assert len(str(error)) < 5000
        else:
            check_that_it_says_so(name, return_type, value)


def check_that_it_says_so(name, return_type, value):
    if name == "twice":
        assert return_type in {str, None, Any}, "which of the two?"
    if name == "surrogate" and isinstance(value, Strict):
        value.model_dump_json()
    if isinstance(value, float):
        assert math.isfinite(value)
    if return_type in {list[int], Strict}:
        assert name in {"surrogate", "numbers"}, value


@pytest.mark.heavy
@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
async def test_attack_12_they_end_a_call_with_an_error_of_ours(name, mode):
    llm = ScriptedLLM(*[_reply(mode, DEEP[name])] * 2)
    ask = async_function_of(llm, list[int], output_mode=mode, max_reasks=1, retry_times=0)
    with pytest.raises(SimpleLLMFuncError):
        await ask("x")
    assert max(len(str(message["content"])) for message in llm.requests[-1]) < 20_000  # what is shown again is cut


def _reply(mode, text):
    return calling(("answer", text)) if mode == "tool" else text


@pytest.mark.parametrize("name", DEEP)
async def test_attack_12_as_arguments_they_are_answered(name):
    runs = []

    def look(value: list[int]) -> str:
        """Look."""
        runs.append(value)
        return "ok"

    calls = calling(("look", DEEP[name]), ("look", f'{{"value": {DEEP[name]}}}'))
    result = await async_function_of(ScriptedLLM(calls, "done"), toolkit=[look]).call("x")
    answers = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert len(answers) == 2
    assert all(len(answer) <= 600 for answer in answers)
    assert runs == []
    for read in (read_arguments, mended_arguments):
        with contextlib.suppress(ArgumentsError):
            assert read(DEEP[name]) in (None, {}) or name in {"twice", "surrogate"}


PIECES = {
    "escapes": "\\u00e9",
    "brackets": "[",
    "objects": '{"a":',
    "open strings": '{"',
    "single quotes": "{'",
    "backticks": "[`",
    "fenced backticks": "`{",
    "typographic quotes": "［“",
    "Python's": "{u'",
    "triple quotes": '{"""x',
    "broken strings": '"a" ',
    "two strings": '{"a": "b" "c',
    "keys without quotes": "{a: b c ",
    "text without quotes": "[a b ",
    "comments": "[/* ",
    "line comments": "{// x",
    "HTML comments": "[<!-- ",
    "numbers": "[1 2",
    "elisions": "[...",
    "prose with brackets": "see [1] and {2} ",
    "fences": "```json\n{\n```\n",
    "tags": "<answer>",
    "tags with brackets": "<answer>{",
    "reasoning": "<think>{",
    "boxes": "\\boxed{",
    "entities": "{&quot;",
    "escaped quotes": '{\\"',
    "emphasis": "**{**",
    "closed": "{} [] ",
    "one long number": "9",
    "digits": "1 ",
}


@pytest.mark.heavy
@pytest.mark.parametrize("return_type", [Strict, list[str]], ids=str)
@pytest.mark.parametrize("name", PIECES)
def test_attack_12_eight_times_the_text_takes_no_sixty_four_times_the_time(name, return_type):
    piece = PIECES[name]

    def seconds(size):
        text, best = piece * (size // len(piece)), []
        for _ in range(2):
            started = time.process_time()
            with contextlib.suppress(ResponseParseError):
                parse_text(text, return_type)
            best.append(time.process_time() - started)
        return min(best)

    seconds(500)
    assert seconds(12_000) < 8 * 4 * max(seconds(1_500), 0.001)


@pytest.mark.heavy
async def test_attack_12_ten_megabytes_are_an_answer():
    text = "x" * 10_000_000
    ask = async_function_of(ScriptedLLM(json.dumps({"name": text}), chunk_size=1_000_000), returns=Strict)
    assert (await ask("x")).name == text
