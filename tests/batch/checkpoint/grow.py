"""The memory of a map with many rows and an instant model: ``python -m tests.batch.checkpoint.grow ROWS [CHECKPOINT]`` prints it as JSON."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time

from SimpleLLMFunc.base.run.mappable import Answer
from SimpleLLMFunc.batch import map_rows
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type.usage import Usage
from tests.batch.ray.ray_app import Word, read


class Instant(MappedFunction[Word]):
    """The function, answered without a run: what is measured is the map."""

    async def ask(self, args, kwargs):
        await asyncio.sleep(0)
        value = Word(number=int(args[0].rsplit(" ", 1)[1]), words=["one", args[0]])
        return Answer(value, value.model_dump_json(), "native", Usage(5, 3), 1)


async def main(count: int, checkpoint: str | None) -> dict[str, float]:
    began = time.monotonic()
    texts = (f"row number {number}" for number in range(count))
    asked = Instant(read.with_options(llm_interface=ScriptedLLM())._pipeline)
    report = await map_rows(asked, texts, concurrency=100, checkpoint=checkpoint, progress=False)
    mapped = time.monotonic() - began
    assert report.counts.asked == count
    total = sum(row.value.number for row in report.rows)
    assert total == count * (count - 1) // 2
    return {
        "rows": count, "seconds": mapped, "reading": time.monotonic() - began - mapped, "cpu": time.process_time(),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))))
