"""The batches of a service: the rows of a map as files of requests, at half the price, sent and fetched by us or by hand."""

__all__ = ["answer_store", "engine", "lines", "run", "service"]
