"""A map on a Ray cluster: the same rows, checkpoint and budget, asked by actors on other machines."""

__all__ = ["cluster", "engine"]
