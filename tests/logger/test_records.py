"""Writing to the log, and showing it."""

import inspect
import io
import json
import logging
import sys
import types
from pathlib import Path

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import (
    app_log,
    count_tokens,
    get_location,
    is_enabled,
    log_context,
    push_debug,
    push_error,
    push_info,
    push_warning,
    records,
    remember_secret,
    setup_logging,
)
from SimpleLLMFunc.type.usage import Usage
from tests.support.processes import check_script

FILE = Path(__file__).name


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG, "SimpleLLMFunc")
    return caplog


def here(offset=0):
    return inspect.currentframe().f_back.f_lineno + offset


def test_each_function_writes_at_its_level(log):
    for write in (push_debug, push_info, app_log, push_warning, push_error):
        write("hello")
    levels = [logging.DEBUG, logging.INFO, logging.INFO, logging.WARNING, logging.ERROR]
    assert [record.levelno for record in log.records] == levels
    assert {(record.getMessage(), record.name) for record in log.records} == {("hello", "SimpleLLMFunc")}


def test_a_record_says_where_it_was_written(log):
    push_info("hello")
    line = here(-1)
    (record,) = log.records
    name = "test_a_record_says_where_it_was_written"
    assert record.location == f"{FILE}:{name}:{line}"
    assert (record.pathname, record.funcName, record.lineno) == (__file__, name, line)


def test_a_given_location_counts(log):
    push_warning("hello", location="other.py:f:3")
    push_warning("hello", location=get_location())
    ours = f"{FILE}:test_a_given_location_counts:{here(-1)}"
    assert [record.location for record in log.records] == ["other.py:f:3", ours]


def test_a_record_carries_its_run(log):
    with log_context("outer", "f"), log_context("inner", "g"):
        count_tokens(Usage(12, 3))
        push_info("hello")
    push_info("outside")
    inside, outside = log.records
    facts = ("trace_id", "parent_trace_id", "func_name", "input_tokens", "output_tokens")
    assert [getattr(inside, name) for name in facts] == ["inner", "outer", "g", 12, 3]
    assert [getattr(outside, name) for name in facts] == ["", "", "", 0, 0]


def test_a_record_of_our_own_modules_bears_their_name(log):
    module = types.ModuleType("SimpleLLMFunc.base.ReAct")
    module.__dict__["push_info"] = push_info
    exec("def go(): push_info('hello')", module.__dict__)
    module.go()
    assert log.records[0].name == "SimpleLLMFunc.base.ReAct"


def test_messages_are_redacted_and_stay_on_one_line(log):
    push_error("key sk-CANARY0123456789 refused\n2026-01-01 ERROR root fake\x1b[0m\ud800, 100 %s sure, 5 %d")
    message = log.records[0].getMessage()
    assert message == "key sk-*** refused\\n2026-01-01 ERROR root fake\\u001b[0m\\ud800, 100 %s sure, 5 %d"


def test_a_message_is_made_only_if_its_level_is_enabled(caplog):
    made = []

    def message():
        made.append(True)
        return "made"

    caplog.set_level(logging.INFO, "SimpleLLMFunc")
    push_debug(message)
    assert made == []
    push_info(message)
    assert made == [True]
    assert [record.getMessage() for record in caplog.records] == ["made"]


def test_a_message_that_cannot_be_made_does_not_end_the_run(log):
    def message():
        raise LookupError("no sk-CANARY0123456789")

    push_info(message)
    assert log.records[0].getMessage() == "(this message could not be rendered: LookupError: no sk-***)"


def test_is_enabled_follows_the_level(caplog):
    caplog.set_level(logging.WARNING, "SimpleLLMFunc")
    assert is_enabled(logging.WARNING)
    assert is_enabled("error")
    assert not is_enabled(logging.INFO)
    assert not is_enabled("INFO")
    assert not is_enabled("no such level")


def test_without_any_setup_nothing_is_printed_and_nothing_configured():
    script = """
        import logging, sys
        before = logging.getLogger().handlers[:]
        from SimpleLLMFunc.logger import push_error
        push_error('hello')
        logger = logging.getLogger('SimpleLLMFunc')
        assert [type(handler).__name__ for handler in logger.handlers] == ['NullHandler'], logger.handlers
        assert (logger.level, logger.propagate, logging.getLogger().handlers) == (0, True, before)
    """
    check_script(script, "")


def test_of_a_long_message_only_the_beginning_is_written(log):
    push_warning("x" * 1_000_000)
    (record,) = log.records
    assert len(record.getMessage()) <= 16_000
    assert record.getMessage().endswith("…")


# --- showing it ---

CANARY = "sk-CANARY0123456789abcdefXYZ"


