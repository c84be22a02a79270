"""Attack 4: a name is a value. It is no part of a statement, and no way to another file."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

from SimpleLLMFunc import CachedLLM, OpenAICompatible
from SimpleLLMFunc.assistant.memory.sqlite_memory import SqliteMemory
from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.observability.store.rows import RunQuery
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import async_function_of

NAMES = {
    "or": "x' OR 1=1--", "union": "x' UNION SELECT sql FROM sqlite_master--",
    "drop": '"; DROP TABLE answers; DROP TABLE messages; --', "wildcards": "%", "underscore": "_____",
    "match": 'a" OR content MATCH "*', "traversal": "../../etc/passwd", "absolute": "/etc/passwd",
    "windows": "..\\..\\CON", "device": "CON", "nul": "a\x00b", "surrogate": "a\ud800b", "long": "x" * 300,
    "empty": "", "uri": "file:/etc/passwd?mode=ro", "memory": ":memory:",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
async def test_attack_04_what_is_asked_is_a_value_of_the_cache(name, tmp_path):
    path = tmp_path / "answers.sqlite"
    own = ScriptedLLM(*[f"answer {number}" for number in range(10)])
    llm = CachedLLM(own, path)
    texts = [NAMES[name], "somebody else's", NAMES["or"] + name]
    replies = [(await llm.chat([{"role": "user", "content": text}], user=text)).text for text in texts]
    again = [(await llm.chat([{"role": "user", "content": text}], user=text)).text for text in texts]
    assert replies == again == [f"answer {number}" for number in range(3)]
    llm.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (3,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert {each.name.partition(".")[0] for each in tmp_path.iterdir()} == {"answers"}


@pytest.mark.parametrize("name", NAMES)
async def test_attack_04_users_and_sessions_never_see_one_another(name, tmp_path):
    memory = SqliteMemory(tmp_path / "memory.sqlite", extract_every=0, summarize_every=0)
    nasty = NAMES[name]
    for user, secret in (("anna", "my secret is blue"), (nasty, "my secret is green")):
        await memory.remember(user, secret, "noted", f"session of {user}")
    assert "blue" not in await memory.recall(nasty, "secret", "another session")
    assert "green" not in await memory.recall("anna", "secret", "another session")
    assert "blue" not in await memory.recall("bob", nasty, nasty)
    await memory.delete_user(nasty)
    assert "blue" in await memory.recall("anna", "secret", "another session")
    await memory.settle()
    memory.close()
    assert {each.name.partition(".")[0] for each in tmp_path.iterdir()} == {"memory"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"empty", "nul", "surrogate"}])
def test_attack_04_the_environment_names_a_file_and_no_other(name, tmp_path, monkeypatch):
    """`provider.json:provider/model` with a provider or a model from somewhere else."""
    path = tmp_path / "provider.json"
    path.write_text(json.dumps({"mine": [{"model_name": "m", "api_keys": ["k-0123456789"]}]}))
    for value in (f"{path}:{NAMES[name]}/m", f"{path}:mine/{NAMES[name]}", f"{NAMES[name]}.json:mine/m"):
        monkeypatch.setenv("SIMPLELLMFUNC_MODEL", value)
        with pytest.raises(SimpleLLMFuncError):
            resolve_llm(None)
    monkeypatch.setenv("SIMPLELLMFUNC_MODEL", f"{path}:mine/m")
    assert isinstance(resolve_llm(None), OpenAICompatible)


@pytest.mark.parametrize("name", NAMES)
async def test_attack_04_what_is_mapped_is_a_value_of_the_checkpoint(name, tmp_path):
    path = tmp_path / "run.sqlite"
    rows = [NAMES[name], "somebody else's", NAMES["or"] + name]
    llm = ScriptedLLM(lambda request: f"<{request.text}>", repeat=True)
    report = await async_function_of(llm).map(rows, checkpoint=path)
    values = [row.value for row in report.rows]
    assert len(set(values)) == 3
    again = await async_function_of(ScriptedLLM()).map(rows[::-1], checkpoint=path)  # nobody is asked
    assert [row.value for row in again.rows] == values[::-1]
    assert again.counts.restored == 3
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (3,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert {each.name.partition(".")[0] for each in tmp_path.iterdir()} <= {"run", ""}


@pytest.mark.parametrize("name", NAMES)
async def test_attack_04_what_is_looked_up_is_a_value_of_the_trace_store(name, tmp_path):
    nasty = NAMES[name]
    with TraceStore(tmp_path / "runs.sqlite", interval=0.01) as store:
        for session in ("anna", nasty):
            with watching(store, session_id=session, user_id=session):
                await async_function_of(ScriptedLLM("yes"))(f"of {session}")
        assert await asyncio.to_thread(store.flush)

        def look():
            reader = store.reader
            assert len(reader.runs().runs) == 2
            assert reader.run(nasty or "x") is None
            for field in ("function", "model", "version", "parent"):
                if nasty:
                    assert reader.runs(RunQuery(**{field: nasty})).runs == []
            own = [run.id for run in reader.runs(RunQuery(session="anna")).runs]
            others = [run.id for run in reader.runs(RunQuery(session=nasty)).runs]
            assert len(own) == 1
            assert not set(own) & set(others) or nasty == ""
            reader.runs(RunQuery(text=nasty))
            with pytest.raises(SimpleLLMFuncError):
                reader.runs(after=f"x{nasty}")
            assert len(reader.runs().runs) == 2

        await asyncio.to_thread(look)
    assert {each.name.partition(".")[0] for each in tmp_path.iterdir()} == {"runs"}
