"""The steps of `@llm_function`: its prompt, the loop, and the response as a value of the annotated type."""

__all__ = ["answers", "examples", "improvement", "prompt", "react", "response", "stream", "templates"]
