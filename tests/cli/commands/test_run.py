"""`simplellmfunc run` and `preview`: arguments by the signature, and what is printed."""

import json
import shlex
import sys
from functools import partial

import pytest
from click.testing import CliRunner

from SimpleLLMFunc.cli import output
from SimpleLLMFunc.cli.arguments import arguments_of
from SimpleLLMFunc.cli.load import load_object
from SimpleLLMFunc.cli.main import main
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.observability.store.reader import TraceReader
from tests.support.command_line import typed

SHOP = '''
from collections.abc import AsyncIterator, Iterator
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel

from SimpleLLMFunc import ImgPath, ImgUrl, Message, Text, llm_chat, llm_function
from SimpleLLMFunc.errors import RateLimited
from SimpleLLMFunc.testing import ScriptedLLM

seen = {}


class Colour(Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    y: int = 0


class Opinion(BaseModel):
    mood: Literal["good", "bad"]
    stars: int


@llm_function(llm_interface=ScriptedLLM('{"mood": "good", "stars": "5"}', repeat=True))
def classify(review: str, strict: bool = False, *, tags: list[str] = []) -> Opinion:
    """Say what a {who} thinks."""


@llm_function(llm_interface=ScriptedLLM("hello there\\x1b[31m my friend", repeat=True))
async def greet(name: str) -> str:
    """Greet."""


@llm_function(llm_interface=ScriptedLLM('["a", "b", "c"]', repeat=True))
async def items(text: str) -> AsyncIterator[str]:
    """List."""


@llm_function(llm_interface=ScriptedLLM(RateLimited("m"), repeat=True))
def fails(text: str) -> str:
    """Fail."""


@llm_function
def bare(text: str) -> str:
    """Answer."""


@llm_function(llm_interface=ScriptedLLM("ok", repeat=True))
def typed(
    text: str = "", count: int = 0, ratio: float = 0.0, flag: bool = False, day: date | None = None,
    price: Decimal = Decimal(0), colour: Colour | None = None, kind: Literal["a", "b"] = "a", point: Point | None = None,
    rows: list[int] = [], table: dict[str, Any] = {}, either: int | str = 0, anything: Any = None, maybe: str | None = "x",
    picture: ImgUrl | None = None, photo: ImgPath | None = None, pictures: list[ImgUrl] = [],
) -> str:
    """Take all."""


@llm_function(llm_interface=ScriptedLLM("ok", repeat=True))
def no_types(text, **others) -> str:
    """Take anything."""


@llm_chat(llm_interface=ScriptedLLM("hi, I am a guide", repeat=True), stream=True)
def guide(history: list[Message], message: str) -> Iterator[tuple[str, list[Message]]]:
    """Guide."""


@llm_chat(llm_interface=ScriptedLLM("raw words", repeat=True), stream=True, return_mode="raw")
async def raw(message: str, history: list[Message] | None = None) -> AsyncIterator[tuple[Any, list[Message]]]:
    """Guide."""
'''


@pytest.fixture(autouse=True)
def shop(folder):
    (folder / "cli_shop.py").write_text(SHOP)


run, preview = partial(typed, "run"), partial(typed, "preview")


def arguments_sent(*arguments, text=None):
    """Return what the function was called with, as the model is told."""
    content = json.loads(preview(*arguments, "--json", text=text).stdout)["messages"][-1]["content"]
    lines = content.split("\n  - ")[1:] if isinstance(content, str) else []
    return dict(line.split(": ", 1) for line in lines)


# --- what is printed --------------------------------------------------------------------------------------


def test_a_value_is_printed_as_text_or_json():
    assert run("cli_shop:greet", "Anna").stdout == "hello there\x1b[31m my friend\n"
    assert run("cli_shop:classify", "Nice.").stdout == '{"mood": "good", "stars": 5}\n'
    assert run("cli_shop.py:items", "x").stdout == '["a", "b", "c"]\n'


def test_a_terminal_obeys_nothing_that_a_model_wrote():
    assert output.printable("one\ntwo\r\n\tthree") == "one\ntwo\n\tthree"
    assert output.printable("a\x1b[31mb\u202e") == "a\\u001b[31mb\\u202e"
    assert output.as_json({"a": "x\u202e"}).isprintable()
    assert json.loads(output.as_json({"a": "x\u202e\x1b"}, indent=2)) == {"a": "x\u202e\x1b"}
    assert json.loads(output.as_json({"a": "\udc80"})) == {"a": "\udc80"}


def test_an_output_that_lacks_a_character_or_is_closed_ends_no_command(monkeypatch):
    words = ["preview", "cli_shop:greet", "東京🍵"]
    shown, told = (CliRunner(charset="latin-1").invoke(main, [*words, *more]).output for more in ([], ["--json"]))
    assert "\\u6771\\u4eac" in shown
    assert "東京🍵" in json.loads(told)["messages"][-1]["content"]
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, None)
    output.echo_value(["closed"])
    with pytest.raises(ConfigError, match="closed"):
        arguments_of(load_object("cli_shop:greet"), ["-"], [], None, [])


