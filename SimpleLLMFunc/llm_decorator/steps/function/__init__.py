"""Steps of `@llm_function`."""
