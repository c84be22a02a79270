"""The plugin in pytest runs of their own, as its users start them."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = "SimpleLLMFunc.testing.pytest_plugin"

CONFTEST = """
import os
from SimpleLLMFunc import LLM_Interface
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.interface.attempts.guard import check_real_call_allowed


class Service(LLM_Interface):
    '''A service that counts what it is asked, in all processes.'''

    model_name = "service"

    def __init__(self):
        self._answers = ScriptedLLM(lambda request: request.text.rpartition(": ")[2].upper(), repeat=True)

    def _count(self):
        check_real_call_allowed(self.model_name)
        with open(os.environ["COUNT"], "a") as stream:
            stream.write("x")

    async def chat(self, messages, **options):
        self._count()
        return await self._answers.chat(messages, **options)

    async def chat_stream(self, messages, **options):
        self._count()
        async for chunk in self._answers.chat_stream(messages, **options):
            yield chunk
"""

HEAD = """
import pytest
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.errors import SimpleLLMFuncError
from conftest import Service


@llm_function(llm_interface=Service())
def shout(text: str) -> str:
    '''Shout.'''


"""


HELLO = "@pytest.mark.llm_cassette\ndef test_a():\n    assert shout('hello') == 'HELLO'\n"


class Suite:
    """A folder with tests, and how often its service was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = folder / "count"
        self.count.touch()
        (folder / "conftest.py").write_text(CONFTEST)

    def write(self, body: str, name: str = "test_it.py") -> None:
        (self.folder / name).write_text(HEAD + body)

    def run(self, *options: str, ci: str = "") -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
            "PYTHONPATH": f"{ROOT}{os.pathsep}{self.folder}", "COUNT": str(self.count), "CI": ci,
        }  # fmt: skip
        done = subprocess.run(
            # Other plugins that happen to be installed: one warns in some versions, one takes a second to load.
            [sys.executable, "-m", "pytest", "-p", "no:anyio", "-p", "no:schemathesis", "-p", "no:cacheprovider",
             "-o", "asyncio_default_fixture_loop_scope=function", "-W", "error", "--strict-markers", "-q", *options, "."],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=110,
        )  # fmt: skip
        return done.stdout + done.stderr

    def ends(self, *said: str, by: str = "", asked: int, ci: str = "") -> str:
        """Run by these options: the output holds what is said, and the service was asked so often so far."""
        output = self.run(*by.split(), ci=ci)
        assert [each for each in said if each not in output] == [], output
        assert self.asked == asked
        return output

    @property
    def asked(self) -> int:
        return len(self.count.read_text())

    def files(self) -> list[str]:
        return sorted(str(each.relative_to(self.folder)) for each in self.folder.rglob("*.json*"))


@pytest.fixture
def suite(tmp_path):
    return Suite(tmp_path)


def test_a_marked_test_is_recorded_and_replayed(suite):
    suite.write(HELLO)
    suite.ends("1 passed", asked=1)
    assert suite.files() == ["cassettes/test_it/test_a.json"]
    (exchange,) = json.loads((suite.folder / suite.files()[0]).read_text())["exchanges"]
    assert exchange["test"] == "test_it.py:test_a"
    assert exchange["function"] == "test_it:shout"
    suite.ends("1 passed", ci="true", asked=1)


def heavy(test):
    """Mark a test that starts pytest several times."""
    return pytest.mark.timeout(400)(pytest.mark.heavy(test))


@heavy
def test_ci_records_nothing(suite):
    suite.write(HELLO)
    for value in ("true", "1"):
        suite.ends("1 failed", "there is no cassette", "--llm-record=once", ci=value, asked=0)
    assert suite.files() == []
    suite.ends("1 passed", ci="false", asked=1)


