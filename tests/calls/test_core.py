"""`CoreCall`: definition, preparation, execution, and its one error."""

import asyncio
import json
import pickle
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from SimpleLLMFunc import RunAborted, TemplateError, use_llm, watching
from SimpleLLMFunc.calls.call_data import (
    CallIds,
    CallInfo,
    CallOutputChunk,
    CallOutputType,
    CallVars,
    DataBase,
    ExecutorBackground,
    ExecutorHistory,
    LanguageType,
)
from SimpleLLMFunc.calls.core import CoreCall, as_call_error, call_errors
from SimpleLLMFunc.errors import (
    BudgetExceeded,
    CallError,
    ConfigError,
    DeadlineExceeded,
    OutputTruncated,
    RateLimited,
    ResponseParseError,
)
from SimpleLLMFunc.logger import get_current_context, log_context
from SimpleLLMFunc.testing import ScriptedLLM

TEXT, DATA = CallOutputType.TEXT, CallOutputType.DATA


class CityInput(DataBase):
    city: str
    days: int = 1


class Forecast(DataBase):
    text: str


class Say(CoreCall, input_model=CityInput, output_model=Forecast):
    """Says what it is given.

    More words.
    """

    city: str = "杭州"
    streaming: bool = True
    params: dict[str, Any] = Field(default={})

    async def _exec(self, input_data: dict[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:
        messages = [{"role": "user", "content": input_data["city"]}]
        async for piece in self._llm(messages, self.streaming, **self.params):
            yield CallOutputChunk(TEXT, piece)


def call_of(work, model=CityInput) -> type[CoreCall]:
    """A Call whose `_exec` is `work(self, input_data)`, an async generator."""
    return type("Made", (CoreCall,), {"_exec": work, "__module__": __name__}, input_model=model)


def executor(llm=None, **task: Any) -> SimpleNamespace:
    return SimpleNamespace(llm=llm, task=SimpleNamespace(**task), step=None)


async def run(call: CoreCall, on: Any, given: Any = None) -> list[CallOutputChunk]:
    return [chunk async for chunk in call.exec(on, call.input if given is None else given)]


def texts(chunks: list[CallOutputChunk]) -> list[Any]:
    return [chunk.content for chunk in chunks]


# --- definition ----------------------------------------------------------------------------------------------


def test_a_call_without_models_is_no_call():
    with pytest.raises(TypeError, match=r"Bare.*input_model=…, output_model=…"):

        class Bare(CoreCall):
            pass


def test_a_subclass_of_a_call_inherits_the_models_or_replaces_one():
    class Louder(Say):
        pass

    class Other(Say, output_model=CityInput):
        pass

    assert (Louder.input_model, Louder.output_model) == (CityInput, Forecast)
    assert (Other.input_model, Other.output_model) == (CityInput, CityInput)
    assert Say.output_model is Forecast


@pytest.mark.parametrize("model", [dict, "CityInput", CityInput(city="x"), CoreCall])
def test_a_model_is_a_subclass_of_database(model):
    with pytest.raises(TypeError, match="input_model must be a subclass of DataBase"):
        type("Wrong", (CoreCall,), {}, input_model=model)


def test_name_description_and_node_are_no_parameters():
    call = Say(name="n", description="d", node=object())
    assert call.model_dump() == {
        "to_user": False, "enable_filling": False, "city": "杭州", "streaming": True, "params": {},
    }  # fmt: skip
    assert {"name", "description", "node"}.isdisjoint(Say.model_json_schema()["properties"])


def test_info_is_by_default_that_of_the_class():
    assert Say.info() == CallInfo("Say", "Says what it is given.")
    assert Say.info(LanguageType.ENGLISH) == Say.info()


# --- instance ------------------------------------------------------------------------------------------------


async def test_names_come_from_the_step_then_the_node_then_the_class():
    on = executor()
    node = SimpleNamespace(name="node", description="of the node", known_params=None)
    call = await Say.instance(on, node)
    assert (call.name, call.description, call.node) == ("node", "of the node", node)
    on.step = SimpleNamespace(name="step", description="")
    call = await Say.instance(on, node)
    assert (call.name, call.description) == ("step", "of the node")
    call = await Say.instance(SimpleNamespace())
    assert (call.name, call.description) == ("Say", "Says what it is given.")
    assert (await Say.instance(on, node, name="given")).name == "given"
    by_name = await Say.instance(SimpleNamespace(), node=node)
    assert (by_name.name, by_name.node) == ("node", node)


async def test_the_input_is_by_default_made_of_the_parameters_it_shares():
    assert (await Say.instance(executor(), city="Oslo")).input == {"city": "Oslo"}
    assert Say().input == {}


@pytest.mark.parametrize(("given", "said"), [({"town": 1}, "town"), ({"city": [1]}, "city")])
async def test_bad_parameters_are_a_call_error_that_names_them(given, said):
    with pytest.raises(CallError, match=f"Say: {said}") as caught:
        await Say.instance(executor(), **given)
    assert caught.value.data["violations"][0][0] == said
    assert isinstance(caught.value.__cause__, ValidationError)


async def test_what_goes_wrong_in_init_is_a_call_error():
    class Bad(Say):
        async def _init(self, call_vars):
            raise TemplateError("a template with {{ what }}", field="what")

    with pytest.raises(CallError, match="Bad: a template") as caught:
        await Bad.instance(executor())
    assert caught.value.data == {"error": "TemplateError", "field": "what"}


async def test_call_vars_are_what_the_task_says():
    seen = []

    class Look(Say):
        async def _init(self, call_vars):
            seen.append(call_vars)
            return Stay(city=call_vars.question)

    ids, background = CallIds(user_sub="u"), ExecutorBackground(facts=["f"])
    history = [ExecutorHistory("a", "", "1"), ExecutorHistory("b", "", {"k": 2})]
    on = executor(
        question="天气?", language="en", background=background, ids=ids, history=history,
        runtime=SimpleNamespace(reasoning="thought"),
    )  # fmt: skip
    call = await Look.instance(on)
    assert call.input == {"in": "天气?", "days": 1}
    assert seen == [
        CallVars(
            thinking="thought", question="天气?", step_data={"a": history[0], "b": history[1]}, step_order=["a", "b"],
            background=background, ids=ids, language=LanguageType.ENGLISH,
        )
    ]  # fmt: skip
    assert call._extract_history_variables("b/k") == 2
    assert call._extract_history_variables("a/text") == "1"
    assert call._extract_history_variables("b/k", {"b": ExecutorHistory("b", "", {"k": 3})}) == 3
    assert call._extract_history_variables("no/where") is None
    assert Say()._extract_history_variables("b/k") is None


async def test_an_executor_needs_nothing_but_what_is_used():
    call = await Say.instance(SimpleNamespace())
    assert call._assemble_call_vars(None).question == ""
    by_name = SimpleNamespace(task=SimpleNamespace(history={"x": ExecutorHistory("x")}, runtime=None, language=None))
    assert call._assemble_call_vars(by_name).step_order == ["x"]


# --- exec ----------------------------------------------------------------------------------------------------


class Stay(DataBase):
    city: str = Field(alias="in")
    days: int = 1


@pytest.mark.parametrize("given", [{"in": "Rome", "days": "2"}, Stay.model_validate({"in": "Rome", "days": 2})])
async def test_exec_takes_a_dict_or_the_input_model_and_hands_on_a_valid_dict(given):
    async def work(self, input_data):
        yield CallOutputChunk(DATA, input_data)
        yield CallOutputChunk(TEXT, self._extract_history_variables("before/text"))

    before = executor(history=[ExecutorHistory("before", "", "x")])
    prepared = await call_of(work, Stay).instance(before)
    for call, on in ((prepared, executor()), (call_of(work, Stay)(), before)):
        assert texts(await run(call, on, given)) == [{"in": "Rome", "days": 2}, "x"]


async def test_input_that_does_not_fit_is_a_call_error():
    with pytest.raises(CallError, match=r"city: .*; days: .*'many'") as caught:
        await run(Say(name="s"), executor(), {"days": "many"})
    assert [violation[0] for violation in caught.value.data["violations"]] == ["city", "days"]


async def test_after_exec_comes_once_after_success():
    seen = []

    class Note(Say):
        async def _exec(self, input_data):
            yield CallOutputChunk(TEXT, "a")
            if input_data["city"] == "fail":
                raise CallError("no", {"k": 1})

        async def _after_exec(self, input_data):
            seen.append(input_data)

    call = await Note.instance(executor())
    stream = call.exec(executor(), {"city": "x"})
    await anext(stream)
    assert seen == []
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert seen == [{"city": "x", "days": 1}]
    with pytest.raises(CallError, match=r"^no$") as caught:
        await run(call, executor(), {"city": "fail"})
    early = call.exec(executor(), {"city": "x"})
    await anext(early)
    await early.aclose()
    assert len(seen) == 1
    assert caught.value.data == {"k": 1}


@pytest.mark.parametrize("error", [RunAborted("stop"), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_what_ends_a_run_from_outside_passes(error):
    async def work(self, input_data):
        raise error
        yield

    with pytest.raises(type(error)):
        await run(call_of(work)(name="m"), executor(), {"city": "x"})


async def test_a_call_without_work_says_what_to_write():
    class Idle(Say):
        _exec = CoreCall._exec

    with pytest.raises(CallError, match="Idle has no `async def _exec"):
        await run(Idle(), executor(), {"city": "x"})

    class Returns(Say):
        async def _exec(self, input_data):
            return ["text"]

    with pytest.raises(CallError, match=r"the `_exec` of Returns yields no chunks.*Write `yield`"):
        await run(Returns(), executor(), {"city": "x"})


# --- asking for text -----------------------------------------------------------------------------------------


async def test_text_comes_as_it_arrives_and_parameters_go_out():
    llm = ScriptedLLM(["It ", "", "rains", "."])
    call = await Say.instance(executor(llm), params={"temperature": 0.7, "max_tokens": 9})
    stream = call.exec(executor(llm), call.input)
    assert (await anext(stream)).content == "It "
    assert texts([chunk async for chunk in stream]) == ["rains", "."]
    assert llm.calls[0].params == {"temperature": 0.7, "max_tokens": 9}
    assert llm.calls[0].stream is True
    assert llm.calls[0].tools is None
    assert llm.requests == [[{"role": "user", "content": "杭州"}]]


async def test_text_comes_whole_when_not_streaming():
    llm = ScriptedLLM("It rains.")
    on = executor(llm)
    assert texts(await run(await Say.instance(on, streaming=False), on)) == ["It rains."]
    assert llm.calls[0].stream is False


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_empty_answer_is_asked_for_again(streaming):
    llm = ScriptedLLM("", " \n", "now", chunk_size=99)
    on = executor(llm)
    chunks = texts(await run(await Say.instance(on, streaming=streaming), on))
    assert "".join(chunks).strip() == "now"
    assert "" not in chunks
    with pytest.raises(CallError, match=r"^\w+: LLM response content is empty after 3 attempts") as caught:
        await run(await Say.instance(executor(ScriptedLLM("", repeat=True))), executor(ScriptedLLM("", repeat=True)))
    assert caught.value.data["error"] == "EmptyResponseError"


async def test_without_a_model_the_one_in_use_is_asked():
    with use_llm(ScriptedLLM("used")):
        on = SimpleNamespace()
        assert "".join(texts(await run(await Say.instance(on), on, {"city": "x"}))) == "used"
    with pytest.raises(CallError) as caught:
        await run(Say(), executor(), {"city": "x"})
    assert isinstance(caught.value.__cause__, ConfigError)


async def test_a_run_is_named_in_the_log_and_shown_to_who_watches():
    seen, inside = [], []

    def reply(asked):
        context = get_current_context()
        inside.append((context.function_name, context.trace_id, context.parent_trace_id))
        return "hello"

    llm = ScriptedLLM(reply)
    on = executor(llm)
    call = await Say.instance(on, name="步骤")
    with watching(lambda trace_id, event: seen.append((trace_id, event))), log_context("outer_1", "outer"):
        await run(call, on)
    ((name, trace_id, parent),) = inside
    assert (name, parent) == ("步骤", "outer_1")
    assert trace_id.startswith("步骤_")
    assert {each for each, _ in seen} == {trace_id} == {llm.calls[0].trace_id}
    assert seen[0][1].run.arguments == call.input == {"city": "杭州"}
    assert [kind for _, event in seen if (kind := type(event).__name__) != "ReplyDelta"] == [
        "RunStarted", "TurnStarted", "ReplyReceived", "AnswerReviewed", "MessageAppended", "RunFinished",
    ]  # fmt: skip


# --- the one error ---

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
