"""The three layers of a memory, in a real file."""

import asyncio
import json
import sqlite3
import threading

import pytest

from SimpleLLMFunc.assistant.assistant import AIAssistant
from SimpleLLMFunc.assistant.memory import memory_file
from SimpleLLMFunc.assistant.memory.sqlite_memory import ExtractedMemory, SqliteMemory
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.processes import check_script, forks, run_script


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.sqlite"


@pytest.fixture
def opened(path):
    """Opens the file, as often as a test wants, and closes it in the end."""
    made = []

    def memory_with(**options):
        made.append(SqliteMemory(path, **options))
        return made[-1]

    yield memory_with
    for each in made:
        each.close()


@pytest.fixture
def memory(opened):
    return opened()


def extracted(*pairs: tuple[str, str]) -> str:
    return json.dumps([{"type": kind, "text": text} for kind, text in pairs], ensure_ascii=False)


async def test_nothing_is_known_at_first_and_no_file_is_made_before_the_first_use(path):
    memory = SqliteMemory(path)
    assert not path.exists()
    assert await memory.recall("u", "anything", "s") == ""
    assert path.exists()
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    memory.close()


async def test_messages_of_other_sessions_are_found_in_both_languages(memory):
    await memory.remember("u", "我在杭州的西湖边工作", "好的，记住了。", "s1")
    await memory.remember("u", "My sister plays the violin", "Lovely.", "s1")
    assert "西湖" in await memory.recall("u", "西湖边天气怎么样？", "s2")
    assert "杭州" in await memory.recall("u", "杭州热吗", "s2")
    assert "violin" in await memory.recall("u", "Can you play a VIOLIN?", "s2")
    assert await memory.recall("u", "quantum chromodynamics", "s2") == ""
    # The session itself stands in the conversation already.
    assert await memory.recall("u", "杭州热吗", "s1") == ""
    assert await memory.recall("somebody else", "杭州热吗", "s2") == ""


async def test_memories_by_hand_are_found_by_match_and_the_newest_besides(memory):
    for number in range(20):
        await memory.add_memory("u", f"The user owns book number {number}")
    await memory.add_memory("u", "用户对花生过敏", kind="fact")
    await memory.add_memory("u", "The user moved to Uppsala", kind="fact")
    lines = (await memory.recall("u", "花生酱可以吃吗？", "s")).splitlines()
    assert lines[0] == "- 用户对花生过敏"
    assert "- The user moved to Uppsala" in lines
    assert len(lines) <= 8


async def test_the_same_said_again_is_one_memory_and_other_digits_are_two(memory):
    assert await memory.add_memory("u", "The user lives at number 5.")
    assert not await memory.add_memory("u", "the user lives at number 5")
    assert await memory.add_memory("u", "The user lives at number 6.")
    assert [each.text for each in await memory.memories("u")] == [
        "The user lives at number 6.", "The user lives at number 5.",
    ]  # fmt: skip
    with pytest.raises(UsageError):
        await memory.add_memory("u", "  ")


async def test_memories_are_drawn_every_n_messages_with_type_and_source(opened):
    llm = ScriptedLLM(extracted(("preference", "The user likes tea."), ("fact", "用户住在杭州。")), extracted())
    memory = opened(llm=llm, extract_every=4, summarize_every=0)
    await memory.remember("u", "I like tea", "Noted.", "s1")
    await memory.settle()
    assert llm.calls == []
    await memory.remember("u", "我住在杭州", "好的。", "s1")
    await memory.settle()
    assert len(llm.calls) == 1
    assert "I like tea" in llm.calls[0].text
    assert {(each.type, each.text, each.source) for each in await memory.memories("u")} == {
        ("preference", "The user likes tea.", "s1"), ("fact", "用户住在杭州。", "s1"),
    }  # fmt: skip
    for _ in range(2):
        await memory.remember("u", "more", "yes", "s1")
    await memory.settle()
    # Each message is read once; what is known already is told, so that it is not drawn again.
    assert "I like tea" not in llm.calls[1].text
    assert "The user likes tea." in llm.calls[1].text


async def test_every_n_may_be_more_than_one_request_reads(opened):
    memory = opened(llm=(llm := ScriptedLLM(extracted())), extract_every=42, summarize_every=0)
    for _ in range(21):
        await memory.remember("u", "I like tea", "Noted.", "s1")
    await memory.settle()
    assert len(llm.calls) == 1


