"""The batches of a service: the rows of a map as files of requests, at half the price."""

__all__ = ["answer_store", "engine", "lines", "run", "service"]
