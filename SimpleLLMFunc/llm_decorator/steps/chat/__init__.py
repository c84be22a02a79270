"""The steps of `@llm_chat`: its messages, the stream of raw responses, and the ``(content, history)`` pairs."""

__all__ = ["message", "react", "response"]
