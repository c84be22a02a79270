"""A map on a Ray cluster: the same rows, checkpoint and budget, asked by actors on other machines."""

from __future__ import annotations

from SimpleLLMFunc.batch.ray.actor import RayActor, ray_actor
from SimpleLLMFunc.batch.ray.engine import asked_on_ray

__all__ = ["RayActor", "asked_on_ray", "ray_actor"]
