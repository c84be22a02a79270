"""What a function was really asked and answered, out of a trace store: as cases, as examples, for fine-tuning."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.batch import replaced_whole
from SimpleLLMFunc.errors import SignatureError, UsageError
from SimpleLLMFunc.evaluate.run import checked_function
from SimpleLLMFunc.llm_decorator.decorated import Function, pipeline_of
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.function.examples import Example, ExampleReader
from SimpleLLMFunc.logger import MASK
from SimpleLLMFunc.observability.store import RunDetail, RunQuery, TraceReader, TraceStore, is_omitted

ExportForm: TypeAlias = Literal["cases", "examples", "fine-tuning"]
"""``{"args", "expected", "id"}`` for `evaluate`; ``{"args", "value"}`` for `examples=`; ``{"messages"}`` for a service
that tunes models."""

_PAGE = 500
_LONG = 200
"""Characters; a store cuts no shorter text."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Attributes:
        written: lines.
        skipped: recorded runs that were left out, by why.
    """

    written: int
    skipped: dict[str, int] = field(default_factory=dict)


def export_examples(
    store: TraceStore | TraceReader | str | os.PathLike[str],
    f: Function,
    path: str | os.PathLike[str],
    *,
    form: ExportForm = "cases",
    version: str | None = None,
    limit: int | None = None,
    where: Callable[[RunDetail], bool] | None = None,
) -> Exported:
    """Write the recorded runs of `f` to a JSONL file, the newest first; of runs with the same arguments the newest.

    A recorded answer may be wrong: read the file before you use it as a reference. The store masks
    keys and cuts long texts; runs whose arguments or value were cut, left out or masked so that they do not fit the
    function's types are skipped, and counted.

    Args:
        store: the trace store, its reader, or the path of its file.
        f: the function; runs are found by its name.
        path: of the file to write; one that is there is replaced when all is read.
        form: what the lines are for.
        version: only runs of this version; None takes all whose arguments and value still fit.
        limit: at most so many lines.
        where: only runs for which it says True: ``lambda run: not run.summary.reasks``.

    Raises:
        ConfigError: there is no such store, or the file cannot be written.
        UsageError: `form` is unknown, or `f` is not a decorated function.
    """
    pipeline = pipeline_of(checked_function(f, "export_examples"))
    if form not in ("cases", "examples", "fine-tuning"):
        raise UsageError(f'form is "cases", "examples" or "fine-tuning", not {form!r}.')
    if isinstance(store, TraceStore):
        store.flush()
        reader = store.reader
    else:
        reader = store if isinstance(store, TraceReader) else TraceReader(store)
    skipped: Counter[str] = Counter()
    written = 0
    query = RunQuery(function=pipeline.definition.name, status="ok", version=version)
    try:
        with replaced_whole(path) as part, part.open("w", encoding="utf-8") as file:
            for line in islice(_lines(pipeline, _runs(reader, query), form, where, skipped), limit):
                file.write(line + "\n")
                written += 1
    finally:
        if isinstance(store, (str, os.PathLike)):
            reader.close()
    return Exported(written, dict(skipped))


def _runs(reader: TraceReader, query: RunQuery) -> Iterator[RunDetail]:
    after: str | None = None
    while True:
        page = reader.runs(query, limit=_PAGE, after=after)
        for summary in page.runs:
            if (detail := reader.run(summary.id)) is not None:
                yield detail
        after = page.next
        if after is None:
            return


def _lines(
    pipeline: FunctionPipeline,
    runs: Iterator[RunDetail],
    form: ExportForm,
    where: Callable[[RunDetail], bool] | None,
    skipped: Counter[str],
) -> Iterator[str]:
    """Yield a line for each run that can be used; count the others by why they cannot."""
    definition = pipeline.definition
    reader = ExampleReader(definition.name, definition.signature, definition.hints, definition.output)
    seen: set[str] = set()
    for run in runs:
        arguments = run.arguments
        known = json.dumps(arguments, sort_keys=True)
        if where is not None and not where(run):
            why = "not wanted"
        elif not isinstance(arguments, dict) or is_omitted(arguments) or is_omitted(run.value):
            why = "recorded without content"
        elif known in seen:
            why = "the same arguments again"
        elif is_changed(arguments) or is_changed(run.value):
            why = "a text was cut or masked"
        elif run.incomplete:
            why = "recorded in part"
        else:
            try:
                example = reader.read((arguments, run.value), f"run {run.summary.trace_id}", is_json=True)
            except SignatureError:
                why = "does not fit the function"
            else:
                seen.add(known)
                yield json.dumps(_record(pipeline, form, run, example), ensure_ascii=False)
                continue
        skipped[why] += 1


def _record(pipeline: FunctionPipeline, form: ExportForm, run: RunDetail, example: Example) -> dict[str, Any]:
    if form == "fine-tuning":
        return {"messages": pipeline.lesson(example)}
    if form == "examples":
        return {"args": run.arguments, "value": example.answer}
    return {"args": run.arguments, "expected": example.answer, "id": run.summary.trace_id}


def is_changed(value: Any) -> bool:
    """Return whether a text in the value looks as the store leaves one that was too long, or held a key."""
    if isinstance(value, str):
        return MASK in value or (len(value) >= _LONG and value.endswith("…"))
    if isinstance(value, dict):
        return any(map(is_changed, value.values()))
    return isinstance(value, list) and any(map(is_changed, value))
