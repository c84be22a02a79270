"""`StepExecutor`: steps in order, each feeding the next."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import Field

from SimpleLLMFunc import UsageError
from SimpleLLMFunc.calls.call_data import CallOutputChunk, CallOutputType, DataBase, ExecutorHistory, LanguageType
from SimpleLLMFunc.calls.core import CoreCall
from SimpleLLMFunc.calls.executor import StepExecutor
from SimpleLLMFunc.calls.run_tool import RunTool
from SimpleLLMFunc.calls.task import Step, StepStatus, Task
from SimpleLLMFunc.errors import CallError
from SimpleLLMFunc.testing import ScriptedLLM

TEXT, DATA, ERROR = CallOutputType.TEXT, CallOutputType.DATA, CallOutputType.ERROR


class Ask(CoreCall, input_model=DataBase, output_model=DataBase):
    """Asks the model what it was told to."""

    prompt: str = "?"
    to_user: bool = True

    async def _exec(self, input_data: dict[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:
        async for piece in self._llm([{"role": "user", "content": self.prompt}], streaming=True):
            yield CallOutputChunk(TEXT, piece)


class Give(CoreCall, input_model=DataBase):
    """Gives out the chunks it was made with; what is raised stands among them."""

    chunks: list[Any] = Field(default=[])

    async def _exec(self, input_data):
        for chunk in self.chunks:
            if isinstance(chunk, BaseException):
                raise chunk
            yield chunk


class CityInput(DataBase):
    city: str
    days: int
    note: str | None = None


class Forecast(CoreCall, input_model=CityInput):
    """Forecasts."""

    enable_filling: bool = True
    city: str | None = None
    days: int | None = None

    async def _exec(self, input_data):
        yield CallOutputChunk(DATA, input_data)


def give(*chunks: Any, **params: Any) -> Step:
    return Step("give", "gives", Give, {"chunks": list(chunks), **params})


def text(content: str) -> CallOutputChunk:
    return CallOutputChunk(TEXT, content)


async def drained(executor: StepExecutor) -> list[tuple[CallOutputType, Any]]:
    await executor.init()
    return [(chunk.type, chunk.content) async for chunk in executor.run()]


# --- one step ------------------------------------------------------------------------------------------------


async def test_a_text_step():
    task, llm = Task("q"), ScriptedLLM("It rains.", chunk_size=4)
    executor = StepExecutor(task, Step("llm", "asks", Ask, {"prompt": "weather?"}), llm=llm)
    assert executor.status is None
    assert await drained(executor) == [(TEXT, "It r"), (TEXT, "ains"), (TEXT, ".")]
    assert executor.status is StepStatus.SUCCESS
    assert task.history == [ExecutorHistory("llm", "asks", "It rains.")]
    assert (task.runtime.step, task.runtime.status, task.runtime.error) == ("llm", StepStatus.SUCCESS, None)
    assert task.runtime.runs == 1
    assert llm.calls[0].text == "weather?"


@pytest.mark.parametrize(
    ("chunks", "shown", "output"),
    [
        ([text("a"), text("b")], [], "ab"),
        ([], [], ""),
        ([CallOutputChunk(DATA, {"n": 1})], [(DATA, {"n": 1})], {"n": 1}),
        ([CallOutputChunk(DATA, {"n": 1}), CallOutputChunk(DATA, {"n": 2, "m": 3})], [(DATA, {"n": 1}), (DATA, {"n": 2, "m": 3})],
         {"n": 2, "m": 3}),
        ([text("a"), CallOutputChunk(DATA, {"n": 1}), text("b")], [(DATA, {"n": 1})], {"text": "ab", "n": 1}),
        ([text("a"), CallOutputChunk(DATA, {"text": "own"})], [(DATA, {"text": "own"})], {"text": "own"}),
        ([CallOutputChunk(DATA, "bare")], [(DATA, "bare")], {"result": "bare"}),
    ],
)  # fmt: skip
async def test_text_that_is_not_for_the_user_only_enters_the_history(chunks, shown, output):
    task = Task("q")
    assert await drained(StepExecutor(task, give(*chunks))) == shown
    assert task.history[0].output_data == output


async def test_a_step_runs_once():
    executor = StepExecutor(Task("q"), give(text("a")))
    await drained(executor)
    with pytest.raises(UsageError, match="'give' has run"):
        [chunk async for chunk in executor.run()]


# --- several steps -------------------------------------------------------------------------------------------


class Repeat(CoreCall, input_model=DataBase):
    """Gives what stands at a path in the history."""

    path: str

    async def _exec(self, input_data):
        yield CallOutputChunk(
            DATA, {"found": self._extract_history_variables(self.path), "thinking": self._call_vars.thinking}
        )


async def test_a_step_reads_those_before_it_also_when_all_were_prepared_at_first():
    task = Task("q")
    executors = [
        StepExecutor(task, give(text("the text"))),
        StepExecutor(task, Step("one", call=Repeat, params={"path": "give/text"})),
        StepExecutor(task, Step("two", call=Repeat, params={"path": "one/found"})),
    ]
    for executor in executors:
        await executor.init()
    for executor in executors:
        async for _ in executor.run():
            pass
    assert [step.data for step in task.history] == [
        {"text": "the text"},
        {"found": "the text", "thinking": ""},
        {"found": "the text", "thinking": ""},
    ]


# --- errors --------------------------------------------------------------------------------------------------


async def fails(task: Task, step: Step, **options: Any) -> dict[str, Any]:
    """Run a step that fails, and the one after it; return the content of the one ERROR chunk."""
    executor = StepExecutor(task, step, **options)
    *before, (kind, content) = await drained(executor)
    assert kind is ERROR
    assert all(kind is not ERROR for kind, _ in before)
    assert executor.status is task.runtime.status is StepStatus.ERROR
    assert task.history == []
    assert task.runtime.error == {"step": step.name, **content}
    after = StepExecutor(task, Step("after", call=Give, params={"slip": "not even prepared"}))
    await after.init()
    assert after.status is StepStatus.ERROR
    assert after.call is None
    assert await drained(after) == []
    assert after.status is StepStatus.ERROR
    assert task.runtime.step == step.name
    task.reopen()
    (chunk,) = [chunk async for chunk in after.run()]  # it is prepared now
    assert chunk.content["message"].startswith("after: slip: ")
    return content


async def test_what_a_call_raises_is_the_one_error_chunk_and_ends_the_task(caplog):
    caplog.set_level(logging.WARNING, "SimpleLLMFunc")
    content = await fails(Task("q"), give(text("a"), CallError("no", {"k": 1}), to_user=True))
    assert content == {"message": "no", "data": {"k": 1}}
    assert "step 'after' is not run: the task ended with an error in step 'give'" in caplog.text
    assert (await fails(Task("q"), give(ValueError("no"))))["message"] == "give: ValueError: no"


@pytest.mark.parametrize(
    ("content", "shown"),
    [({"message": "m", "data": 1}, {"message": "m", "data": 1}), ("m", {"message": "m", "data": None}),
     ({"k": 1}, {"message": "the step failed", "data": None})],
)  # fmt: skip
async def test_an_error_chunk_of_a_call_is_a_failure(content, shown):
    assert await fails(Task("q"), give(CallOutputChunk(ERROR, content), text("not reached"))) == shown


async def test_what_goes_wrong_while_preparing_is_the_error_chunk():
    content = await fails(Task("q"), Step("s", call=Ask, params={"promt": "slip"}))
    assert content["message"].startswith("s: promt: ")
    assert content["data"]["violations"][0][0] == "promt"


async def test_a_deadline_of_the_step():
    async def never(asked):
        await asyncio.Event().wait()

    content = await fails(Task("q"), Step("s", call=Ask), llm=ScriptedLLM(never), deadline=0.05)
    assert content["data"]["error"] == "DeadlineExceeded"


async def test_a_reopened_step_is_prepared_again():
    class Late(Give):
        async def _init(self, call_vars):
            if not ready:
                raise CallError("not ready")
            return {}

    ready: list[int] = []
    task = Task("q")
    executor = StepExecutor(task, Step("s", call=Late, params={"chunks": [text("a")], "to_user": True}))
    assert await drained(executor) == [(ERROR, {"message": "not ready", "data": None})]
    ready.append(1)
    task.reopen()
    assert [chunk.content async for chunk in executor.run()] == ["a"]


# --- broken off ----------------------------------------------------------------------------------------------


async def test_closing_ends_everything_below_and_the_step_may_run_again():
    closed = asyncio.Event()

    class Watched(ScriptedLLM):
        async def chat_stream(self, messages, **options):
            try:
                async for chunk in super().chat_stream(messages, **options):
                    yield chunk
            finally:
                closed.set()

    task = Task("q")
    executor = StepExecutor(task, Step("s", call=Ask), llm=Watched("one two", "three"))
    await executor.init()
    stream = executor.run()
    await anext(stream)
    assert executor.status is task.runtime.status is StepStatus.RUNNING
    await stream.aclose()
    assert closed.is_set()
    assert executor.status is task.runtime.status is None
    assert task.history == []
    assert "".join([chunk.content async for chunk in executor.run()]) == "three"
    assert task.history[0].output_data == "three"


async def test_a_cancelled_run_may_run_again():
    begun = asyncio.Event()

    async def hang(asked):
        begun.set()
        await asyncio.Event().wait()

    task = Task("q")
    executor = StepExecutor(task, Step("s", call=Ask), llm=ScriptedLLM(hang, "again"))
    running = asyncio.create_task(drained(executor))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert task.runtime.status is None
    another = StepExecutor(task, Step("s", call=Ask), llm=executor.llm)
    assert "".join(content for _, content in await drained(another)) == "again"
    assert len(task.history) == 1


async def test_a_run_left_lying_does_not_disturb_the_next():
    task = Task("q")
    first = StepExecutor(task, give(text("a"), text("b"), to_user=True))
    stream = first.run()
    await anext(stream)
    second = StepExecutor(task, give(text("c"), text("d"), to_user=True))
    other = second.run()
    await anext(other)
    await stream.aclose()
    assert task.runtime.status is StepStatus.RUNNING
    assert [chunk.content async for chunk in other] == ["d"]
    assert [step.output_data for step in task.history] == ["cd"]


# --- filling -------------------------------------------------------------------------------------------------


def forecast(**params: Any) -> Step:
    return Step("forecast", "of the weather", Forecast, params)


async def test_a_slot_fills_the_input_first():
    task = Task("杭州三天的天气?", background={"facts": ["用户在杭州"]})
    task.runtime.reasoning = "the user wants rain"
    llm = ScriptedLLM('{"city": "杭州", "days": "3"}')
    executor = StepExecutor(task, forecast(), llm=llm)
    assert await drained(executor) == [(DATA, {"city": "杭州", "days": 3, "note": None})]
    assert executor.remaining_schema == {}
    for told in ("杭州三天的天气?", "forecast", "of the weather", "用户在杭州", "the user wants rain"):
        assert told in llm.calls[0].text


async def test_what_is_given_is_not_asked_for():
    llm = ScriptedLLM('{"days": 2}')
    chunks = await drained(StepExecutor(Task("q"), forecast(city="Rome"), llm=llm))
    assert chunks == [(DATA, {"city": "Rome", "days": 2, "note": None})]
    none = ScriptedLLM()
    await drained(StepExecutor(Task("q"), forecast(city="Rome", days=1), llm=none))
    assert none.calls == []


async def waiting() -> tuple[StepExecutor, Task]:
    """A step that knows its city and waits for its days."""
    task = Task("天气?")
    executor = StepExecutor(task, forecast(), llm=ScriptedLLM('{"city": "杭州"}', "{}"))
    assert await drained(executor) == []
    return executor, task


async def test_an_incomplete_slot_waits_and_nothing_runs():
    executor, task = await waiting()
    assert executor.status is task.runtime.status is StepStatus.PARAM
    assert executor.remaining_schema["required"] == ["/days"]
    assert list(executor.remaining_schema["properties"]) == ["/days"]
    assert task.history == []


@pytest.mark.parametrize("values", [{"days": 3}, {"/days": 3}, {"days": "3"}])
async def test_it_goes_on_when_the_values_are_given(values):
    executor, task = await waiting()
    asked = len(executor.llm.calls)
    content = {"city": "杭州", "days": 3, "note": None}
    assert [chunk.content async for chunk in executor.resume(values)] == [content]
    assert len(executor.llm.calls) == asked
    assert executor.status is StepStatus.SUCCESS
    assert task.runtime.waiting is None
    assert task.history[0].output_data == content


async def test_values_that_do_not_fit_leave_it_waiting():
    executor, task = await waiting()
    assert [chunk async for chunk in executor.resume({"days": "many"})] == []
    assert executor.status is StepStatus.PARAM
    assert executor.remaining_schema["required"] == ["/days"]
    assert [chunk async for chunk in executor.resume({})] == []
    assert executor.status is StepStatus.PARAM
    assert [chunk.content["days"] async for chunk in executor.resume({"days": 2, "city": "Rome"})] == [2]
    assert task.history[0].output_data["city"] == "Rome"


async def test_a_pointer_without_sense_changes_nothing():
    executor, task = await waiting()
    before = task.model_copy(deep=True)
    with pytest.raises(CallError):
        executor.resume({"/city/x/y": 3})
    assert task == before
    assert executor.status is StepStatus.PARAM


async def test_a_resumed_run_that_is_broken_off_still_waits():
    executor, task = await waiting()
    stream = executor.resume({"days": 1})
    await anext(stream)
    await stream.aclose()
    assert executor.status is task.runtime.status is StepStatus.PARAM
    assert [chunk.content["days"] async for chunk in executor.run()] == [1]


async def test_resume_in_another_executor_needs_init_first():
    with pytest.raises(UsageError, match="waits for no values; its status is not run"):
        StepExecutor(Task("q"), forecast()).resume({})
    _, task = await waiting()
    later = StepExecutor(task, forecast())
    with pytest.raises(UsageError, match=r"await executor\.init"):
        later.resume({"days": 1})
    await later.init()
    assert later.status is StepStatus.PARAM
    later.resume({"days": 1})
    assert [chunk.content["days"] async for chunk in later.run()] == [1]


async def test_other_steps_wait_too(caplog):
    caplog.set_level(logging.WARNING, "SimpleLLMFunc")
    executor, task = await waiting()
    other = StepExecutor(task, give(text("a")))
    assert await drained(other) == []
    assert other.status is StepStatus.PARAM
    assert other.remaining_schema == {}
    assert "step 'give' is not run: the task waits for values in step 'forecast'" in caplog.text
    assert [chunk.content["days"] async for chunk in executor.resume({"days": 1})] == [1]


@pytest.mark.parametrize(
    ("schema", "is_known"),
    [
        ({"type": ["string", "null"]}, True), ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"enum": ["a", None]}, True), ({"type": "string"}, False), ({"enum": ["a"]}, False),
    ],
)  # fmt: skip
async def test_none_is_a_value_where_the_schema_has_null(schema, is_known):
    seen = []

    class Open(Forecast):
        def input_schema(self):
            return {"type": "object", "properties": {"city": {"type": "string"}, "x": schema}, "required": ["city"]}

        async def _init(self, call_vars):
            return {"city": "Rome", "x": None}

        async def exec(self, on, input_data):
            seen.append(dict(input_data))
            yield text("done")

    await drained(StepExecutor(Task("q"), Step("s", call=Open), llm=ScriptedLLM()))
    assert seen == [{"city": "Rome", "x": None} if is_known else {"city": "Rome"}]


# --- from a file --------------------------------------------------------------------------------------


def weather(city: str, days: int) -> dict[str, Any]:
    return {"city": city, "days": days}


async def test_a_task_goes_on_from_its_file_also_while_it_waits(tmp_path):
    task, path = Task("q", LanguageType.ENGLISH), tmp_path / "task.json"
    await drained(StepExecutor(task, give(text("first"))))
    step = Step("forecast", call=RunTool, params={"func": weather, "enable_filling": True, "city": "Rome"})
    await drained(StepExecutor(task, step, llm=ScriptedLLM("{}", "{}")))
    assert task.runtime.status is StepStatus.PARAM
    task.save(path)
    later = Task.load(path)
    executor = StepExecutor(later, step)
    await executor.init()
    assert executor.remaining_schema["required"] == ["/days"]
    assert [chunk.content async for chunk in executor.resume({"/days": 4})] == [{"city": "Rome", "days": 4}]
    assert [step.data for step in later.history] == [{"text": "first"}, {"city": "Rome", "days": 4}]
    assert (later.ids, later.runtime.status) == (task.ids, StepStatus.SUCCESS)
