"""with_options(improvement=...): what it takes over, for which version of the function, and where it shows."""

from __future__ import annotations

import json
import pickle
import types
from typing import Literal

import pytest

from SimpleLLMFunc import ConfigError, llm_function
from SimpleLLMFunc.llm_decorator.steps.function.improvement import Improvement
from SimpleLLMFunc.lock import lock_of
from SimpleLLMFunc.testing import ScriptedLLM

LLM = ScriptedLLM('"good"', repeat=True)
LINES = [{"args": {"text": "fine"}, "value": "good"}, {"args": {"text": "awful"}, "value": "bad"}]


@llm_function(LLM)
def judge(text: str) -> Literal["good", "bad"]:
    """Say how the text sounds."""


class Shop:
    @llm_function(LLM)
    async def judge(self, text: str) -> Literal["good", "bad"]:
        """Say how the text sounds."""


@llm_function(LLM)
def early(text: str) -> Later:  # noqa: F821 - defined further down, as in a long module
    """Say how the text sounds."""


def written(tmp_path, function, options, **others):
    path = tmp_path / "f.improved.json"
    about = function._pipeline.called.metadata
    data = {"function": about.place, "version": about.version, "options": options, **others}
    path.write_text(Improvement.file_text(data), encoding="utf-8")
    return path


OPTIONS = {"examples": LINES, "max_examples": 2, "output_mode": "tool", "docstring": "Say whether it is praise."}


def test_examples_mode_and_words_count_and_preview_and_lock_show_them(tmp_path):
    path = written(tmp_path, judge, OPTIONS)
    better = judge.with_options(improvement=path)
    seen = better.preview("x")
    assert seen.output_mode == "tool"
    assert "Say whether it is praise." in seen.messages[0]["content"]
    assert "fine" in str(seen.messages[1])
    assert seen.improvement == f"{path} (examples, max_examples, output_mode, docstring)"
    assert judge.preview("x").improvement == ""
    assert better("x") == "good"
    module = types.ModuleType(__name__)
    module.judge, module.better = judge, better
    changed, plain = lock_of(module).values()  # by their names
    assert "improvement" not in plain.parts
    assert {name for name in changed.parts if changed.parts[name] != plain.parts.get(name)} >= {"improvement", "prompt"}


def test_later_options_come_over_it_and_none_takes_it_off(tmp_path):
    path = written(tmp_path, judge, OPTIONS)
    better = judge.with_options(improvement=str(path))
    assert better.with_options(output_mode="prompt", temperature=0).preview("x").output_mode == "prompt"
    assert len(better.with_options(examples=None).preview("x").messages) == 2
    # It was found for these options, so it comes over what is given with it.
    assert judge.with_options(improvement=path, output_mode="prompt").preview("x").output_mode == "tool"
    assert better.with_options(improvement=None).preview("x") == judge.preview("x")
    assert better.with_options(improvement=path).preview("x") == better.preview("x")
    assert pickle.loads(pickle.dumps(better)).preview("x") == better.preview("x")  # by value


async def test_methods_and_what_is_defined_later(tmp_path):
    path = written(tmp_path, Shop.judge, OPTIONS)
    for function in (
        Shop().judge.with_options(improvement=path),
        Shop.judge.with_options(improvement=path).__get__(Shop()),
    ):
        assert await function("x") == "good"
        assert "praise" in function.preview("x").messages[0]["content"]
    path.write_text(path.read_text().replace('"version": "', '"version": "0'))
    later = early.with_options(improvement=path)  # its version is not known yet
    globals()["Later"] = Literal["good", "bad"]
    try:
        with pytest.raises(ConfigError, match="was made for version 0"):
            later("x")
    finally:
        del globals()["Later"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no file", "cannot be read as an improvement"),
        ("{", "cannot be read as an improvement"),
        ("[]", "is not a file that f.improve"),
        ('{"kind": "simplellmfunc-evaluation", "format": 1}', "is not a file that f.improve"),
        *(
            (f'{{"kind": "simplellmfunc-improvement", "format": 1, "options": {options}}}', '"options" is an object')
            for options in ('{"temperature": 1}', '{"docstring": 5}', '{"descriptions": null}', '{"examples": [5]}')
        ),
    ],
)
def test_other_files_are_refused(tmp_path, text, told):
    path = tmp_path / "f.json"
    if text != "no file":
        path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        judge.with_options(improvement=path)


@pytest.mark.parametrize(
    "change", [{"examples": [("a", "good")]}, {"system_prompt_template": "{function_description}"}]
)
def test_another_version_of_the_function_is_refused(tmp_path, change):
    path = written(tmp_path, judge, OPTIONS)
    with pytest.raises(ConfigError, match=r"made for version \w{16} of .*judge, and .* is version \w{16} now"):
        judge.with_options(**change).with_options(improvement=path)
    # What is no part of the version may differ: the model, how often to try.
    judge.with_options(temperature=0, max_reasks=0).with_options(improvement=path)


def test_wrong_uses_are_told(tmp_path):
    with pytest.raises(ConfigError, match="path of a file"):
        judge.with_options(improvement=3)
    path = written(tmp_path, judge, {"examples": [{"args": {"text": 3}, "value": "good"}]})
    with pytest.raises(Exception, match=r"example 1 of .*f\.improved\.json"):
        judge.with_options(improvement=path)
    with pytest.raises(ConfigError, match="with_options"):
        llm_function(LLM, improvement=path)(lambda text: text)


def test_a_file_reads_well(tmp_path):
    lines = written(tmp_path, judge, OPTIONS).read_text().splitlines()
    assert f"      {json.dumps(LINES[0])}," in lines
    assert lines[1] == '  "kind": "simplellmfunc-improvement",'
