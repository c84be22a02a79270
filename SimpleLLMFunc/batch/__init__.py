"""One function over many rows."""

from SimpleLLMFunc.batch.batch_file import read_batch_file, to_batch_file
from SimpleLLMFunc.batch.checkpoint.checkpoint import Checkpoint, CheckpointStatus, VersionStatus
from SimpleLLMFunc.batch.local import LocalMap
from SimpleLLMFunc.batch.map import map_rows
from SimpleLLMFunc.batch.options import (
    Budget,
    Engine,
    EngineName,
    MapOptions,
    RayEngine,
    RunOptions,
    check_options,
    limits,
)
from SimpleLLMFunc.batch.progress import Progress
from SimpleLLMFunc.batch.report import MapCounts, MapReport, MapRow, MapRows, check_output_path, replaced_whole
from SimpleLLMFunc.batch.rows.rows import RowSource
from SimpleLLMFunc.batch.rows.tables import json_lines

__all__ = [
    "Checkpoint", "CheckpointStatus", "Engine", "MapCounts", "MapOptions", "MapReport", "MapRow", "MapRows", "RayEngine",
    "RowSource", "RunOptions", "VersionStatus", "map_rows",
]  # fmt: skip
__all__ += [
    "Budget", "EngineName", "LocalMap", "Progress", "check_options", "check_output_path", "checkpoint", "json_lines",
    "limits", "ray", "read_batch_file", "replaced_whole", "rows", "to_batch_file",
]  # fmt: skip  # for other rooms