async def test_what_could_not_be_drawn_is_drawn_later(opened):
    memory = opened(llm=ScriptedLLM(RuntimeError("down")), extract_every=2, summarize_every=0)
    await memory.remember("u", "I like tea", "Noted.", "s1")
    await memory.settle()
    assert await memory.memories("u") == []
    memory.close()
    later = opened(llm=ScriptedLLM(extracted(("preference", "Likes tea."))), extract_every=2, summarize_every=0)
    await later.remember("u", "and cake", "Fine.", "s2")
    await later.settle()
    assert [each.text for each in await later.memories("u")] == ["Likes tea."]


async def test_a_session_is_summarised_and_the_summary_is_shown_in_others(opened):
    llm = ScriptedLLM("The user planned a trip to Oslo.", "The user planned a trip to Oslo and booked it.")
    memory = opened(llm=llm, extract_every=0, summarize_every=4, language="en")
    for text in ("I want to go to Oslo", "In May", "Booked", "Great"):
        await memory.remember("u", text, "ok", "s1")
        await memory.settle()
    assert len(llm.calls) == 2
    assert "Oslo" in llm.calls[0].text
    assert await memory.recall("u", "hello", "s2") == (
        "- An earlier conversation, summed up: The user planned a trip to Oslo and booked it."
    )
    assert "summed up" not in await memory.recall("u", "hello", "s1")


