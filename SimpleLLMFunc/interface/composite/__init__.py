"""Models made of models: the next one when one is down (`FallbackLLM`), answers kept in a file (`CachedLLM`)."""
