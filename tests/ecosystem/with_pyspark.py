# /// script
# dependencies = ["pyspark", "pandas", "pyarrow", "cloudpickle"]
# ///
"""Functions of a script, and `with_options` of one, on two Spark workers: `rdd.map`, a UDF, `mapInPandas`, and in each task a map."""

import shutil
from collections.abc import Iterator

import pandas
from pydantic import BaseModel
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from scene import answers, check, seen, skip

from SimpleLLMFunc import OpenAICompatible, llm_function


class Note(BaseModel):
    text: str


@llm_function(OpenAICompatible("m"))
def shout(word: str) -> str:
    """Shout."""


@llm_function(OpenAICompatible("m"))
def note(about: str) -> Note:
    """Take a note."""


def mapped(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
    for frame in frames:
        report = shout.map(frame, progress=False)
        yield pandas.DataFrame({"word": frame["word"], "said": [row.value for row in report.rows]})


if __name__ == "__main__":
    if shutil.which("java") is None:
        skip("it takes Java")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    words = [f"word {number}" for number in range(6)]
    answers(*['{"text": "hi"}'] * 3)
    notes = spark.sparkContext.parallelize(words[:3], 2).map(note.with_options(temperature=0)).collect()
    check("values by `rdd.map`", notes, [Note(text="hi")] * 3)
    frame = spark.createDataFrame([(word,) for word in words], "word string").repartition(2)
    rows = frame.select("word", udf(shout, "string")("word").alias("said")).collect()
    check("a UDF", sorted(row.word for row in rows if row.word in row.said), words)
    rows = frame.mapInPandas(mapped, "word string, said string").collect()
    check("`mapInPandas`", sorted(row.word for row in rows if row.word in row.said), words)
    spark.stop()
    seen("15 answers from worker processes, typed ones of the type of the script")