async def test_without_any_model_nothing_is_drawn(path, monkeypatch):
    for name in ("SIMPLELLMFUNC_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    memory = SqliteMemory(path, extract_every=2)
    await memory.remember("u", "hello", "hi", "s")
    await memory.settle()
    assert await memory.memories("u") == []
    memory.close()


async def test_newer_ones_are_shown_before_older_ones(opened):
    days = 0
    memory = opened(clock=lambda: days * 86_400.0, most=3)
    for days in (0, 100, 200):
        await memory.remember("u", f"tea on day {days}", "ok", f"s{days}")
    told = await memory.recall("u", "Is there tea?", "other")
    assert [line.split()[-1] for line in told.splitlines()] == ["200", "100", "0"]


async def test_forget_me_leaves_nothing_in_the_file(path):
    llm = ScriptedLLM(extracted(("fact", "MEMORY-CANARY lives here")), "SUMMARY-CANARY")
    memory = SqliteMemory(path, llm=llm, extract_every=2, summarize_every=2)
    await memory.remember("user-CANARY", "QUESTION-CANARY", "ANSWER-CANARY", "SESSION-CANARY")
    await memory.settle()
    await memory.remember("other", "kept words", "kept answer", "s")
    await memory.settle()
    before = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"MEMORY-CANARY" in before
    await memory.delete_user("user-CANARY")
    memory.close()
    after = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"CANARY" not in after.upper()
    assert b"kept words" in after
    assert await memory.recall("user-CANARY", "CANARY", "other session") == ""
    assert await memory.history("user-CANARY", "SESSION-CANARY") == []
    memory.close()


async def test_what_is_being_drawn_when_the_user_goes_is_not_kept(opened):
    started, go_on = threading.Event(), asyncio.Event()
    loops = []

    async def slow(request):
        loops.append(asyncio.get_running_loop())
        started.set()
        await go_on.wait()
        return extracted(("fact", "late"))

    memory = opened(llm=ScriptedLLM(slow), extract_every=2, summarize_every=0)
    await memory.remember("u", "a", "b", "s")
    await asyncio.to_thread(started.wait, 10)
    await memory.delete_user("u")
    loops[0].call_soon_threadsafe(go_on.set)
    await memory.settle()
    assert await memory.memories("u") == []


async def test_long_texts_are_taken_apart_off_the_loop(memory):
    # The guard looks: pure Python goes through long texts for their words.
    found = [ExtractedMemory.model_construct(type="fact", text=f"tea {number}") for number in range(300)]
    await memory._keep("u", "s", found, last_id=None)
    for number in range(100):
        await memory.remember("u", "tea " + f"leaf{number} " * 3000, "yes", f"s{number}")
    assert "- tea " in await memory.recall("u", "Is there tea? " + "leaf " * 20_000, "other")


async def test_a_file_of_1_0_gets_the_index_and_keeps_all(path, memory):
    await memory.remember("u", "我在杭州工作", "好的", "s")
    await memory.add_memory("u", "likes green tea")
    memory.close()
    # As 1.0 made it: another index, kept by triggers.
    connection = sqlite3.connect(path)
    for table, _ in memory_file._TEXTS:
        connection.execute(f"DROP TABLE {table}_words")
    for statement in memory_file._TABLES_OF_1_0[len(memory_file._BASE) :]:
        connection.execute(statement)
    connection.commit()
    connection.close()
    assert "杭州" in await memory.recall("u", "杭州热吗", "other")
    await memory.remember("u", "My sister plays the violin", "Lovely.", "s2")
    assert not await memory.add_memory("u", "Likes green tea.")
    assert (await memory.recall("u", "violin and tea", "other")).splitlines()[0] == "- likes green tea"
    assert "violin" in await memory.recall("u", "violin", "other")
    await memory.delete_user("u")
    assert await memory.recall("u", "杭州 tea violin", "other") == ""


@pytest.mark.heavy
@forks
async def test_what_the_parent_draws_keeps_no_child_from_drawing(path):
    code = f"""
import asyncio, json, os, threading
from SimpleLLMFunc.assistant.memory.sqlite_memory import SqliteMemory
from SimpleLLMFunc.testing import ScriptedLLM
begun, parent = threading.Event(), os.getpid()

async def reply(request):
    if os.getpid() == parent:
        begun.set()
        await asyncio.Event().wait()
    return json.dumps([{{"type": "fact", "text": "drawn in the child"}}])

memory = SqliteMemory({str(path)!r}, llm=ScriptedLLM(reply, repeat=True), extract_every=2, summarize_every=0)
asyncio.run(memory.remember("u", "a", "b", "s"))
assert begun.wait(20)
pid = os.fork()
if pid == 0:
    async def work():
        await memory.remember("u", "c", "d", "s")
        await memory.settle()
        return [each.text for each in await memory.memories("u")]
    os._exit(0 if asyncio.run(work()) == ["drawn in the child"] else 1)
assert os.waitpid(pid, 0)[1] == 0
memory.close()
"""
    done = await asyncio.to_thread(run_script, code, "-W", "default")
    assert done.returncode == 0, done.stderr


NASTY = ["x' OR 1=1--", "../../etc/passwd", "a\x00b", "CON", "é" * 300, "\ud800", "用户", '"; DROP TABLE memories; --']


@pytest.mark.parametrize("user_id", NASTY)
async def test_user_ids_and_texts_with_any_characters(memory, user_id):
    await memory.remember(user_id, f"I like tea, I am {user_id}", "ok \ud800 \x00", f"session {user_id}")
    await memory.add_memory(user_id, f"likes {user_id}")
    assert "tea" in await memory.recall(user_id, 'tea" OR *', "other")
    assert len(await memory.history(user_id, f"session {user_id}")) == 2
    assert [await memory.memories(other) for other in NASTY if other != user_id] == [[]] * (len(NASTY) - 1)


@pytest.mark.heavy
async def test_a_session_goes_on_in_another_process(path):
    memory = SqliteMemory(path)
    llm = ScriptedLLM("Hello Anna.")
    await AIAssistant(llm, memory=memory, tools=()).process_query("I am Anna.", session_id="s", user_id="u")
    memory.close()
    code = f"""
from SimpleLLMFunc.assistant.assistant import AIAssistant
from SimpleLLMFunc.assistant.memory.sqlite_memory import SqliteMemory
from SimpleLLMFunc.testing import ScriptedLLM
llm = ScriptedLLM("Anna.", "Who?")
assistant = AIAssistant(llm, memory=SqliteMemory({str(path)!r}), tools=())
assistant.process_query_sync("Who am I?", session_id="s", user_id="u")
assistant.process_query_sync("Who am I?", session_id="s", user_id="v")
print([[m["content"] for m in request[1:]] for request in llm.requests])
"""
    said = "[['I am Anna.', 'Hello Anna.', 'Who am I?'], ['Who am I?']]"
    await asyncio.to_thread(check_script, code, said)


async def test_a_file_of_another_program_and_a_damaged_one_are_refused(tmp_path):
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    noise = tmp_path / "noise.sqlite"
    noise.write_bytes(b"this is no database at all" * 100)
    for path in (other, noise, tmp_path):
        memory = SqliteMemory(path)
        with pytest.raises(ConfigError, match="cannot be used"):
            await memory.recall("u", "x", "s")
        memory.close()
    assert noise.read_bytes().startswith(b"this is no database")


@pytest.mark.parametrize("options", [{"extract_every": -1}, {"summarize_every": -1}, {"most": 0}, {"language": "fr"}])
def test_options_that_cannot_be_used(options):
    with pytest.raises(ConfigError):
        SqliteMemory(":memory:", **options)
