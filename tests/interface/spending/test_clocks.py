"""Waits and limits go by the monotonic clock: the other one is set now and then, and must shorten or lengthen nothing."""

import ast
from pathlib import Path

import SimpleLLMFunc

PACKAGE = Path(SimpleLLMFunc.__file__).parent

BY_DATE = {
    "interface/composite/answer_store.py": "how old an answer is, over the lives of many processes",
    "interface/attempts/retry.py": "dates in headers",
}
"""Where the wall clock is meant, and for what."""


def wall_clocks(source):
    """What a module reads off the wall clock, as it is written there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if text.endswith(("time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today")):
                yield text
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (alias.name for alias in node.names if alias.name.startswith("time"))


def test_the_wall_clock_is_read_where_a_date_is_meant_and_nowhere_else():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for room in ("interface", "base", "tools", "llm_decorator")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if any(wall_clocks(path.read_text("utf-8")))
    }
    assert found <= set(BY_DATE), found - set(BY_DATE)
    assert "interface/attempts/retry.py" in found


def test_this_test_can_see():
    seen = ["x = time.time()", "x = datetime.datetime.now()", "from time import time, sleep", "x = time.monotonic()"]
    assert [[*wall_clocks(each)] for each in seen] == [["time.time"], ["datetime.datetime.now"], ["time"], []]
