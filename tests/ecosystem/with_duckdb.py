# /// script
# dependencies = ["duckdb", "SimpleLLMFunc[frames]"]
# ///
"""A relation of a million rows as the rows of a map, the first five; the report as a table of SQL."""

import resource

import duckdb
from scene import check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function
from SimpleLLMFunc.batch.rows.rows import RowSource


@llm_function(OpenAICompatible("m"))
def echo(text: str) -> str:
    """Echo."""


relation = duckdb.sql("select range as id, 'row ' || range as text from range(1000000)")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = echo.map(RowSource(relation, limit=5), progress=False)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
check("rows", [row.row["id"] for row in report.rows], list(range(5)))
found = duckdb.sql("select id, value like '%row ' || id || '%' from report where id > 2").fetchall()
check("the report in SQL", found, [(3, True), (4, True)])
seen(f"5 rows of a million were read, memory grew by {grown} MB; `FROM report` gave them back")
