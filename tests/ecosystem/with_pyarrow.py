# /// script
# dependencies = ["pyarrow", "SimpleLLMFunc[frames]"]
# ///
"""A table, a record batch, and an object with nothing but `__arrow_c_stream__`, as the rows of a map; the report as a table."""

import pyarrow
from scene import check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


@llm_function(OpenAICompatible("m"))
def echo(text: str) -> str:
    """Echo."""


class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return table.__arrow_c_stream__(requested_schema)


table = pyarrow.table({"id": [1, 2, 3], "text": ["a", "b", "c"]})
for given in (table, table.to_batches()[0], Stream()):
    report = echo.map(given, progress=False)
    check("rows", [row.row["id"] for row in report.rows], [1, 2, 3])
    check("the report as a table", pyarrow.table(report)["id"].to_pylist(), [1, 2, 3])
seen("9 rows, each answered; `pyarrow.table(report)` gave them back")
