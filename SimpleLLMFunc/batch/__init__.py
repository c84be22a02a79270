"""One function over many rows."""

from SimpleLLMFunc.batch.checkpoint.checkpoint import Checkpoint, CheckpointStatus, VersionStatus
from SimpleLLMFunc.batch.map import map_rows
from SimpleLLMFunc.batch.options import Engine, MapOptions, RayEngine
from SimpleLLMFunc.batch.report import MapCounts, MapReport, MapRow, MapRows
from SimpleLLMFunc.batch.rows.rows import RowSource

__all__ = [
    "Checkpoint",
    "CheckpointStatus",
    "Engine",
    "MapCounts",
    "MapOptions",
    "MapReport",
    "MapRow",
    "MapRows",
    "RayEngine",
    "RowSource",
    "VersionStatus",
    "map_rows",
]
