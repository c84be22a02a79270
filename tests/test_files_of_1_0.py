"""What 1.0 wrote, later versions read: its files, its pickles, its locks, and the versions of its functions."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest

import SimpleLLMFunc
from SimpleLLMFunc import CachedLLM, Confident, OpenAICompatible, ResponseParseError, TraceStore, Usage
from SimpleLLMFunc.assistant import SqliteMemory
from SimpleLLMFunc.evaluate import EvalReport
from SimpleLLMFunc.lock import check_lock, lock_of, read_lock
from SimpleLLMFunc.testing import UnmatchedRequest, use_cassette
from tests.files_of_1_0 import shop

FOLDER = Path(__file__).parent / "files_of_1_0"
TOLD = json.loads((FOLDER / "versions.json").read_text("utf-8"))


@pytest.fixture
def kept(tmp_path):
    """Return a copy of a file, which the library may write to."""
    return lambda name: Path(shutil.copy(FOLDER / name, tmp_path / name))


def test_every_public_name_of_1_0_is_there():
    assert set(TOLD["__all__"]) <= set(SimpleLLMFunc.__all__)


@pytest.mark.parametrize("name", TOLD["functions"])
def test_a_function_has_the_version_that_1_0_gave_it(name):
    function = shop.Shop().name if name == "Shop.name" else getattr(shop, name)
    assert function._pipeline.metadata.version == TOLD["functions"][name]


def test_the_lock_of_1_0_holds():
    locked, targets = read_lock(FOLDER / "llm.lock")
    assert targets == ["tests.files_of_1_0.shop"]
    assert check_lock(locked, lock_of(shop)).is_clean


async def test_a_checkpoint_answers_every_row_without_a_request(kept):
    rows = [f"tea {number}" for number in range(20)]
    report = await shop.line_of.with_options(max_reasks=0).map(rows, checkpoint=kept("checkpoint.sqlite"))
    assert [row.value.name for row in report.rows if row.error is None] == [str(n) for n in range(20) if n != 13]
    failed = report.rows[13].error
    assert isinstance(failed, ResponseParseError)
    assert failed.text == "not a line"


PROMPT_OF_1_0 = """\
You carry out the function described below. You get its arguments and give back what it returns.

Function:
{function_description}

Parameters:
  - text: string
  - strict: true or false

Give only the return value, without explanation."""
"""Asks word for word what 1.0 asked of `line_of`: a template without the field of the parameters keeps the docstring whole."""


async def test_a_cache_answers_without_a_request(kept):
    llm = CachedLLM(shop.llm, kept("cache.sqlite"))
    result = await shop.line_of.with_options(llm_interface=llm, system_prompt_template=PROMPT_OF_1_0).call("tea 1")
    assert (result.value.name, result.cached) == ("1", True)


async def test_a_cassette_plays_what_was_recorded(kept):
    with use_cassette(kept("cassette.json"), record="none"):
        asked = shop.line_of.with_options(system_prompt_template=PROMPT_OF_1_0)
        assert (await asked("tea 1")).name == "1"
        assert await shop.advise("Paris") == "coat"


async def test_a_cassette_tells_which_words_of_a_prompt_are_others_now(kept):
    # The prompt of a docstring with a section about parameters has changed since 1.0.
    with use_cassette(kept("cassette.json"), record="none"), pytest.raises(UnmatchedRequest) as caught:
        await shop.line_of("tea 1")
    assert "-    text: as it was printed." in str(caught.value)
    assert "+  - text: string — as it was printed." in str(caught.value)


def test_a_trace_store_shows_its_runs(kept):
    with TraceStore(kept("traces.sqlite"), max_age=None) as store:
        runs = store.reader.runs().runs
        assert [run.function for run in runs] == ["talk", "line_of", "advise", "line_of"]
        assert [run.status for run in runs] == ["ok", "error", "ok", "ok"]
        advice = store.reader.run(runs[2].id)
        assert advice.tool_calls[0].name == "weather"


async def test_a_memory_is_recalled(kept):
    memory = SqliteMemory(kept("memory.sqlite"), extract_every=0, summarize_every=0)
    assert "绿茶" in await memory.recall("u", "绿茶在哪里买", "another")
    assert [each.text for each in await memory.memories("u")] == ["likes green tea 绿茶"]
    assert [message["content"] for message in await memory.history("u", "s")][:2] == ["我喜欢绿茶", "好的"]
    memory.close()


def test_an_evaluation_is_loaded(kept):
    report = EvalReport.load(kept("evaluation.json"))
    assert [result.outcomes[0].scores["exact"] for result in report.results] == [1.0, 0.0]


# --- pickles ----------------------------------------------------------------------------------------------------------


def unpickled(name):
    return pickle.loads((FOLDER / "pickles" / f"{name}.pickle").read_bytes())


@pytest.mark.parametrize("path", sorted((FOLDER / "pickles").glob("*.pickle")), ids=lambda path: path.stem)
def test_a_pickle_of_1_0_is_the_object_it_was(path):
    assert type(unpickled(path.stem)).__name__ == path.stem


def test_what_was_pickled_is_still_in_it():
    assert unpickled("Usage") == Usage(1, 2, 3, 4, 0.5)
    assert unpickled("Result").value == "rain"
    assert "city: string" in repr(unpickled("Preview"))
    assert unpickled("Confident") == Confident(3, {"": 1.0}, False, (3,), 1, False)
    llm = unpickled("OpenAICompatible")
    assert isinstance(llm, OpenAICompatible)
    assert (llm.model_name, llm.base_url, llm.api_params) == ("m", "https://example.org/v1", {"seed": 1})
    assert [member.model_name for member in unpickled("FallbackLLM").members] == ["m", "n"]
    assert unpickled("CachedLLM").members[0].model_name == "m"
    limited = unpickled("RateLimited")
    assert (limited.retry_after, limited.trace_id, limited.usage) == (2.5, "t", Usage(1, 2))
