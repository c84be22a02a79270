"""Steps of `@llm_chat`."""