@heavy
def test_drift_fails_with_a_comparison(suite):
    body = "@pytest.mark.llm_cassette\ndef test_a():\n    assert shout('{}') == '{}'\n"
    suite.write(body.format("hello", "HELLO"))
    suite.run()
    suite.write(body.format("good morning", "GOOD MORNING"))
    suite.ends("1 failed", "-  - text: hello", "+  - text: good morning", asked=1)
    suite.ends("1 passed", by="--llm-record=new", asked=2)
    suite.ends("1 passed", by="--llm-record=all", asked=3)
    (exchange,) = json.loads((suite.folder / suite.files()[0]).read_text())["exchanges"]
    assert "good morning" in json.dumps(exchange)


@heavy
def test_a_swallowed_mismatch_fails_too(suite):
    body = """
@pytest.mark.llm_cassette
def test_a():
    try:
        shout("{}")
    except SimpleLLMFuncError:
        pass

@pytest.mark.llm_cassette
def test_b():
    assert [row.error is None for row in shout.map(["x"]).rows] in ([True], [False])
"""
    suite.write(body.format("one"))
    assert "2 passed" in suite.run()
    suite.write(body.format("two").replace('"x"', '"y"'))
    suite.ends("2 failed", "+  - text: two", asked=2)


@heavy
def test_names_classes_parameters_and_async_tests(suite):
    suite.write("""
@pytest.mark.llm_cassette
class TestThings:
    def test_a(self):
        assert shout("a") == "A"

    @pytest.mark.parametrize("text", ["x/y", "x y", "é" * 200, "plain"])
    def test_b(self, text):
        assert shout(text) == text.upper()

@pytest.mark.llm_cassette("shared/by two")
@pytest.mark.parametrize("text", ["one", "two"])
def test_c(text):
    assert shout(text) == text.upper()
    assert shout("both") == "BOTH"

@llm_function(llm_interface=Service())
async def murmur(text: str) -> str:
    '''Murmur.'''

@pytest.fixture
def prepared():
    return shout("fixture")

@pytest.mark.asyncio
@pytest.mark.llm_cassette(name="other")
async def test_d(prepared, llm_tape):
    assert prepared == "FIXTURE"
    assert await murmur("x") == "X"
    assert llm_tape.recorded + llm_tape.replayed == 2

def test_unmarked():
    assert shout("free") == "FREE"
""")
    assert "9 passed" in suite.run()
    asked = suite.asked
    assert "9 passed" in suite.run()
    assert suite.asked == asked + 1  # the unmarked one asks each time
    files = suite.files()
    assert {"cassettes/shared/by two.json", "cassettes/other.json", "cassettes/test_it/TestThings.test_a.json"} < set(
        files
    )
    assert len(files) == len(set(files)) == 7


@heavy
def test_with_xdist(suite):
    suite.write("""
@pytest.mark.llm_cassette("shared")
@pytest.mark.parametrize("number", range(8))
def test_c(number):
    assert shout(f"text {number}") == f"TEXT {number}"

@pytest.mark.llm_cassette
@pytest.mark.parametrize("number", range(4))
def test_d(number):
    assert shout(f"own {number}") == f"OWN {number}"
""")
    suite.ends("12 passed", by="-n 2", asked=12)
    first = {name: (suite.folder / name).read_bytes() for name in suite.files()}
    assert len(first) == 5
    assert "12 passed" in suite.run("-n", "2", ci="1")
    suite.ends("12 passed", ci="1", asked=12)
    suite.ends("12 passed", by="-n 2 --llm-record=all", asked=24)
    assert {name: (suite.folder / name).read_bytes() for name in suite.files()} == first


@heavy
def test_a_cassette_that_cannot_be_read(suite):
    suite.write("@pytest.mark.llm_cassette('broken')\ndef test_a():\n    shout('hello')\n\ndef test_b():\n    pass\n")
    (suite.folder / "cassettes").mkdir()
    (suite.folder / "cassettes" / "broken.json").write_text("{")
    output = suite.ends("1 passed, 1 error", "broken.json", asked=0)
    assert "Traceback" not in output


