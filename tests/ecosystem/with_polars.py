# /// script
# dependencies = ["polars", "SimpleLLMFunc[frames]"]
# ///
"""A `LazyFrame` and a `DataFrame` as the rows of a map, the first five of a million; the report as a frame."""

import polars
from scene import check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function
from SimpleLLMFunc.batch import RowSource


@llm_function(OpenAICompatible("m"))
def echo(text: str) -> str:
    """Echo."""


lazy = polars.LazyFrame({"id": range(1_000_000)}).with_columns(text=polars.format("row {}", "id"))
for given in (lazy, lazy.head(10).collect()):
    report = echo.map(RowSource(given, limit=5), progress=False)
    check("rows", [row.row["id"] for row in report.rows], list(range(5)))
    found = polars.DataFrame(report).filter(polars.col("value").str.contains("row"))
    check("the report as a frame", found["id"].to_list(), list(range(5)))
seen("5 rows of each; `polars.DataFrame(report)` has their answers")
