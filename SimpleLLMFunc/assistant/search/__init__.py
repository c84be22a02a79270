"""When the assistant looks something up: is the answer uncertain, who is searched, and how the model is shown what was found."""

__all__ = ["search", "tavily_search", "uncertainty", "wikipedia_search"]
