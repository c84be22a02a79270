"""The way from the views of a function to `batch`, whose modules are loaded when one of them is used.

A start need not pay for what only work over many rows needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["map_rows", "ray_actor", "read_batch_file", "to_batch_file"]

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import map_rows, read_batch_file, to_batch_file
    from SimpleLLMFunc.batch.ray import ray_actor
else:

    def map_rows(*args: Any, **kwargs: Any) -> Any:
        """Do what `SimpleLLMFunc.batch.map_rows` does."""
        from SimpleLLMFunc.batch import map_rows as work

        return work(*args, **kwargs)

    def ray_actor(*args: Any, **kwargs: Any) -> Any:
        """Do what `SimpleLLMFunc.batch.ray.actor.ray_actor` does."""
        from SimpleLLMFunc.batch.ray import ray_actor as work

        return work(*args, **kwargs)

    def read_batch_file(*args: Any, **kwargs: Any) -> Any:
        """Do what `SimpleLLMFunc.batch.batch_file.read_batch_file` does."""
        from SimpleLLMFunc.batch import read_batch_file as work

        return work(*args, **kwargs)

    def to_batch_file(*args: Any, **kwargs: Any) -> Any:
        """Do what `SimpleLLMFunc.batch.batch_file.to_batch_file` does."""
        from SimpleLLMFunc.batch import to_batch_file as work

        return work(*args, **kwargs)
