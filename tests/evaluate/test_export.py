"""export_examples: recorded runs as cases, as examples, as lessons."""

import datetime as dt
import json

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import ConfigError, UsageError, llm_function, watching
from SimpleLLMFunc.evaluate import evaluate, export_examples
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import NATIVE


class Bill(BaseModel):
    total: int
    day: dt.date


def biller(*replies, **options):
    @llm_function(ScriptedLLM(*replies, repeat=True, profile=NATIVE), **options)
    def bill(text: str, copies: int = 1) -> Bill:
        """Read the bill."""

    return bill


def said(total):
    return json.dumps({"total": total, "day": "2024-05-31"})


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def store(tmp_path):
    store = TraceStore(tmp_path / "runs.sqlite")
    yield store
    store.close()


def recorded(store, bill, *texts):
    with watching(store):
        for text in texts:
            bill(text)


def test_as_cases_that_evaluate_takes(store, tmp_path):
    bill = biller(said(1), said(2))
    recorded(store, bill, "one 苹果", "two")
    path = tmp_path / "cases.jsonl"
    assert export_examples(store, bill, path).written == 2
    newest, oldest = lines(path)
    assert newest["args"] == {"text": "two", "copies": 1}
    assert oldest["expected"] == {"total": 1, "day": "2024-05-31"}
    assert oldest["id"].startswith("bill_")
    assert "苹果" in path.read_text(encoding="utf-8")
    report = evaluate(biller(said(2)), path)
    assert report.scores["exact"].mean == 0.5


def test_as_examples_that_the_decorator_takes(store, tmp_path):
    bill = biller(said(1))
    recorded(store, bill, "one")
    path = tmp_path / "shots.jsonl"
    store.flush()
    export_examples(store.reader, bill, path, form="examples")
    assert lines(path) == [{"args": {"text": "one", "copies": 1}, "value": {"total": 1, "day": "2024-05-31"}}]
    assert "one" in biller(said(1), examples=path).preview("x").messages[1]["content"]


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_as_lessons_that_hold_what_is_asked_and_answered(store, tmp_path, mode):
    bill = biller(said(1), output_mode=mode, examples=[("zero", {"total": 0, "day": "2024-01-01"})])
    recorded(store, bill, "one")
    path = tmp_path / "lessons.jsonl"
    store.flush()
    export_examples(store.path, bill, path, form="fine-tuning")
    [record] = lines(path)
    messages = record["messages"]
    assert [message["role"] for message in messages[:3]] == ["system", "user", "assistant"]
    assert messages[:2] == bill.with_options(examples=None).preview("one").messages
    answer = messages[2]["tool_calls"][0]["function"]["arguments"] if mode == "tool" else messages[2]["content"]
    assert json.loads(answer) == {"total": 1, "day": "2024-05-31"}


def test_what_is_skipped_is_counted(store, tmp_path):
    bill = biller(said(1), said(2), said(3), "rubbish", max_reasks=0)
    recorded(store, bill, "one", "one", "two")
    with pytest.raises(ValueError):
        recorded(store, bill, "three")  # an error is no example
    path = tmp_path / "cases.jsonl"
    exported = export_examples(store, bill, path)
    assert (exported.written, exported.skipped) == (2, {"the same arguments again": 1})
    assert {record["args"]["text"]: record["expected"]["total"] for record in lines(path)} == {"two": 3, "one": 2}
    assert export_examples(store, bill, path, limit=1).written == 1
    exported = export_examples(store, bill, path, where=lambda run: run.arguments["text"] == "two")
    assert (exported.written, exported.skipped) == (1, {"not wanted": 2})
    assert export_examples(store, bill, path, version="0" * 16).written == 0
    assert export_examples(store, bill, path, version=bill._pipeline.metadata.version).written == 2
    other = llm_function(ScriptedLLM())(_bill_of_numbers)
    exported = export_examples(store, other, path)
    assert (exported.written, exported.skipped) == (0, {"does not fit the function": 3})


def _bill_of_numbers(text: int) -> Bill:
    """Another signature."""


_bill_of_numbers.__name__ = "bill"


def test_without_content_there_is_nothing_to_write(tmp_path):
    store = TraceStore(tmp_path / "runs.sqlite", content=False)
    bill = biller(said(1))
    recorded(store, bill, "one")
    exported = export_examples(store, bill, tmp_path / "cases.jsonl")
    assert (exported.written, exported.skipped) == (0, {"recorded without content": 1})
    store.close()


def test_a_text_that_was_cut_is_no_example(tmp_path):
    store = TraceStore(tmp_path / "runs.sqlite", max_text=1000)
    bill = biller(said(1))
    recorded(store, bill, "short", "long " * 1000)
    exported = export_examples(store, bill, tmp_path / "cases.jsonl")
    assert exported.written == 1
    assert sum(exported.skipped.values()) == 1
    store.close()


def test_what_cannot_be(store, tmp_path):
    with pytest.raises(UsageError, match="form"):
        export_examples(store, biller(), tmp_path / "x.jsonl", form="csv")
    with pytest.raises(UsageError, match="llm_function"):
        export_examples(store, len, tmp_path / "x.jsonl")
    with pytest.raises(ConfigError):
        export_examples(tmp_path / "none.sqlite", biller(), tmp_path / "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()
