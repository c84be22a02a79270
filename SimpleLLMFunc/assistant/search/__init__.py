"""When the assistant looks something up: is the answer uncertain, who is searched, and how the model is shown what was found."""

from __future__ import annotations

from SimpleLLMFunc.assistant.search.review import SearchReview
from SimpleLLMFunc.assistant.search.search import SearchClient, StaticSearch
from SimpleLLMFunc.assistant.search.tavily_search import TavilySearch
from SimpleLLMFunc.assistant.search.uncertainty import Phrasebook, add_phrases, explain, is_uncertain
from SimpleLLMFunc.assistant.search.wikipedia_search import WikipediaSearch

__all__ = [
    "Phrasebook", "SearchClient", "SearchReview", "StaticSearch", "TavilySearch", "WikipediaSearch", "add_phrases",
    "explain", "is_uncertain",
]  # fmt: skip
