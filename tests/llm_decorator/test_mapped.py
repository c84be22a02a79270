"""Functions of a script, and results of `with_options`, pickled by value where cloudpickle is installed."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM

ROOT = Path(__file__).parents[2]

SCRIPT = """
    import sys
    from pydantic import BaseModel
    from SimpleLLMFunc import llm_chat, llm_function, tool
    from SimpleLLMFunc.testing import ScriptedLLM
    import cloudpickle, pickle

    class Note(BaseModel):
        text: str

    @tool
    def look(a: int) -> int:
        "Look."
        return a + 1

    @llm_function(llm_interface=ScriptedLLM('{"text": "hi"}'), toolkit=[look], guards=[lambda value: None])
    async def note(about: Note, n: int = 2) -> Note:
        "Take a note."

    @llm_function(llm_interface=ScriptedLLM("3"), toolkit=[note.as_tool()])
    def count(text: str) -> int:
        "Count."

    @llm_chat(llm_interface=ScriptedLLM("hey"))
    def chat(history: list, message: str):
        "Talk."

    functions = [note.with_options(temperature=1), count, look, chat]
    by = {"pickle": pickle, "cloudpickle": cloudpickle}[sys.argv[1]]
    if by is cloudpickle:
        functions.append(lambda text: count(text))
    sys.stdout.buffer.write(by.dumps(functions))
"""


@pytest.mark.parametrize("name", ["pickle", "cloudpickle"])
async def test_functions_of_a_script_arrive_where_the_script_is_not(name, tmp_path):
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, script, name], check=False, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    note, count, look, chat, *others = pickle.loads(done.stdout)
    assert (await note({"text": "x"})).text == "hi"
    assert note._pipeline.options.llm_kwargs == {"temperature": 1}
    assert (note.__doc__, inspect.signature(note).return_annotation.__name__) == ("Take a note.", "Note")
    assert look(3) == 4
    assert [text for text, _ in chat([], "hi")] == ["hey", ""]
    assert (others[0] if others else count)("a") == 3


def test_without_cloudpickle_what_has_no_name_is_refused_as_before(monkeypatch):
    for name in [name for name in sys.modules if name.endswith("cloudpickle")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)

    @llm_function(llm_interface=ScriptedLLM("3"))
    def local(text: str) -> int:
        """Count."""

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(local)
