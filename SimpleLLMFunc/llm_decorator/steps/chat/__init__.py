"""The steps of `@llm_chat`: its messages, the stream of raw responses, and the pairs that become of it."""

__all__ = ["message", "react", "response", "trimming"]
