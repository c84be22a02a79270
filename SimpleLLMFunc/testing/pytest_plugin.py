"""The pytest plugin: cassettes for marked tests, and a switch that forbids real calls. Off until it is asked for.

The entry point loads this module in every pytest run of an environment with the library. So it imports nothing of the
library, and does nothing, until a test is marked or an option is given.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.attempts import RealCallsForbidden
    from SimpleLLMFunc.testing.cassette import Cassette

_MODES: Final = ("once", "new", "all", "none")
_FORBID: Final = "llm_forbid_real_calls"
_FOLDER: Final = "cassettes"
_LONGEST: Final = 120

_tape_key: Final[pytest.StashKey[Cassette]] = pytest.StashKey()
_missing_key: Final = pytest.StashKey[set[str]]()
_forbidden_key: Final[pytest.StashKey[RealCallsForbidden]] = pytest.StashKey()
_inserted_key: Final[pytest.StashKey[ExitStack]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--llm-record`, and the switch as an option and as a line of the ini file."""
    group = parser.getgroup("SimpleLLMFunc")
    group.addoption(
        "--llm-record",
        choices=_MODES,
        default=None,
        help="What tests marked llm_cassette may record: once (where there is no cassette; the default), new (what the "
        "cassette does not hold), all (again), none (the default where the variable CI is set).",
    )
    group.addoption(
        "--llm-forbid-real-calls",
        action="store_true",
        default=None,
        help="Let every real request to a model fail, but those of a test that is recording its cassette.",
    )
    parser.addini(_FORBID, "As --llm-forbid-real-calls, for the whole suite.", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker, and forbid real calls where that is asked for."""
    config.addinivalue_line(
        "markers",
        "llm_cassette(name=None): record what models say once, and replay it; see --llm-record. The file is "
        "cassettes/<module>/<test>.json in the folder of the test, or cassettes/<name>.json.",
    )
    if config.getoption("--llm-forbid-real-calls") or config.getini(_FORBID):
        from SimpleLLMFunc.interface.attempts import forbid_real_calls

        config.stash[_forbidden_key] = forbid_real_calls()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Allow real calls again."""
    if (forbidden := config.stash.get(_forbidden_key, None)) is not None:
        forbidden.undo()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note the missing cassettes: all tests that share one record it in this run, in every process."""
    marked = ((item, item.get_closest_marker("llm_cassette")) for item in items)
    paths = {_path_of(item, mark) for item, mark in marked if mark is not None}
    config.stash[_missing_key] = {str(path) for path in paths if not path.exists()}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Insert the cassette of a marked test before its fixtures are made."""
    if (mark := item.get_closest_marker("llm_cassette")) is not None:
        _insert(item, mark)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose code caught the error of a request that is not in the cassette."""
    result = yield
    tape = item.stash.get(_tape_key, None)
    if tape is not None and tape.unmatched:
        pytest.fail("\n\n".join(dict.fromkeys(tape.unmatched)), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Remove the cassette after the fixtures, and write what was recorded, also of a failed test: it was paid."""
    try:
        return (yield)
    finally:
        if (inserted := item.stash.get(_inserted_key, None)) is not None:
            del item.stash[_inserted_key]
            inserted.close()


@pytest.fixture
def llm_tape(request: pytest.FixtureRequest) -> Any:
    """The `Cassette` of a test marked llm_cassette: `wrap` for models asked directly, `recorded`, `replayed`."""
    tape = request.node.stash.get(_tape_key, None)
    if tape is None:
        pytest.fail("llm_tape belongs to tests marked with @pytest.mark.llm_cassette.", pytrace=False)
    return tape


def _insert(item: pytest.Item, mark: pytest.Mark) -> None:
    from SimpleLLMFunc.errors import SimpleLLMFuncError
    from SimpleLLMFunc.interface.attempts import forbid_real_calls, real_calls_asked_for
    from SimpleLLMFunc.testing.cassette import Cassette

    path = _path_of(item, mark)
    is_ci = os.environ.get("CI", "").strip().lower() not in {"", "0", "false", "no"}
    mode: Any = item.config.getoption("--llm-record") or ("none" if is_ci else "once")
    if mode == "once" and str(path) in item.config.stash[_missing_key]:
        mode = "new"  # another test of this run may have made the file meanwhile
    try:
        # The name begins with the file, so that it does not depend on the working directory.
        tape = Cassette(path, mode, test=f"{item.path.name}:{_inner_name(item)}")
    except SimpleLLMFuncError as error:
        pytest.fail(str(error), pytrace=False)
    item.stash[_tape_key] = tape
    stack = item.stash[_inserted_key] = ExitStack()
    stack.callback(tape.save)
    stack.enter_context(tape.inserted())
    forbidden = item.config.stash.get(_forbidden_key, None)
    if not tape.may_record:
        # Requests that a cassette does not see (batch files, own clients) must not cost anything.
        stack.enter_context(forbid_real_calls())
    elif item.config.getoption("--llm-record"):
        stack.enter_context(real_calls_asked_for())
    elif forbidden is not None:
        forbidden.undo()
        stack.callback(forbidden.__enter__)


def _inner_name(item: pytest.Item) -> str:
    return ".".join(node.name for node in item.listchain() if isinstance(node, (pytest.Class, pytest.Item)))


def _path_of(item: pytest.Item, mark: pytest.Mark) -> Path:
    name = mark.kwargs if mark.kwargs.keys() - {"name"} else mark.args[0] if mark.args else mark.kwargs.get("name")
    folder = item.path.parent / _FOLDER
    if name is None:
        return folder / item.path.stem / f"{_file_name(_inner_name(item))}.json"
    if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w. -]*(/[\w-][\w. -]*)*", name):
        raise pytest.UsageError(
            f"{item.nodeid}: llm_cassette takes a name such as 'translate' or 'shop/translate', not {name!r}."
        )
    return folder / f"{name.removesuffix('.json')}.json"


def _file_name(text: str) -> str:
    plain = re.sub(r"[^\w.-]+", "_", text).strip("_.")
    # Names that differ only in forbidden characters must not share a file.
    is_harmless = re.fullmatch(r"[\w.-]+(\[[\w.-]+\])?", text) and len(text) <= _LONGEST
    digest = "" if is_harmless else f"-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return f"{plain[:_LONGEST]}{digest}"
