"""The keyless search, against replies of the shape that the MediaWiki API gives."""

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from SimpleLLMFunc.assistant.search.search import search_web
from SimpleLLMFunc.assistant.search.wikipedia_search import WikipediaSearch
from SimpleLLMFunc.errors import ConnectionFailed, ProviderError, UsageError
from tests.support.server import Answer, LoopbackServer


def page(title, index, extract, **more):
    return {
        "title": title, "index": index, "fullurl": f"https://en.wikipedia.org/wiki/{title}", "extract": extract, **more,
    }  # fmt: skip


PAGES = [
    page("Second", 2, "The second is a unit."), page("First", 1, "The first article."),
    page("Mercury", 3, "may refer to", pageprops={"disambiguation": ""}), page("Empty", 4, ""),
]  # fmt: skip
RECORDED = {"batchcomplete": True, "continue": {"gsroffset": 2}, "query": {"pages": PAGES}}


async def ask(reply, query="who?", **options):
    async with LoopbackServer() as server:
        server.answer(reply) if isinstance(reply, Answer) else server.reply_json(reply)
        client = WikipediaSearch(endpoint=server.base_url + "/{language}/api.php", **options)
        found = await search_web(client, query)
        return found, server.requests[0]


async def test_the_best_articles_come_first_and_those_without_words_are_left_out():
    found, request = await ask(RECORDED)
    assert found == {
        "answer": "",
        "results": [
            {"title": "First", "url": "https://en.wikipedia.org/wiki/First", "content": "The first article."},
            {"title": "Second", "url": "https://en.wikipedia.org/wiki/Second", "content": "The second is a unit."},
        ],
    }
    asked = parse_qs(urlsplit(request.path).query)
    assert {"gsrsearch": ["who?"], "gsrlimit": ["5"], "format": ["json"]}.items() <= asked.items()
    assert request.method == "GET"
    assert request.headers["user-agent"].startswith("SimpleLLMFunc")


@pytest.mark.parametrize(("query", "options", "language"), [
    ("珠穆朗玛峰有多高？", {}, "zh"), ("How high is Everest?", {}, "en"), ("エベレストの高さ", {}, "en"),
    ("How high is Everest?", {"language": "de"}, "de"),
])  # fmt: skip
async def test_the_language_goes_by_the_question(query, options, language):
    _, request = await ask({"batchcomplete": True}, query, **options)
    assert f"/{language}/api.php" in request.path


async def test_who_asks_can_be_said():
    _, request = await ask({"batchcomplete": True}, user_agent="shop/1.0 (mail@example.org)")
    assert request.headers["user-agent"] == "shop/1.0 (mail@example.org)"


@pytest.mark.parametrize("reply", [
    [], {"query": {"pages": {"10": {}}}}, {"query": []},
    {"error": {"code": "ratelimited", "info": "You've exceeded your rate limit"}},
    Answer(200, {"content-type": "text/html"}, body=b"<html>portal</html>"),
    Answer(403, body=b"Please set a user-agent"),
])  # fmt: skip
async def test_another_reply_is_our_error(reply):
    with pytest.raises(ProviderError, match="Wikipedia"):
        await ask(reply)


async def test_silence_ends():
    async with LoopbackServer() as server:
        server.answer(Answer(hold=asyncio.Event()))
        with pytest.raises(ConnectionFailed):
            await WikipediaSearch(endpoint=server.base_url, timeout=0.2).search("q")
        await server.all_closed()


@pytest.mark.parametrize("language", ["", "../x", "en.evil.example", "EN", "zh/"])
def test_a_language_cannot_lead_to_another_host(language):
    with pytest.raises(UsageError):
        WikipediaSearch(language)