@pytest.fixture(autouse=True)
def leave_no_handler():
    """Each test begins and ends as an import leaves it."""
    logger = logging.getLogger("SimpleLLMFunc")

    def clean():
        for handler in [each for each in logger.handlers if not isinstance(each, logging.NullHandler)]:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(logging.NOTSET)
        records._installed = None

    clean()
    yield
    clean()


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_one_record_is_one_line_of_json(capsys):
    setup_logging()
    with log_context("t1", "grade", 12, 3):
        push_warning("first\nsecond", location="a.py:f:1")
    (line,) = lines(capsys)
    facts = json.loads(line)
    assert facts.pop("time").endswith("Z")
    run = {"trace_id": "t1", "parent_trace_id": "", "func_name": "grade", "input_tokens": 12, "output_tokens": 3}
    said = {"level": "WARNING", "logger": "SimpleLLMFunc", "message": "first\\nsecond", "location": "a.py:f:1"}
    assert facts == run | said


def test_records_straight_from_logging_are_stamped_redacted_and_on_one_line_too(capsys):
    setup_logging()
    with log_context("t1", "grade"):
        logging.getLogger("SimpleLLMFunc.mine").warning("%s\n%s", CANARY, "fake")
    facts = json.loads(lines(capsys)[0])
    assert facts["message"] == "sk-***\\nfake"
    assert (facts["logger"], facts["trace_id"], facts["func_name"]) == ("SimpleLLMFunc.mine", "t1", "grade")
    assert facts["location"].startswith("test_records.py:test_records_straight_from_logging")


@pytest.mark.parametrize("json_lines", [True, False])
def test_tracebacks_are_redacted_and_on_one_line(capsys, json_lines):
    setup_logging(json=json_lines)
    remember_secret("hunter2-hunter2")

    def fail():
        try:
            raise LookupError(f"inner {CANARY}")
        except LookupError as error:
            raise ValueError("postgres://u:pw@h/db hunter2-hunter2") from error

    try:
        fail()
    except ValueError:
        logging.getLogger("SimpleLLMFunc.mine").exception("it failed", stack_info=True)
    (line,) = lines(capsys)
    for secret in (CANARY, "u:pw", "hunter2-hunter2"):  # the source lines of the traceback hold them too
        assert secret not in line
    assert "LookupError: inner sk-***" in line
    assert "ValueError: postgres://***@h/db ***" in line
    assert "Stack (most recent call last)" in line


def test_a_traceback_that_another_formatter_left_on_the_record_is_not_used(capsys):
    setup_logging()
    record = logging.LogRecord("SimpleLLMFunc", logging.ERROR, __file__, 1, "x", (), None)
    record.exc_text = f"Traceback: {CANARY}"
    logging.getLogger("SimpleLLMFunc").handle(record)
    (line,) = lines(capsys)
    assert "CANARY" not in line


def test_lines_for_people(capsys):
    setup_logging(json=False)
    with log_context("t1", "grade"):
        count_tokens(Usage(10, 6))
        push_info("hello\n中文", location="a.py:f:1")
    push_info("bye", location="a.py:f:2")
    first, second = lines(capsys)
    assert first.endswith(" INFO    SimpleLLMFunc [t1 grade 10+6 tokens] hello\\n中文 (a.py:f:1)")
    assert second.endswith(" INFO    SimpleLLMFunc bye (a.py:f:2)")


def test_the_level_holds(capsys):
    handler = setup_logging(level="warning")
    assert handler.level == logging.WARNING
    push_info("not shown")
    push_warning("shown")
    assert [json.loads(line)["message"] for line in lines(capsys)] == ["shown"]


def test_calling_again_replaces_the_handler(capsys, tmp_path):
    first = setup_logging("INFO", file=tmp_path / "log")
    second = setup_logging("DEBUG")
    assert first not in logging.getLogger("SimpleLLMFunc").handlers
    assert second in logging.getLogger("SimpleLLMFunc").handlers
    push_info("once")
    assert len(lines(capsys)) == 1
    assert (tmp_path / "log").read_text() == ""


def test_a_file_is_appended_to_in_utf_8(tmp_path):
    file = tmp_path / "log.jsonl"
    for message in ("first 中文", "second \ud800"):
        setup_logging(file=file)
        push_info(message)
    setup_logging()
    messages = [json.loads(line)["message"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert messages == ["first 中文", "second \\ud800"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_narrow_stream_gets_escapes_that_json_reads_back(monkeypatch, encoding):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, encoding=encoding))
    setup_logging()
    push_error("中文 🎉 é")
    assert json.loads(raw.getvalue().decode(encoding))["message"] == "中文 🎉 é"


class Full(io.StringIO):
    def write(self, text):
        raise OSError("no space left on device")


@pytest.mark.parametrize("stream", [None, Full()], ids=["no console", "a stream that fails"])
def test_a_program_goes_on_without(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(logging, "raiseExceptions", False)
    setup_logging()
    push_error("hello")


@pytest.mark.parametrize("level", ["LOUD", None])
def test_no_such_level(level):
    with pytest.raises(ConfigError, match=f"no log level is named {level!r}"):
        setup_logging(level)


@pytest.mark.parametrize("file", ["missing/folder/log", ".", "nul\x00"])
def test_a_file_that_cannot_be_written(tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="cannot be written"):
        setup_logging(file=file)
    assert [type(handler) for handler in logging.getLogger("SimpleLLMFunc").handlers] == [logging.NullHandler]
