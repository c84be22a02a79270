"""`WikipediaSearch`: the articles of Wikipedia, or of another MediaWiki, without a key."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from SimpleLLMFunc.assistant.search.search import MAX_RESULTS, SearchReply, no_reply, on_one_line, read_reply
from SimpleLLMFunc.errors import ProviderError, UsageError, cut
from SimpleLLMFunc.interface.attempts import get_json
from SimpleLLMFunc.logger import redact

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")

_PARAMETERS: Final[dict[str, str | int | float]] = {
    "action": "query", "format": "json", "formatversion": 2, "redirects": 1, "generator": "search",
    "prop": "extracts|info|pageprops", "ppprop": "disambiguation", "inprop": "url",
    "exintro": 1, "explaintext": 1, "exlimit": "max", "exchars": 1200,
}  # fmt: skip


@dataclass(eq=False, repr=False)
class WikipediaSearch:
    """Searches Wikipedia over its public API, without a key.

    It knows what an encyclopaedia knows: facts and recent events of some weight, but neither prices nor the weather.

    Args:
        language: the Wikipedia's, such as "zh" or "en"; "auto" asks the Chinese one where the question has Chinese
            characters, else the English one.
        max_results: articles, at most 20.
        timeout: seconds for everything.
        endpoint: address of a MediaWiki API, with or without ``{language}``.
        user_agent: who asks; Wikipedia wants a name and an address to write to from those who ask often.
    """

    language: str = "auto"
    _: KW_ONLY
    max_results: int = 5
    timeout: float = 10.0
    endpoint: str = "https://{language}.wikipedia.org/w/api.php"
    user_agent: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z-]{1,19}", self.language):
            raise UsageError(f"{self.language!r} is not a language of Wikipedia. Write 'zh', 'en' …, or 'auto'.")
        self.max_results = max(1, min(self.max_results, MAX_RESULTS))

    async def search(self, query: str) -> SearchReply:
        """Return the beginnings of the articles that fit best.

        Raises:
            ProviderError: the service failed, or its reply cannot be read.
        """
        language = _language_of(query) if self.language == "auto" else self.language
        data = await get_json(
            self.endpoint.replace("{language}", language),
            # the service refuses longer questions
            {**_PARAMETERS, "gsrsearch": on_one_line(query, 300), "gsrlimit": self.max_results},
            service="Wikipedia",
            timeout=self.timeout,
            headers={"user-agent": self.user_agent} if self.user_agent else None,
        )
        return read_reply({"answer": "", "results": _articles(data)}, service="Wikipedia")


def _language_of(query: str) -> str:
    return "zh" if _HAN.search(query) and not _KANA.search(query) else "en"


def _articles(data: Any) -> list[dict[str, Any]]:
    """Return the articles in a reply of the MediaWiki API, the best one first."""
    if not isinstance(data, Mapping):
        raise no_reply("Wikipedia", f"a {type(data).__name__} where an object was wanted")
    if isinstance(error := data.get("error"), Mapping):
        said = cut(redact(str(error.get("info") or error.get("code"))), 300)
        raise ProviderError(f"the service refused: {said}", model="Wikipedia")
    query = data.get("query", {})
    pages = query.get("pages", []) if isinstance(query, Mapping) else None
    if not isinstance(pages, list):
        raise no_reply("Wikipedia", "its `query.pages` are no list")
    known = [page for page in pages if isinstance(page, Mapping) and not page.get("pageprops")]
    known.sort(key=lambda page: index if isinstance(index := page.get("index"), (int, float)) else math.inf)
    return [
        {"title": page.get("title"), "url": page.get("fullurl"), "content": page.get("extract")}
        for page in known
        if page.get("extract")
    ]
