"""The table of packages: the page has a row for each script, and a script that does not hold is a failure."""

import subprocess
import sys
import time

import pytest

from tests.ecosystem import run

USES = """
import subprocess, sys
from SimpleLLMFunc import OpenAICompatible, llm_function
from scene import answers, asked, check, seen

@llm_function(OpenAICompatible("m", wire="%s"))
def echo(text: str) -> str:
    "Echo."

answers("one", {"texts": ["two"], "delay": 0.1}, {"status": 400, "body": {"error": {"message": "no"}}})
check("said", [echo("a"), echo("b")], ["one", "two"])
try:
    echo("c")
except Exception as error:
    check("refused", error.status, 400)
check("asked", [each["path"] for each in asked()], ["%s"] * 3)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open("child", "w").write(str(child.pid))
seen("3 requests")
"""


def test_the_page_has_a_row_for_each_script():
    rows = [line.split(" | ") for line in run.PAGE.read_text("utf-8").splitlines() if line.startswith("| ")][1:]
    shown = {(row[0].removeprefix("| "), row[2]) for row in rows}
    wanted = {tuple(str(run.Row(each, "", "", 0)).split(" | ")[:3:2]) for each in run.scripts()}
    assert shown == {(name.removeprefix("| "), done) for name, done in wanted}


@pytest.mark.parametrize(("wire", "path"), [("chat", "/v1/chat/completions"), ("responses", "/v1/responses")])
def test_a_script_is_run_and_what_it_left_behind_ends(tmp_path, wire, path):
    (tmp_path / "scene.py").write_bytes((run.FOLDER / "scene.py").read_bytes())
    script = run.Script(tmp_path / "with_it.py", ("click",), "It.")
    script.path.write_text(USES % (wire, path))
    assert run.said_by_script(script, run.Path(sys.executable), tmp_path) == {"seen": "3 requests"}
    pid = (tmp_path / "place" / "child").read_text()
    until = time.monotonic() + 10
    while (state := _state(pid)) not in {"", "Z"} and time.monotonic() < until:
        time.sleep(0.05)
    assert state in {"", "Z"}


def _state(pid: str) -> str:
    return subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout.strip()


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_gevent_and_eventlet_may_patch_before_the_import() -> None:
    assert run.main(["gevent", "eventlet"]) == 0
