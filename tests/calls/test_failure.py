"""What goes wrong inside a Call, as one error."""

from __future__ import annotations

import json
import pickle

import pytest
from pydantic import BaseModel, ValidationError

from SimpleLLMFunc.calls.failure import as_call_error, call_errors
from SimpleLLMFunc.errors import (
    BudgetExceeded,
    CallError,
    DeadlineExceeded,
    OutputTruncated,
    RateLimited,
    ResponseParseError,
)

SECRET = "sk-abcdefghijklmnopqrstuvwxyz123456"


class Form(BaseModel):
    age: int


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (RateLimited("m", retry_after=2.5), {"status": 429, "retry_after": 2.5, "kind": "rate"}),
        (DeadlineExceeded(3, partial="so far"), {"seconds": 3, "partial": "so far"}),
        (BudgetExceeded("usd", limit=0.5, spent=0.4), {"unit": "usd", "limit": 0.5, "spent": 0.4}),
        (BudgetExceeded("requests", limit=0, spent=0), {"unit": "requests", "limit": 0, "spent": 0}),
        (OutputTruncated(partial='{"a'), {"partial": '{"a'}),
        (ResponseParseError("x", int, [("a[0]", "int", "'x'")]), {"violations": [["a[0]", "int", "'x'"]]}),
    ],
)
def test_the_facts_of_an_error_are_its_data(error, facts):
    failure = as_call_error(error, "step: ")
    assert failure.data == {"error": type(error).__name__, **facts}
    assert str(failure) == f"step: {error}"
    assert failure.__cause__ is error
    assert json.loads(json.dumps(failure.data)) == failure.data


def test_the_run_of_the_error_is_the_run_of_the_failure():
    error = DeadlineExceeded(1).with_run(trace_id="t_1", func_name="llm", usage="u", attempts=["a"])
    failure = as_call_error(error)
    assert (failure.trace_id, failure.func_name, failure.usage, failure.attempts) == ("t_1", "llm", "u", ["a"])


def test_a_call_error_is_itself():
    error = CallError("m", {"k": 1})
    assert as_call_error(error, "before: ") is error
    with pytest.raises(CallError) as caught, call_errors("before"):
        raise error
    assert caught.value is error
    assert str(error) == "m"


def test_data_that_does_not_fit_is_told_by_field():
    with pytest.raises(ValidationError) as invalid:
        Form(age="x" * 500)
    failure = as_call_error(invalid.value)
    ((path, wanted, got),) = failure.data["violations"]
    assert path == "age"
    assert "integer" in wanted
    assert len(got) == 200
    assert "errors.pydantic.dev" not in str(failure)
    with pytest.raises(ValidationError) as missing:
        Form()
    assert "age: Field required, got nothing" in str(as_call_error(missing.value))


@pytest.mark.parametrize("error", [ValueError(SECRET), OutputTruncated(partial=SECRET), OSError(1, SECRET)])
def test_no_secret_leaves(error):
    failure = as_call_error(error)
    assert SECRET not in f"{failure} {failure.data}"
    assert isinstance(error, OutputTruncated) or SECRET not in repr(failure.__cause__)


def test_an_error_without_words_is_its_name():
    assert str(as_call_error(ValueError(), "s: ")) == "s: ValueError"


def test_a_failure_can_be_pickled():
    failure = pickle.loads(pickle.dumps(as_call_error(BudgetExceeded("usd", limit=1, spent=1), "s: ")))
    assert (failure.message, failure.data["unit"]) == (str(failure), "usd")
