"""`Task` and `Step`: made by hand, saved and loaded."""

import logging
import re
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from SimpleLLMFunc.calls.call_data import CallIds, ExecutorBackground, ExecutorHistory, LanguageType
from SimpleLLMFunc.calls.run_tool import RunTool
from SimpleLLMFunc.calls.task import Step, StepStatus, Task, TaskRuntime, Waiting
from SimpleLLMFunc.errors import CheckpointError


def test_a_task_needs_its_question_alone_and_the_values_of_a_status_are_the_contracts():
    assert [status.value for status in StepStatus] == ["running", "success", "error", "param"]
    task = Task("天气?")
    assert task.language is LanguageType.CHINESE
    assert task.background == ExecutorBackground()
    assert task.history == []
    assert task.runtime == TaskRuntime()
    assert (task.runtime.reasoning, task.runtime.status) == ("", None)
    assert Task("q").ids.task_id != task.ids.task_id
    task.history.append(ExecutorHistory("a"))
    assert Task("q").history == []


def test_language_and_background_in_every_form(caplog):
    caplog.set_level(logging.WARNING, "SimpleLLMFunc")
    task = Task("q", "en-GB", {"facts": ["f"]})
    assert (task.language, task.background.facts) == (LanguageType.ENGLISH, ["f"])
    task.language = "zh"
    assert task.language is LanguageType.CHINESE
    assert not caplog.records
    assert Task("q", language="fr").language is LanguageType.CHINESE
    assert "'fr'" in caplog.text


def test_a_step_by_position_and_by_name():
    params = {"func": print}
    step = Step("weather", "asks", RunTool, params)
    assert step == Step(name="weather", description="asks", call=RunTool, params=params)
    assert step.params["func"] is print
    params["city"] = "x"
    assert "city" not in step.params
    assert Step("s", call=RunTool) == Step("s", "", RunTool, {}, None)
    node = SimpleNamespace(name="n", description="d", known_params=None)
    assert Step("s", call=RunTool, node=node).node is node


@pytest.mark.parametrize("call", [None, str, RunTool(func=print), "RunTool"])
def test_a_step_runs_a_class_of_calls(call):
    with pytest.raises(ValidationError, match="subclass of CoreCall"):
        Step("s", call=call)


# --- saved and loaded ----------------------------------------------------------------------------------------


def full_task() -> Task:
    return Task(
        "天气?",
        LanguageType.ENGLISH,
        ExecutorBackground(num=2, conversation=[{"role": "user", "content": "嗨"}], facts=["f"]),
        runtime=TaskRuntime(
            reasoning="想", step="b", status=StepStatus.PARAM, runs=3,
            waiting=Waiting(data={"city": "x"}, remaining_schema={"type": "object"}, is_answered=True),
        ),
        history=[ExecutorHistory("a", "d", "whole text"), ExecutorHistory("b", "", {"text": "of data", "n": [1, None]})],
        ids=CallIds(executor_id="flow", user_sub="u"),
    )  # fmt: skip


def test_a_task_survives_json_and_a_step_that_was_running_has_not_run():
    task = full_task()
    assert Task.from_json(task.to_json()) == task
    assert "天气" in task.to_json()
    assert Task.model_validate_json(task.model_dump_json()) == task
    task.runtime.status = StepStatus.RUNNING
    assert Task.from_json(task.to_json()).runtime.status is None


def test_reopening_forgets_what_the_task_stopped_at():
    task = full_task()
    task.runtime.error = {"step": "b"}
    task.reopen()
    assert (task.runtime.error, task.runtime.waiting, task.runtime.status) == (None, None, None)
    assert (task.runtime.reasoning, len(task.history)) == ("想", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no saved task"), ("{", "no saved task"), ("[]", "no saved task"), ('{"history": 3}', "question|history"),
     ('{"question": "q", "of a later version": 1}', "later version"), ('{"question": "q", "history": [{}]}', "history.0")],
)  # fmt: skip
def test_what_is_no_saved_task_is_an_error(text, said, tmp_path):
    with pytest.raises(CheckpointError, match=said):
        Task.from_json(text)
    path = tmp_path / "task.json"
    path.write_text(text)
    with pytest.raises(CheckpointError, match=said):
        Task.load(path)


def test_a_file_is_whole_or_the_old_one(tmp_path):
    path = tmp_path / "task.json"
    full_task().save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()

    class Broken(Task):
        def to_json(self) -> str:
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError):
        Broken("q").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    Task("other").save(str(path))
    assert Task.load(str(path)).question == "other"
    with pytest.raises(FileNotFoundError):
        Task.load(tmp_path / "none.json")
    with pytest.raises(CheckpointError, match=r"cannot be read: Is a directory"):
        Task.load(tmp_path)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    for path, why in (
        (tmp_path / "none" / "task.json", "No such .*"),
        (tmp_path / "folder", "Is a folder.*"),
        ("a\0b", "path is .*"),
    ):
        with pytest.raises(
            CheckpointError, match=rf"cannot be saved as {re.escape(repr(str(path)))}: {why}[^.]\. Give"
        ):
            Task("q").save(path)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
    assert not list((tmp_path / "folder").iterdir())