def test_the_result_as_json():
    result = json.loads(run("cli_shop:classify", "Nice.", "--json").stdout)
    assert result["value"] == {"mood": "good", "stars": 5}
    assert result["text"] == '{"mood": "good", "stars": "5"}'
    assert result["repairs"] == [["stars", "number taken from '5'"]]
    assert result["usage"]["input_tokens"] > 0
    assert {"attempts", "messages", "trace_id", "cost", "seconds", "output_mode", "cached", "tries"} <= result.keys()


def test_what_it_took_goes_to_stderr():
    done = run("cli_shop:classify", "Nice.", "-v")
    assert done.stdout == '{"mood": "good", "stars": 5}\n'
    assert "tokens read" in done.stderr
    assert "stars: number taken from '5'" in done.stderr


def test_streams():
    assert run("cli_shop:greet", "x", "--stream").stdout == "hello there\x1b[31m my friend\n"
    assert run("cli_shop:items", "x", "--stream").stdout == '"a"\n"b"\n"c"\n'
    lines = run("cli_shop:classify", "x", "--stream").stdout.splitlines()
    assert json.loads(lines[-1]) == {"mood": "good", "stars": 5}


def test_chats():
    assert run("cli_shop:guide", "hello").stdout == "hi, I am a guide\n"
    assert run("cli_shop:guide", "-a", "message=hello").stdout == "hi, I am a guide\n"
    assert run("cli_shop:raw", "hello").stdout == "raw words\n"
    history = json.dumps([{"role": "user", "content": "before"}])
    assert run("cli_shop:guide", "hello", "-a", f"history:={history}").stdout == "hi, I am a guide\n"


def test_a_run_can_be_kept(tmp_path):
    run("cli_shop:greet", "Anna", "--trace", "t.sqlite")
    (kept,) = TraceReader(tmp_path / "t.sqlite").runs().runs
    assert (kept.function, kept.question, kept.status) == ("greet", "Anna", "ok")


def test_a_store_that_cannot_be_used_is_said_before_anything_is_asked(tmp_path):
    (tmp_path / "t.sqlite").write_text("none of ours " * 100)
    done = run("cli_shop:greet", "Anna", "--trace", "t.sqlite", code=1)
    assert "t.sqlite" in done.stderr
    assert sys.modules["cli_shop"].greet._pipeline.options.llm_interface.calls == []


def test_the_model_of_the_command_line(monkeypatch):
    assert "No model to ask" in run("cli_shop:bare", "x", code=1).stderr
    done = run("cli_shop:bare", "x", "--model", "openai:m", code=1)
    assert "OPENAI_API_KEY" in done.stderr
    assert "--model" in run("cli_shop:bare", "x", "--model", "nonsense", code=1).stderr


