# /// script
# dependencies = ["datasets", "SimpleLLMFunc[frames]"]
# ///
"""A `Dataset`, a selection of one and an `IterableDataset` as the rows of a map; the report as a `Dataset`."""

import pyarrow
from datasets import Dataset
from scene import check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


@llm_function(OpenAICompatible("m"))
def echo(text: str) -> str:
    """Echo."""


whole = Dataset.from_dict({"text": [f"row {number}" for number in range(10)], "label": list(range(10))})
for rows, wanted in ((whole, 10), (whole.select([3, 4]), 2), (whole.to_iterable_dataset(), 10)):
    report = echo.map(rows, progress=False)
    check("rows", len(report.rows), wanted)
    check("right", all(row.row["text"] in row.value for row in report.rows), True)
back = Dataset(pyarrow.table(echo.map(whole.select([3]), progress=False)))
check("back", (back[0]["label"], back.column_names), (3, ["text", "label", "value", "error"]))
seen("22 rows, each answered; columns that are no parameters stayed in the report")
