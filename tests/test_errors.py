"""The error tree: facts, texts, pickling, copies."""

from __future__ import annotations

import base64
import copy
import inspect
import json
import pickle
from typing import Annotated, Optional

import pytest

from SimpleLLMFunc import errors
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.logger.redact import redact
from SimpleLLMFunc.type import Usage

EXAMPLES = [
    errors.UsageError("wrong"), errors.UsageError(), errors.ConfigError("no model"), errors.SignatureError("no type"),
    errors.ToolDefinitionError("search", "no annotation"), errors.TemplateError("no field", field="x"),
    errors.SchemaError("endless"),
    errors.ProviderError("down", model="m", status=500, request_id="r1", tries=3),
    errors.AuthenticationError("m", status=401, body="no"), errors.BadRequest("m", status=400, body="b" * 1000),
    errors.ContextTooLong("m", limit=8, status=400), errors.RateLimited("m", retry_after=2.5),
    errors.RateLimited("m", kind="quota"), errors.ServerUnavailable("m", status=503, tries=3),
    errors.ConnectionFailed("m", reason="refused"),
    errors.BadReply("m", problem="HTML", head="<html>" * 200, partial="x"),
    errors.StreamInterrupted("m", partial="abc", reason="reset"), errors.RunError("no answer"),
    errors.DeadlineExceeded(3.0, partial="abc", doing="waiting"),
    errors.BudgetExceeded("tokens", limit=10, spent=8, needed=5),
    errors.RunAborted("user left", partial="abc"), errors.EmptyResponseError("f", asked=3),
    errors.OutputTruncated(partial="abc", max_tokens=5), errors.ContentBlocked("refusal: no", partial="abc"),
    errors.ToolCallLimitExceeded(5), errors.ToolFailed("search", "no luck"),
    errors.RunPaused("k", [{"call_id": "c", "tool": "pay"}]), errors.OutcomeUnknown("k", "c", "pay", {"amount": 3}),
    errors.ResponseParseError("text", int, [("a", "int", "'x'")] * 7), errors.CheckpointError("damaged", row=3),
    errors.CallError("failed", {"a": 1}),
]  # fmt: skip


def test_the_examples_are_the_whole_tree():
    classes = {c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.SimpleLLMFuncError)}
    assert classes - {type(e) for e in EXAMPLES} == {errors.SimpleLLMFuncError}
    assert {c.__name__ for c in classes} <= set(errors.__all__)
    for c in classes:
        assert c.__name__ in errors.__doc__
        assert c.__module__ == "SimpleLLMFunc.errors"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda e: type(e).__name__)
def test_an_error_survives_pickling_and_copying(error):
    error.with_run(trace_id="f_1", func_name="f", usage=Usage(1, 2), attempts=[1])
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.trace_id == "f_1"
        assert other.usage == Usage(1, 2)
        assert set(vars(other)) == set(vars(error))
    again = type(error)(*json.loads(json.dumps(error.args)))  # as Celery's JSON back end does
    assert (type(again), str(again)) == (type(error), str(error))
    for name, fact in vars(error).items():
        assert hasattr(again, name), name
        if isinstance(fact, (int, float, type(None))) or (isinstance(fact, str) and len(fact) < 100):
            assert getattr(again, name) == fact, name


@pytest.mark.parametrize(
    ("error", "parent"),
    [
        (errors.ConfigError("x"), ValueError), (errors.SignatureError("x"), TypeError),
        (errors.EmptyResponseError(), ValueError), (errors.ResponseParseError("", int), ValueError),
        (errors.RateLimited("m"), errors.ProviderError), (errors.RunAborted(), errors.RunError),
        (errors.BudgetExceeded("usd", limit=1, spent=1), errors.RunError),
        (errors.TemplateError("x"), errors.UsageError),
    ],
)  # fmt: skip
def test_what_catches_it(error, parent):
    assert isinstance(error, parent)


def test_texts_name_facts_and_the_next_move():
    assert "in 2.5 s" in str(errors.RateLimited("m", retry_after=2.5))
    assert "billing" in str(errors.RateLimited("m", kind="quota"))
    assert "3 tries" in str(errors.ServerUnavailable("m", tries=3))
    assert "[request r1]" in str(errors.ProviderError("x", request_id="r1"))
    assert "and 2 more" in str(errors.ResponseParseError("t", int, [("a", "int", "'x'")] * 7))
    for wanted in (list[int], Annotated[list[int], "short"]):
        assert "does not fit list[int]: it" in str(errors.ResponseParseError("", wanted))
    assert "does not fit Optional[int]" in str(errors.ResponseParseError("", Optional[int]))
    assert "begins" not in str(errors.ResponseParseError("", int))
    assert "max_tool_calls" in str(errors.ToolCallLimitExceeded(5))
    assert "row 3" in str(errors.CheckpointError("damaged", row=3))
    assert str(errors.CallError("failed")) == "failed"


def test_a_class_shows_the_facts_it_is_built_from():
    assert list(inspect.signature(errors.CheckpointError).parameters) == ["problem", "row"]


def test_foreign_bodies_are_cut():
    assert len(errors.BadRequest("m", body="b" * 1000).body) == 500
    assert len(errors.BadReply("m", problem="p", head="h" * 1000).head) == 500
    assert len(str(errors.ResponseParseError("t" * 10_000, int))) < 500


def test_the_deadline_keeps_what_was_allowed():
    error = errors.DeadlineExceeded(3.0).with_run(seconds=99.0, func_name="f")
    assert error.seconds == 3.0
    assert error.func_name == "f"


def test_a_type_that_cannot_be_pickled_does_not_hold_the_error_back():
    class Local:
        pass

    error = pickle.loads(pickle.dumps(errors.ResponseParseError("t", Local)))
    assert "Local" in error.expected_type


def test_a_text_is_not_cut_within_a_secret():
    secret = "Kq3" + "x7Z" * 10
    remember_secret(secret)
    assert secret not in json.dumps(errors.BadRequest("m", body=f"your key is {secret}").args)
    text = f"your key is {secret}, or {base64.b64encode(secret.encode()).decode()}, and so on" * 3
    for limit in range(2, len(text) + 2):
        shown = errors.cut(text, limit)
        assert len(shown) <= limit
        assert text.startswith(shown.removesuffix("…"))
        masked = redact(shown)
        assert not any(secret[at : at + 8] in masked for at in range(len(secret) - 8)), limit
        assert "S3EzeDda" not in masked, limit
    for error in (
        errors.ResponseParseError(f"{'a' * 190} {secret}", int, [("", "int", errors.cut(f"{'b' * 50} {secret}", 60))]),
        errors.ContentBlocked(f"{'a' * 490} {secret}"),
    ):
        assert secret[:8] not in str(error)