# --- how it ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cli_shop:fails", "x"], "too many requests"),
        (["cli_shop:Opinion"], "Name a function under @llm_function or @llm_chat"),
        (["cli_shop:nothing"], "has no 'nothing'"),
        (["cli_shop"], "is a module only"),
        (["cli_shop:classify", "a", "-t", "whoo=me"], "has a field {who} that cannot be filled. It can use: {whoo}."),
        (["cli_shop:greet", "-a", "name=@missing.txt"], "'missing.txt' cannot be read"),
        (["cli_shop:greet", "--input", "missing.json"], "'missing.json' cannot be read"),
    ],
)
def test_errors_end_with_1(arguments, says):
    done = run(*arguments, code=1)
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cli_shop:classify"], "no value for review. classify takes (review: str, strict: bool = False"),
        (["cli_shop:classify", "a", "true", "more"], "there are too many values (3). classify takes"),
        (["cli_shop:classify", "a", "-a", "nope=1"], "there is no parameter 'nope'"),
        (["cli_shop:classify", "a", "-a", "review=b"], "review is given twice. classify takes"),
        (["cli_shop:classify", "a", "-a", "strict=maybe"], "strict: input should be a valid boolean"),
        (["cli_shop:classify", "a", "-a", "strict"], "'strict' is not NAME=VALUE"),
        (["cli_shop:classify", "a", "-a", "tags:={"], "tags: no JSON"),
        (["cli_shop:classify", "a", "-a", "tags:=[1]"], "tags[0]: input should be a valid string, not [1]"),
        (["cli_shop:classify", "-", "-a", "strict=-"], "read once only"),
        (["cli_shop:classify", "-", "-a", "strict=@-"], "read once only"),
        (["cli_shop:guide", "-", "-t", "who=-"], "read once only"),
        (["cli_shop:guide", "a", "-t", "who=me"], "the docstring has no field {who}"),
        (["cli_shop:classify", "a", "--stream", "--json"], "Choose one"),
        (["cli_shop:guide", "a", "--json"], "is a chat"), (["cli_shop:typed", "-a", "picture=nonsense"], "picture: "),
        (["cli_shop:typed", "-a", "photo=missing.png"], "photo: "),
        (["cli_shop:typed", "-a", "count=1.5"], "count: "), (["cli_shop:typed", "-a", "kind=c"], "kind: "),
        (["cli_shop:typed", "-a", 'point:={"y": 1}'], "point['x']: field required"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_end_with_2(arguments, says):
    done = run(*arguments, code=2)
    assert says in done.stderr
    assert "Usage:" in done.stderr


def test_input_that_does_not_fit(tmp_path):
    for text, says in (("[1]", "a JSON object"), ('{"nope": 1}', "no parameter 'nope'"), ("{", "no JSON")):
        assert says in run("cli_shop:classify", "--input", "-", text=text, code=2).stderr


# --- arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("text=3", "3"), ("text=null", "null"), ("text=a=b", "a=b"), ("text=@@home", "@home"), ("text=", ""),
        ("count=12", "12"), ("ratio=1e3", "1000.0"), ("flag=true", "True"), ("flag=yes", "True"),
        ("day=2026-01-02", "2026-01-02"), ("day=null", "None"), ("price=0.10", "0.10"), ("colour=red", "red"),
        ("kind=b", "b"), ('point={"x": 1}', '{"x": 1, "y": 0}'), ("rows=[1, 2]", "[1, 2]"), ("rows:=[3]", "[3]"),
        ('table={"a": null}', '{"a": null}'), ("either=5", "5"), ("anything=5", "5"),
        ('anything:={"a": 1}', '{"a": 1}'), ("maybe=null", "None"), ("maybe=text", "text"),
    ],
)  # fmt: skip
def test_a_value_is_read_by_its_type(given, expected):
    name = given.partition("=")[0].removesuffix(":")
    shown = arguments_sent("cli_shop:typed", "-a", given)[name]
    if expected.startswith(("[", "{")):
        assert json.loads(shown.replace("'", '"').replace("None", "null")) == json.loads(expected) or expected in shown
    else:
        assert shown in {expected, expected.lower(), "null" if expected == "None" else expected}


def test_values_come_from_files_and_from_the_standard_input(tmp_path):
    (tmp_path / "letter.txt").write_text("from a file", encoding="utf-8")
    (tmp_path / "all.json").write_text('{"review": "from json", "tags": ["a"], "strict": true}', encoding="utf-8")
    assert arguments_sent("cli_shop:classify", "@letter.txt")["review"] == "from a file"
    assert arguments_sent("cli_shop:classify", "-a", "review=@letter.txt")["review"] == "from a file"
    assert arguments_sent("cli_shop:classify", "-", text="from stdin")["review"] == "from stdin"
    sent = arguments_sent("cli_shop:classify", "--input", "all.json", "-a", "review=this counts")
    assert sent["review"] == "this counts"
    assert "a" in sent["tags"]
    assert arguments_sent("cli_shop:classify", "--input", "-", text='{"review": "r"}')["review"] == "r"


def test_others_are_taken_where_the_function_takes_them():
    sent = arguments_sent("cli_shop:no_types", "x", "-a", "more=5")
    assert sent["text"] == "x"
    assert "5" in str(sent)


def test_pictures(tmp_path):
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    for given in ("picture=https://x.example/a.png", "photo=p.png", 'pictures:=["https://x.example/b.png"]'):
        content = json.loads(preview("cli_shop:typed", "-a", given, "--json").stdout)["messages"][-1]["content"]
        assert [part["type"] for part in content if part["type"] != "text"] == ["image_url"], given


# --- preview ----------------------------------------------------------------------------------------------


def test_a_preview_shows_the_request_and_sends_nothing():
    shown = preview("cli_shop:classify", "Nice.", "-t", "who=customer").stdout
    assert "model     scripted" in shown
    assert "Say what a customer thinks." in shown
    assert "system  " in shown
    assert "user  " in shown
    assert "review: Nice." in shown
    assert "price     unknown" in shown
    assert sys.modules["cli_shop"].classify._pipeline.options.llm_interface.calls == []


def test_a_preview_as_curl_can_be_read_by_a_shell():
    words = shlex.split(preview("cli_shop:classify", 'It\'s "nice" $HOME `x`', "--curl").stdout.replace("\\\n", " "))
    assert words[:2] == ["curl", "$BASE_URL/chat/completions"]  # a double has no address
    body = json.loads(words[words.index("-d") + 1])
    assert 'It\'s "nice" $HOME `x`' in body["messages"][-1]["content"]
    assert "Authorization: Bearer $OPENAI_API_KEY" in words


def test_a_preview_as_json():
    data = json.loads(preview("cli_shop:classify", "Nice.", "--json").stdout)
    assert data["body"]["model"] == "scripted"
    assert data["input_tokens"] > 0
    assert data["cost"] is None
    preview("cli_shop:classify", "x", "--json", "--curl", code=2)
