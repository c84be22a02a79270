"""found.diff(): a patch that `git apply` takes, and a source that then says what the improvement said."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from SimpleLLMFunc import UsageError
from SimpleLLMFunc.llm_decorator.improving import source_patch
from SimpleLLMFunc.llm_decorator.steps.function.improvement import Improvement

HEAD = "from SimpleLLMFunc import llm_function, fill\nfrom SimpleLLMFunc.testing import ScriptedLLM\n\nLLM = ScriptedLLM('x')\n\n\n"

EXAMPLES = [
    {"args": {"text": 'say "“ü”"'}, "value": {"kind": "a\\b", "sure": True}},
    {"args": {"text": "zwei\nZeilen"}, "value": {"kind": "", "sure": False}},
]
OPTIONS = {
    "examples": EXAMPLES,
    "max_examples": 2,
    "output_mode": "prompt",
    "docstring": 'Say "it"\n\nin """two""" \\d lines."',
}

WRITTEN = {
    "bare": '@llm_function\nasync def f(text: str) -> dict:\n    """Old."""\n',
    "empty": '@llm_function()\ndef f(text: str) -> dict:\n    """Old.\n\n    More.\n    """\n    return fill()\n',
    "positional": "@llm_function(LLM)\ndef f(text: str) -> dict:\n    'Old'\n    raise NotImplementedError\n",
    "keywords": '@llm_function(\n    llm_interface=LLM, examples=[("ä", {})],\n    output_mode="tool", temperature=0,\n)\ndef f(text: str) -> dict:\n    """Old ä."""\n',
    "last": '@llm_function(LLM, output_mode="tool")\ndef f(text: str) -> dict:\n    """Old."""; return fill()\n',
    "odd": '# \x0c\x0b\u2028\n@llm_function(LLM)\ndef f(text: str) -> dict:\n    """Old."""\n',
    "comma": '@llm_function(\n    LLM,\n)\ndef f(text: str) -> dict:\n    """Old."""\n',
    "parentheses": "@llm_function(LLM, temperature=(\n    0\n))\ndef f(text: str) -> dict:\n    'Old.'\n",
    "undocumented": "@llm_function(LLM, system_prompt_template='{function_description}')\ndef f(text: str) -> dict:\n    raise NotImplementedError\n",
}


def loaded(path):
    spec = importlib.util.spec_from_file_location("patched_source", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["patched_source"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_the_patch_applies_and_the_source_then_says_the_same(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.py"
    file.write_text(HEAD + written, encoding="utf-8")
    old = loaded(file).f
    found = old.with_options(improvement=Improvement(OPTIONS, is_checked=True))
    patch = source_patch(old.__wrapped__, OPTIONS)
    done = subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    new = loaded(file).f
    llm = loaded(file).LLM
    ours, theirs = (f.with_options(llm_interface=llm).preview("ü").messages for f in (new, found))
    assert ours == theirs
    assert new._pipeline.definition.metadata[3].strip() == OPTIONS["docstring"]


def test_a_method_and_what_has_no_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.py"
    file.write_text(
        HEAD + 'class A:\n    @llm_function(LLM)\n    def f(self, text: str) -> dict:\n        """Old."""\n',
        encoding="utf-8",
    )
    patch = source_patch(loaded(file).A().f.__wrapped__, OPTIONS)
    assert "\n+    @llm_function(LLM, examples=[\n+            ({'text'" in patch
    names = {}
    exec('def f(): "Old."', names)
    with pytest.raises(UsageError, match="source of f cannot be read"):
        source_patch(names["f"], OPTIONS)
    file.write_bytes(b"# coding: latin-1\n" + HEAD.encode() + b"@llm_function\ndef f(text: str) -> dict:\n    '\xe4'\n")
    with pytest.raises(UsageError, match="cannot be read"):
        source_patch(loaded(file).f.__wrapped__, OPTIONS)
    file.write_text(HEAD + "wrapped = llm_function(LLM)\n\n\n@wrapped\ndef f(text: str) -> dict:\n    'Old.'\n")
    with pytest.raises(UsageError, match="no decorator @llm_function"):
        source_patch(loaded(file).f.__wrapped__, OPTIONS)
    file.write_text(HEAD + "@llm_function((LLM))\ndef f(text: str) -> dict: 'Old.'\n")
    with pytest.raises(UsageError, match="cannot be changed"):
        source_patch(loaded(file).f.__wrapped__, OPTIONS)
