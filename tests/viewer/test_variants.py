"""A function changed for one try, and the change as a patch that applies to its source."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import pytest

from SimpleLLMFunc.observability.store import RunQuery
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.viewer.offered import offered_of, patch_of
from SimpleLLMFunc.viewer.responses import Refusal
from tests.viewer import shop
from tests.viewer.served import LOOPBACK, app_of, client_of

JSON = {"origin": LOOPBACK, "content-type": "application/json"}
TEXT = {"text": "Hm."}


@pytest.fixture
def client(store, monkeypatch):
    monkeypatch.setattr(shop, "stern", ScriptedLLM('{"label": "angry", "confidence": 1}', repeat=True), raising=False)
    return client_of(app_of(store, allow_run=[shop]), **JSON)


def played(client, name="mood", arguments=TEXT, **change):
    lines = client.post(f"/api/play/{name}", json={"arguments": arguments, "change": change})
    assert lines.status_code == 200, lines.text
    return lines.text.splitlines()[-1]


def test_a_try_is_asked_otherwise_and_the_function_stays(client, store):
    assert client.get("/api/play").json()["models"] == ["stern"]
    change = {"docstring": "Say the mood.\n    Be strict.", "temperature": 0.25, "output_mode": "prompt"}
    change["examples"] = [{"args": {"text": "Wow!"}, "value": {"label": "happy", "confidence": 1}}]
    preview = client.post("/api/play/mood/preview", json={"arguments": TEXT, "change": change}).json()
    text = "\n".join(str(message["content"]) for message in preview["messages"])
    assert "Say the mood.\nBe strict." in text
    assert "Say in which mood" not in text
    assert "Wow!" in text
    assert '"temperature": 0.25' in preview["curl"]
    assert preview["output_mode"] == "prompt"
    assert '"angry"' in played(client, model="stern")
    assert '"happy"' in played(client)
    assert store.flush()
    runs = store.reader.runs(RunQuery(function="mood")).runs
    assert [run.model for run in runs] == ["gpt-5-nano", "scripted"]


def test_a_failed_try_tells_its_attempts_and_its_run(client, store, monkeypatch):
    monkeypatch.setattr(shop, "stern", ScriptedLLM("no", "never", repeat=True))
    client = client_of(app_of(store, allow_run=[shop]), **JSON)
    line = played(client, model="stern")
    assert '"type": "error"' in line
    assert '"text": "no"' in line
    assert '"text": "never"' in line
    assert store.flush()
    assert f'"trace_id": "{store.reader.runs().runs[0].trace_id}"' in line


@pytest.mark.parametrize(("change", "said"), [
    ({"tools": []}, "tools: Extra"), ({"model": "gpt-9"}, "Name a model"),
    ({"model": "/etc/passwd:x/y"}, "Name a model"), ({"model": "secret.json:openai/gpt"}, "Name a model"),
    ({"temperature": "hot"}, "temperature: Input should be a valid number"),
    ({"output_mode": "magic"}, "output_mode: Input should be 'auto'"),
    ({"examples": {}}, "examples: Input should be a valid list"), ({"examples": ["/etc/passwd"]}, "examples.0"),
    ({"examples": [{"args": {"letter": 1}, "value": 2}]}, "letter"),
], ids=str)  # fmt: skip
def test_what_cannot_be_changed_is_refused(client, change, said):
    for what in ("play/mood", "play/mood/preview", "play/mood/patch"):
        reply = client.post(f"/api/{what}", json={"arguments": TEXT, "change": change})
        assert reply.status_code in {400, 422}
        assert said in reply.json()["error"]


SOURCE = '''
"""Ein Modul – mit Umlauten: äöü, 你好."""
import json
from SimpleLLMFunc import llm_function, use_llm

@llm_function
def bare(text: str) -> int:
    "Count."
    raise NotImplementedError

@llm_function()
def empty(text: str) -> int:
    """Count.

    With care, "quoted".
    """
    raise NotImplementedError

@llm_function(
    temperature=0.5,  # ä
    max_reasks=1,
)
async def long(text: str) -> int: """Count."""

class Box:
    @llm_function(output_mode="prompt", temperature=1)
    @staticmethod
    def inside(text: str) -> int:
        """Count."""
'''


ALL_CHANGES = {"docstring": "数一数。", "temperature": 0, "output_mode": "tool", "model": "openai:gpt-5"}
ALL_CHANGES["examples"] = [{"args": {"text": "a b"}, "value": 2}]


@pytest.mark.parametrize("name", ["bare", "empty", "long", "Box.inside"])
@pytest.mark.parametrize(
    "change",
    [{"temperature": 0.125}, {"docstring": 'Count \\ the """words""".\n\n- a\n  - "now"'}, ALL_CHANGES],
    ids=["one", "docstring", "all"],
)
@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patch")
def test_the_patch_applies_and_says_the_same(tmp_path, monkeypatch, name, change):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)

    def loaded(stem):
        spec = importlib.util.spec_from_file_location(stem, tmp_path / f"{stem}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = module
        for part in name.split("."):
            found = getattr(found, part)
        return next(iter(offered_of([found]).functions.values()))

    (tmp_path / "before.py").write_text(SOURCE, encoding="utf-8")
    patch = patch_of(loaded("before"), change, {})
    done = subprocess.run(["git", "apply", "-"], input=patch.encode(), capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr.decode() + patch
    (tmp_path / "before.py").rename(tmp_path / "after.py")
    after = loaded("after").pipeline
    docstring = after.metadata.docstring
    assert docstring == change["docstring"] if "docstring" in change else docstring.startswith("Count.")
    if "temperature" in change:
        assert after.options.llm_kwargs["temperature"] == change["temperature"]
    if "model" in change:
        assert after.options.llm_interface.model_name == "gpt-5"
        assert after.options.output_mode == "tool"
        assert after.options.examples == [({"text": "a b"}, 2)]


def test_a_source_that_cannot_be_seen_is_said(client):
    source = "from SimpleLLMFunc import llm_function\n@llm_function()\ndef f(x: str) -> str:\n    'Do.'\n"
    namespace: dict = {}
    exec(compile(source, "<nowhere>", "exec"), namespace)
    function = next(iter(offered_of([namespace["f"]]).functions.values()))
    with pytest.raises(Refusal, match="source of f cannot be read"):
        patch_of(function, {"temperature": 1}, {})
    made = shop.mood.with_options(temperature=1)
    assert "temperature=0" in patch_of(next(iter(offered_of([made]).functions.values())), {"temperature": 0}, {})
    assert sys.modules["tests.viewer.shop"] is shop