@heavy
@pytest.mark.parametrize("name", ["'../outside'", "'/etc/x'", "''", "3", "'a/../b'", "'.hidden'", "'x', nam='y'"])
def test_names_that_lead_elsewhere(suite, name):
    suite.write(f"@pytest.mark.llm_cassette({name})\ndef test_a():\n    shout('hello')\n")
    suite.ends("llm_cassette takes a name", asked=0)


@heavy
def test_the_switch_that_forbids(suite):
    suite.write("""
def test_real():
    assert shout("x") == "X"

@pytest.mark.llm_cassette
def test_recording():
    assert shout("y") == "Y"

def test_real_again():
    assert shout("z") == "Z"
""")
    suite.ends("1 passed", "2 failed", "forbid_real_calls() is in force", by="--llm-forbid-real-calls", asked=1)
    assert "3 passed" in suite.run()
    (suite.folder / "pytest.ini").write_text("[pytest]\nllm_forbid_real_calls = true\n")
    assert "2 failed" in suite.run("-n", "1")
    (suite.folder / "pytest.ini").unlink()
    (suite.folder / "conftest.py").write_text(
        f"{CONFTEST}\nfrom SimpleLLMFunc import forbid_real_calls\n\nforbid_real_calls()\n"
    )
    suite.ends("2 failed", asked=3)
    (suite.folder / suite.files()[0]).unlink()
    suite.ends("3 failed", asked=3)
    assert "2 failed" in suite.run("--llm-record=once")  # the option of the run counts
    assert suite.asked == 4


@heavy
def test_nothing_real_is_asked_beside_a_replay(suite):
    suite.write(HELLO)
    suite.run()
    suite.write(f"{HELLO}    Service()._count()\n")
    suite.ends("forbid_real_calls() is in force", asked=1)


@heavy
def test_it_is_off_until_it_is_asked_for(suite):
    (suite.folder / "conftest.py").write_text("")
    (suite.folder / "test_it.py").write_text("""
import sys

import pytest

def test_a(request):
    loaded = {name for name in sys.modules if name.startswith("SimpleLLMFunc")}
    own = {"SimpleLLMFunc", "SimpleLLMFunc._version", "SimpleLLMFunc.testing", "SimpleLLMFunc.testing.pytest_plugin"}
    assert {name for name in loaded if not name.startswith("SimpleLLMFunc.errors")} <= own
    assert not {"pydantic", "openai"} & sys.modules.keys()
    for name in ("llm", "server"):
        with pytest.raises(pytest.FixtureLookupError):
            request.getfixturevalue(name)
""")
    assert "1 passed" in suite.run("-p", "no:hypothesispytest")
    assert "llm_cassette" in suite.run("--markers")
    assert "--llm-record" in suite.run("--help")


@heavy
def test_the_fixture_belongs_to_marked_tests(suite):
    suite.write("def test_a(llm_tape):\n    pass\n")
    assert "belongs to tests marked" in suite.run()


RERUNS = f"""{CONFTEST}
import pytest
from _pytest.runner import runtestprotocol

attempts = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    # As plugins do that try failed tests again.
    for attempt in range(3):
        attempts.append(attempt)
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not any(report.failed for report in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


@heavy
def test_a_test_that_is_tried_again_is_replayed_again(suite):
    (suite.folder / "conftest.py").write_text(RERUNS)
    suite.write("""
from conftest import attempts

@pytest.mark.llm_cassette
def test_a():
    assert shout("hello") == "HELLO"
    assert shout("hello") == "HELLO"
    assert len(attempts) == 3
""")
    suite.ends("1 passed", asked=2)
    suite.ends("1 passed", ci="1", asked=2)
    suite.ends("1 passed", by="--llm-record=all", asked=8)
    assert "1 passed" in suite.run(ci="1")


def test_it_comes_by_its_entry_point():
    assert MODULE in [each.value for each in entry_points(group="pytest11")]
