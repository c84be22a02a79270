"""The facts of a run: a closed union of frozen classes, all of them on the page that tells of them."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from pathlib import Path
from typing import get_args

import SimpleLLMFunc
from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.events import (
    AnswerReviewed,
    Attempt,
    MessageAppended,
    ReActEvent,
    ReplyDelta,
    ReplyReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TryFailed,
    TurnStarted,
    to_dict,
)
from SimpleLLMFunc.errors import RateLimited
from SimpleLLMFunc.type import ChatCompletion, ToolCall, ToolCallDelta, Usage

PACKAGE = Path(SimpleLLMFunc.__file__).parent
HELLO = {"role": "user", "content": "hello"}
CALL = ToolCall.from_dict({"id": "c1", "type": "function", "function": {"name": "stock", "arguments": "{}"}})
REPLY = ChatCompletion.from_dict({"choices": [{"message": {"role": "assistant", "content": "hi"}}]})
USAGE = Usage(3, 1)
NAMED = {"turn": 1, "id": "c1", "name": "stock", "arguments": "{}"}
COUNTED = dataclasses.asdict(USAGE)
TOLD = [
    (RunStarted("t", [HELLO]), {"trace_id": "t", "messages": [HELLO]}),
    (TurnStarted(2), {"turn": 2}),
    (TryFailed(1, RateLimited("m", retry_after=2.0), 1, 2.0, "m", "n"),
     {"turn": 1, "error": "RateLimited", "tries": 1, "pause": 2.0, "model": "m", "next_model": "n"}),
    (ReplyDelta(1, "h", [ToolCallDelta(0, "c1", "stock", "{")], raw=object()),
     {"turn": 1, "text": "h", "thinking": "",
      "tool_calls": [{"index": 0, "id": "c1", "name": "stock", "arguments": "{", "type": None, "extra": {}}]}),
    (ReplyReceived(1, REPLY, USAGE, 0.5, raw=object()), {"turn": 1, "text": "hi", "usage": COUNTED, "seconds": 0.5}),
    (AnswerReviewed(1, Attempt("x", [("", "int", "'x'")], [], 0.5, USAGE), accepted=False),
     {"turn": 1, "accepted": False, "text": "x", "violations": [["", "int", "'x'"]], "repairs": [], "seconds": 0.5,
      "usage": COUNTED, "thinking": ""}),
    (ToolCallStarted(1, CALL), NAMED),
    (ToolCallProgress(1, CALL, 0.5), {**NAMED, "progress": 0.5}),
    (ToolCallFinished(1, CALL, "7", failed=True, seconds=0.1, error_type="OSError"),
     {**NAMED, "content": "7", "failed": True, "seconds": 0.1, "error_type": "OSError"}),
    (MessageAppended(1, HELLO), {"turn": 1, "message": HELLO}),
    (RunFinished(REPLY, [HELLO], USAGE, 1, value=object(), downgrades=[("output mode: tool", "no")]),
     {"text": "hi", "messages": [HELLO], "usage": COUNTED, "turns": 1, "downgrades": [["output mode: tool", "no"]]}),
    (RunFailed("error", ValueError("no")), {"how": "error", "error": "ValueError", "message": "no"}),
]  # fmt: skip

PAGE = Path(__file__).parents[2] / "docs/how-to/react-events.md"
KINDS = get_args(ReActEvent)


def test_the_union_holds_every_event_and_each_is_frozen():
    defined = {each for each in vars(events).values() if isinstance(each, type) and each.__module__ == events.__name__}
    assert set(KINDS) == defined - {events.Attempt}
    for kind in KINDS:
        assert dataclasses.fields(kind)
        assert kind.__dataclass_params__.frozen
        assert hasattr(kind, "__slots__")


def test_the_page_tells_of_every_event_and_its_fields():
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    told = {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows.items()}
    assert told == {kind.__name__: {field.name for field in dataclasses.fields(kind)} for kind in KINDS}


def test_every_event_is_told_as_data():
    assert [type(event) for event, _ in TOLD] == list(KINDS)
    for event, told in TOLD:
        data = json.loads(json.dumps(to_dict(event)))
        assert data.pop("type") == type(event).__name__
        if isinstance(event, TryFailed):
            assert "m" in data.pop("message")
        assert data == told


def _kinds_of(pattern: ast.pattern) -> set[str]:
    return {ast.unparse(node.cls).split(".")[-1] for node in ast.walk(pattern) if isinstance(node, ast.MatchClass)}


def test_a_match_over_events_names_all_of_them_or_does_not_build():
    names = {kind.__name__ for kind in KINDS}
    found = 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Match) or not any(_kinds_of(case.pattern) & names for case in node.cases):
                continue
            found += 1
            assert ast.unparse(node.cases[-1].body[0]).startswith("assert_never("), f"{path.name}:{node.lineno}"
    assert found > 5, "the search finds them"
