"""`simplellmfunc chat`, typed into as a user does."""

import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from SimpleLLMFunc.cli.commands import chat as module
from SimpleLLMFunc.errors import ConfigError, ServerUnavailable
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.command_line import begun, typed


@pytest.fixture
def talk(monkeypatch):
    def run(llm: ScriptedLLM, *lines: str, arguments: tuple[str, ...] = (), code: int = 0):
        monkeypatch.setattr(module, "_model", lambda name: llm)
        return typed("chat", *arguments, text="".join(f"{line}\n" for line in lines), code=code)

    return run


def test_a_conversation_with_history(talk):
    llm = ScriptedLLM("Hello Anna.", "You are Anna.")
    done = talk(llm, "I am Anna.", "", "Who am I?")
    assert "Hello Anna.\nYou are Anna.\n" in done.output
    assert [message["content"] for message in llm.requests[1][1:]] == ["I am Anna.", "Hello Anna.", "Who am I?"]


def test_new_begins_another_and_quit_leaves(talk):
    llm = ScriptedLLM("a", "b", "never asked")
    talk(llm, "one", "/new", "two", "/quit", "three")
    assert [message["content"] for message in llm.requests[1][1:]] == ["two"]
    assert len(llm.calls) == 2


def test_tools_are_listed_and_shown_at_work(talk):
    llm = ScriptedLLM(tool_calls(("nobody", {"x": "\x1b[31m"})), "Done.")
    done = talk(llm, "/tools", "Go.")
    assert "[nobody " in done.output
    assert "The tool nobody does not exist." in done.output
    assert "\x1b[31m" not in done.output
    assert "No tools." in talk(ScriptedLLM(), "/tools", arguments=("--no-tools",)).output


def test_memory_and_forget(talk, tmp_path):
    path = tmp_path / "memory.sqlite"
    drawn = json.dumps([{"type": "preference", "text": "Likes tea."}])
    llm = ScriptedLLM("1", "2", "3", "4", "5", drawn, "6")
    done = talk(llm, "/memory", *"abcde", arguments=("--memory", str(path)))
    assert "Nothing yet." in done.output
    done = talk(ScriptedLLM("7"), "/memory", "/forget", "/memory", arguments=("--memory", str(path)))
    assert "- Likes tea. (preference)\nEverything about you is forgotten.\nNothing yet." in done.output


def test_save_as_json_and_as_text(talk, tmp_path):
    llm = ScriptedLLM("Hello \ud800.", repeat=True)
    for name in ("talk.json", "talk.txt"):
        done = talk(llm, "Hi", f"/save {tmp_path / name}")
        assert f"2 messages written to {tmp_path / name}." in done.output
    assert [each["role"] for each in json.loads((tmp_path / "talk.json").read_text())] == ["user", "assistant"]
    assert (tmp_path / "talk.txt").read_text() == "user: Hi\n\nassistant: Hello ?.\n"
    assert "cannot be written" in talk(llm, f"/save {tmp_path}").output
    assert "Say where" in talk(llm, "/save").output


def test_an_error_is_told_and_the_conversation_goes_on(talk):
    done = talk(ScriptedLLM(ServerUnavailable("m", status=503), "Back."), "one", "two")
    assert "Error: " in done.output
    assert "Back." in done.output


def test_a_model_that_is_not_set_up_ends_the_conversation(talk):
    done = talk(ScriptedLLM(ConfigError("No key.\n\n没有密钥。"), "never asked"), "one", "two", code=1)
    assert done.output.endswith("Error: No key.\n\n没有密钥。\n")


def test_input_in_another_encoding_than_the_locales_is_told(tmp_path):
    with begun(
        "chat", cwd=tmp_path, stdin=subprocess.PIPE, PYTHONIOENCODING="ascii", SIMPLELLMFUNC_MODEL="openai:m"
    ) as process:
        process.stdin.buffer.write("你好\n".encode())
        _, told = process.communicate(timeout=50)
    assert process.returncode == 1
    assert "Set PYTHONUTF8=1" in told
    assert "Traceback" not in told


def test_what_is_no_command(talk):
    done = talk(ScriptedLLM(), "/nope", "/help")
    assert "/nope is no command." in done.output
    assert done.output.count("/save FILE") == 2


def test_control_characters_of_a_model_do_not_reach_the_terminal(talk):
    done = talk(ScriptedLLM("a\x1b]8;;http://evil\x07b\nc"), "one")
    assert "\x1b" not in done.output
    assert "\x07" not in done.output
    assert "b\nc" in done.output


SLOW_TALK = """
import asyncio
from SimpleLLMFunc.cli.commands import chat
from SimpleLLMFunc.cli.main import main
from SimpleLLMFunc.testing import ScriptedLLM

async def slow(request):
    print('ASKED', flush=True)
    await asyncio.Event().wait()

llm = ScriptedLLM(slow, 'Second.')
chat._model = lambda name: llm
main(['chat', '--no-tools'])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_stops_the_answer_and_not_the_program(tmp_path):
    import pty

    code = tmp_path / "talk.py"
    code.write_text(SLOW_TALK)
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.execv(sys.executable, [sys.executable, str(code)])
    seen = b""

    def until(text: bytes, after: bytes = b"") -> None:
        nonlocal seen
        end = time.monotonic() + 30
        while text not in seen.partition(after)[2] if after else text not in seen:
            assert time.monotonic() < end, seen
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096)

    until(b"> ")
    os.write(terminal, b"first\n")
    until(b"ASKED")
    os.write(terminal, b"\x03")
    until(b"stopped; not kept")
    os.write(terminal, b"second\n")
    until(b"> ", after=b"Second.")
    time.sleep(0.5)  # readline loses a signal that comes after it wrote the prompt and before it waits
    os.write(terminal, b"\x03")
    until(b"Stopped.")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_leaves_where_the_input_is_a_pipe(tmp_path):
    code = tmp_path / "talk.py"
    code.write_text(SLOW_TALK)
    with subprocess.Popen(
        [sys.executable, str(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("first\nsecond\n")
        process.stdin.flush()
        assert any("ASKED" in line for line in iter(process.stdout.readline, ""))
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert (process.returncode, rest, errors) == (130, "", "\nStopped.\n")


def test_a_memory_that_cannot_be_used_is_told_and_the_conversation_goes_on(talk, tmp_path):
    path = tmp_path / "memory.sqlite"
    path.write_bytes(b"no database at all" * 100)
    done = talk(ScriptedLLM("Hello."), "/memory", "/forget", "Hi", arguments=("--memory", str(path)))
    assert done.output.count("cannot be used") == 2
    assert "Hello." in done.output
