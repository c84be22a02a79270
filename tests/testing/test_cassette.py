import asyncio
import json

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import OpenAICompatible, budget, llm_function, use_llm
from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadRequest,
    ConfigError,
    RateLimited,
    ResponseParseError,
    ServerUnavailable,
    UsageError,
)
from SimpleLLMFunc.interface.profile import PROFILES
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.testing import Cassette, ScriptedLLM, UnmatchedRequest, tool_calls, use_cassette
from SimpleLLMFunc.testing.cassette_file import read_cassette
from tests.support.canary import CANARIES, Outputs
from tests.support.server import LoopbackServer


class Real(ScriptedLLM):
    """A stand-in for a service: any wrapped model is recorded."""


@llm_function
async def translate(text: str) -> str:
    """Translate.

    Be brief.
    """


async def ask(path, record, llm, *texts):
    with use_cassette(path, record) as tape, use_llm(tape.wrap(llm)):
        return [await translate(text) for text in texts]


class Grade(BaseModel):
    stars: int
    why: str


@llm_function
async def grade(essay: str) -> Grade:
    """Grade."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cassettes" / "one.json"


def model(server, **options):
    return OpenAICompatible("gpt-5-mini", base_url=server.base_url, api_key=CANARIES[0].key, max_retries=0, **options)


async def test_recorded_once_and_replayed_for_ever(path):
    async with LoopbackServer() as server:
        server.reply("Bonjour")
        llm = model(server)
        with use_llm(llm):
            with use_cassette(path) as tape:
                assert await translate("hello") == "Bonjour"
            assert (tape.recorded, tape.replayed) == (0, 0)  # written
            before = path.read_bytes()
            for _ in range(2):
                with use_cassette(path) as tape:
                    result = await translate.call("hello")
                assert result.value == "Bonjour"
                assert result.usage.input_tokens == 5
                assert tape.replayed == 1
        assert len(server.requests) == 1
        assert path.read_bytes() == before
    with use_llm(llm), use_cassette(path):  # the service is gone
        assert await translate("hello") == "Bonjour"


async def test_the_file_is_one_to_read(path):
    await ask(path, "once", Real("Bonjour\nà tous"), "hello")
    data = json.loads(path.read_text(encoding="utf-8"))
    (exchange,) = data["exchanges"]
    assert exchange["function"] == f"{__name__}:translate"
    assert exchange["version"] == translate._pipeline.metadata.version
    assert exchange["model"] == "scripted"
    system, user = exchange["request"]["messages"]
    assert "Translate." in system["content"]["|"]
    assert user == {"role": "user", "content": {"|": ["Arguments:", "  - text: hello"]}}
    assert exchange["reply"]["choices"][0]["message"]["content"] == {"|": ["Bonjour", "à tous"]}
    assert "id" not in exchange["reply"]
    assert "created" not in exchange["reply"]


async def test_a_stream_comes_in_the_pieces_in_which_it_came(path):
    async def pieces() -> list[str]:
        return [piece async for piece in translate.stream("hello")]

    async with LoopbackServer() as server:
        server.reply("Bonjour à tous")
        with use_llm(model(server)):
            with use_cassette(path):
                recorded = await pieces()
            with use_cassette(path) as tape:
                assert await pieces() == recorded
                assert tape.replayed == 1
        assert len(recorded) > 2
        assert len(server.requests) == 1
    stored = json.loads(path.read_text(encoding="utf-8"))["exchanges"][0]["stream"]
    assert [each for each in stored if isinstance(each, str)] == recorded


@pytest.mark.parametrize("streamed_first", [True, False])
async def test_a_stream_and_a_whole_reply_are_the_same_question(path, streamed_first):
    async def streamed() -> str:
        return "".join([piece async for piece in translate.stream("hello")])

    async def whole() -> str:
        return await translate("hello")

    first, second = (streamed, whole) if streamed_first else (whole, streamed)
    llm = Real("Bonjour à tous")
    with use_cassette(path) as tape, use_llm(tape.wrap(llm)):
        assert await first() == "Bonjour à tous"
    with use_cassette(path) as tape, use_llm(tape.wrap(llm)):
        assert await second() == "Bonjour à tous"
    assert len(llm.calls) == 1


async def test_tool_rounds(path):
    runs = []

    def stock(article: str) -> int:
        """Look up how many there are."""
        runs.append(article)
        return 3

    @llm_function(toolkit=[stock])
    async def advise(question: str) -> Grade:
        """Advise."""

    async with LoopbackServer() as server:
        server.reply_tool_calls([("stock", {"article": "lamp"}), ("stock", {"article": "sofa"})])
        server.reply('{"stars": 3, "why": "few"}')
        with use_llm(model(server)):
            with use_cassette(path):
                first = await advise.call("Lamps?")
            with use_cassette(path) as tape:
                again = await advise.call("Lamps?")
        assert len(server.requests) == 2
    assert tape.replayed == 2
    assert again.value == first.value == Grade(stars=3, why="few")
    assert [call.function.arguments for call in again.tool_calls] == [
        call.function.arguments for call in first.tool_calls
    ]
    assert runs == ["lamp", "sofa"] * 2  # tools run again: they are the program's


async def test_a_drifted_prompt_is_compared(path):
    await ask(path, "once", Real("Bonjour", "{}"), "hello")
    drifted = llm_function(temperature=0.7)(_drifted)
    with use_cassette(path) as tape, use_llm(tape.wrap(Real("never asked"))):
        with pytest.raises(UnmatchedRequest) as caught:
            await drifted("hello")
    text = str(caught.value)
    wanted = [
        "-Be brief.", "+Be very brief.", '+ "temperature": 0.7', " Translate.", "--- recorded", "--llm-record=new",
    ]  # fmt: skip
    assert [part for part in wanted if part in text] == wanted
    assert tape.unmatched == [text]
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, UsageError)


async def _drifted(text: str) -> str:
    """Translate.

    Be very brief.
    """


async def test_another_model_is_drift_too(path):
    await ask(path, "once", Real("Bonjour", model_name="a"), "hello")
    with pytest.raises(UnmatchedRequest, match=r"-\[model\] a\n\+\[model\] b"):
        await ask(path, "once", Real("Salut", model_name="b"), "hello")


async def test_the_nearest_one_is_compared(path):
    with use_cassette(path) as tape, use_llm(tape.wrap(Real("1", "2", '{"stars": 1, "why": "x"}'))):
        await translate("an umbrella")
        await translate("a hat")
        await grade("an umbrella")
    for function, asked, nearest in (
        (translate, "an umbrella!", "-  - text: an umbrella"),
        (grade, "a hat", "-  - essay: an umbrella"),
    ):
        with use_cassette(path) as tape, use_llm(tape.wrap(Real())):
            with pytest.raises(UnmatchedRequest, match=nearest):
                await function(asked)


# --- what may be recorded -------------------------------------------------------------------------------------


async def test_new_adds_what_is_not_there(path):
    await ask(path, "once", Real("1"), "one")
    llm = Real("2")
    assert await ask(path, "new", llm, "one", "two") == ["1", "2"]
    assert len(llm.calls) == 1
    assert await ask(path, "none", Real(), "two", "one") == ["2", "1"]


async def test_all_keeps_what_other_tests_recorded(path):
    for test, reply in (("a", "1"), ("b", "2"), ("a", "3")):
        tape = Cassette(path, "all", test=test)
        with tape.inserted(), use_llm(tape.wrap(Real(reply))):
            await translate(test)
        tape.save()
    kept = [(each.test, each.outcome["reply"]["choices"][0]["message"]["content"]) for each in read_cassette(path)]
    assert kept == [("a", "3"), ("b", "2")]


async def test_none_without_a_file_says_how_to_record(path):
    with pytest.raises(UnmatchedRequest, match=r"no cassette (.|\n)*\[model\] scripted(.|\n)*- text: one"):
        await ask(path, "none", Real("1"), "one")
    assert not path.exists()


async def test_a_question_asked_more_often_than_recorded(path):
    await ask(path, "once", Real("1", "2"), "one", "one")
    assert await ask(path, "none", Real(), "one", "one") == ["1", "2"]
    with pytest.raises(UnmatchedRequest, match=r"2 times, and it was made once more"):
        await ask(path, "none", Real(), "one", "one", "one")


async def test_identical_questions_at_the_same_time(path):
    async def at_once(llm):
        with use_cassette(path) as tape, use_llm(tape.wrap(llm)):
            return await asyncio.gather(*(translate("same") for _ in range(20)))

    recorded = await at_once(Real(*map(str, range(20))))
    assert sorted(recorded, key=int) == [str(number) for number in range(20)]
    assert sorted(await at_once(Real())) == sorted(recorded)


# --- what does not go well ------------------------------------------------------------------------------------


async def test_a_mode_that_was_refused_is_replayed_with_its_refusal(path):
    async with LoopbackServer() as server:
        server.reply_json({"error": {"message": "response_format is not supported"}}, status=400)
        server.reply('{"stars": 4, "why": "good"}')
        with use_llm(model(server)), use_cassette(path):
            first = await grade.call("Rain")
        # A new process: nothing is remembered of the model.
        with use_llm(model(server)), use_cassette(path, "none") as tape:
            again = await grade.call("Rain")
        assert len(server.requests) == 2
    assert tape.replayed == 2
    assert again.value == first.value
    assert again.output_mode == first.output_mode != "native"


@pytest.mark.parametrize(("status", "kind"), [(400, BadRequest), (401, AuthenticationError)])
async def test_what_a_service_says_of_a_request_is_kept(path, status, kind):
    async with LoopbackServer() as server:
        server.reply_json({"error": {"message": "no such thing"}}, status=status)
        llm = model(server)
        for _ in range(2):
            with use_llm(llm), use_cassette(path), pytest.raises(kind, match="no such thing") as caught:
                await translate("hello")
            assert caught.value.status == status
        assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "kind"), [(429, RateLimited), (503, ServerUnavailable)])
async def test_what_it_says_of_itself_is_not(path, status, kind):
    async with LoopbackServer() as server:
        server.reply_json({"error": {"message": "busy"}}, status=status)
        with use_llm(model(server)), use_cassette(path), pytest.raises(kind):
            await translate("hello")
        assert not path.exists()


async def test_a_reader_who_left_then_cannot_read_on_now(path):
    llm = Real("one two three four five six", chunk_size=4)
    with use_cassette(path) as tape, use_llm(tape.wrap(llm)):
        stream = translate.stream("hello")
        async for _ in stream:
            break
        await stream.aclose()
    with use_cassette(path) as tape, use_llm(tape.wrap(llm)):
        stream = translate.stream("hello")
        assert await anext(stream) == "one "
        with pytest.raises(UnmatchedRequest, match="left this stream early"):
            async for _ in stream:
                pass


async def test_a_failure_still_keeps_what_was_paid(path):
    llm = Real(*["no idea"] * 3)
    for _ in range(2):
        with use_cassette(path) as tape, use_llm(tape.wrap(llm)), pytest.raises(ResponseParseError):
            await grade("Rain")
    assert len(llm.calls) == 3


async def test_doubles_are_let_alone(path):
    llm = ScriptedLLM("1", "2")
    with use_llm(llm), use_cassette(path):
        assert [await translate("x"), await translate("x")] == ["1", "2"]
    assert len(llm.calls) == 2
    assert not path.exists()


async def test_the_model_is_what_it_was(path):
    llm = Real("1", profile=PROFILES["openai"])
    tape = Cassette(path)
    taped = tape.wrap(llm)
    assert tape.wrap(llm) is taped
    assert tape.wrap(taped) is taped
    assert (taped.model_name, taped.provider, taped.profile) == (llm.model_name, llm.provider, llm.profile)
    assert taped.render([{"role": "user", "content": "x"}]) == llm.render([{"role": "user", "content": "x"}])
    with use_llm(taped), budget(requests=5) as spent:
        await translate("x")
    assert spent.tokens > 0
    assert "one.json" in repr(taped) + repr(tape)


async def test_without_a_named_model_the_recorded_one_is_replayed(path, monkeypatch):
    async with LoopbackServer() as server:
        server.reply('{"stars": 4, "why": "good"}')
        with monkeypatch.context() as here, use_cassette(path):
            here.setenv("SIMPLELLMFUNC_MODEL", "openai:gpt-5-mini")
            here.setenv("OPENAI_API_KEY", CANARIES[0].key)
            here.setenv("OPENAI_BASE_URL", server.base_url)
            first = await grade.call("Rain")
    with use_cassette(path, "none"):  # as in CI: no model, no key
        again = await grade.call("Rain")
    assert again.value == first.value == Grade(stars=4, why="good")
    assert again.output_mode == first.output_mode
    with use_cassette(path, "new"), pytest.raises(ConfigError):  # here one is needed
        await grade("Rain")
    with use_cassette(path.with_name("none.json"), "none"), pytest.raises(ConfigError):
        await grade("Rain")


def test_a_mode_there_is_not(path):
    with pytest.raises(ConfigError, match="once, new, all, none"):
        Cassette(path, "sometimes")


# --- the contents of a file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("canary", CANARIES, ids=repr)
@pytest.mark.parametrize("chunk_size", [None, 3])
async def test_no_secret_reaches_the_file(tmp_path, path, canary, chunk_size):
    remember_secret(canary.key)
    secret = canary.key
    outputs = Outputs(tmp_path)
    llm = Real(
        tool_calls(("login", {"password": secret, "note": f"key {secret}"}), content=f"with {secret}"),
        f"The key is {secret}, Bearer {secret}.",
        chunk_size=chunk_size,
    )

    def login(password: str, note: str) -> str:
        """Log in."""
        return f"logged in with {secret}"

    @llm_function(toolkit=[login], extra_body={"whose": secret}, user=secret)
    async def use(key: str) -> str:
        """Use the key."""

    async def run():
        return "".join([piece async for piece in use.stream(secret)]) if chunk_size else await use(secret)

    with outputs.watching():
        with use_cassette(path) as tape, use_llm(tape.wrap(llm)):
            await run()
        with use_cassette(path, "none") as tape, use_llm(tape.wrap(Real())):
            assert "The key is" in await run()
        with use_cassette(path, "none") as tape, use_llm(tape.wrap(Real())), pytest.raises(UnmatchedRequest) as caught:
            await use(f"{secret} drifted")
    outputs.error(caught.value, holds_content=True)  # its messages are those that were given
    outputs.add("unmatched", "".join(tape.unmatched))
    outputs.files()
    assert outputs.leaks(canary) == []
    assert path.stat().st_size > 500
