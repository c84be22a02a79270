"""Writing to the log."""

import inspect
import logging
import subprocess
import sys
import types
from pathlib import Path

import pytest

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
)
from SimpleLLMFunc.type.usage import Usage

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
    script = (
        "import logging, sys\n"
        "before = logging.getLogger().handlers[:]\n"
        "from SimpleLLMFunc.logger import push_error\n"
        "push_error('hello')\n"
        "logger = logging.getLogger('SimpleLLMFunc')\n"
        "assert [type(handler).__name__ for handler in logger.handlers] == ['NullHandler'], logger.handlers\n"
        "assert (logger.level, logger.propagate, logging.getLogger().handlers) == (0, True, before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_of_a_long_message_only_the_beginning_is_written(log):
    push_warning("x" * 1_000_000)
    (record,) = log.records
    assert len(record.getMessage()) <= 16_000
    assert record.getMessage().endswith("…")
