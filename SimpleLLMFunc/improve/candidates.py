"""What is tried: examples in the prompt, a calibration, the output mode, the length of the prompt."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.schemas import choose_output_mode
from SimpleLLMFunc.errors import ConfigError, SignatureError
from SimpleLLMFunc.evaluate.cases import UNKNOWN, CheckedCase
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.improving import Change
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.steps.function import templates
from SimpleLLMFunc.llm_decorator.steps.function.examples import ExampleReader
from SimpleLLMFunc.llm_decorator.steps.function.improvement import Improvement

_RETURNED = "\n\nReturn value:\n{return_type_description}"


@dataclass(frozen=True)
class Candidate:
    """A form of the function.

    Attributes:
        changes: from the function as it was; none for that itself.
        options: of an `Improvement`.
    """

    changes: tuple[Change, ...]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return "; ".join(f"{change.what}: {change.now}" for change in self.changes) or "as it was"

    def joined(self, other: Candidate) -> Candidate | None:
        """Return both changes together; None where they change the same thing, or a calibration is for another prompt."""
        whats = [{change.what for change in each.changes} for each in (self, other)]
        if whats[0] & whats[1] or any(CALIBRATION in each for each in whats):
            return None
        return Candidate(self.changes + other.changes, {**self.options, **other.options})

    def is_possible(self, pipeline: FunctionPipeline) -> bool:
        """Return whether the function, and its model, can be asked so."""
        try:
            pipeline.with_options({"improvement": Improvement(self.options, is_checked=True)})
        except ConfigError:
            return False
        return True


AS_IT_WAS = Candidate((), {})
CALIBRATION = "calibration"


def candidates_of(pipeline: FunctionPipeline, train: Sequence[dict[str, Any]], seed: int) -> list[Candidate]:
    """Return what can be tried for a function, what is most promising first.

    Args:
        pipeline: of the function.
        train: lines of examples to take from.
        seed: of what is drawn.
    """
    kinds = [_with_examples(pipeline, train, seed), _output_modes(pipeline), _prompts(pipeline), _thinking(pipeline)]
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    return [each for each in in_turn if each is not None and each.is_possible(pipeline)]


def calibrated(pipeline: FunctionPipeline, calibration: Calibration) -> Candidate:
    """Return the candidate that a calibration of the function as it was is."""
    was = "none" if pipeline.options.calibration is None else "as given"
    assert calibration.report is not None, "it was made now"
    change = Change(CALIBRATION, was, f"fitted on {calibration.report.rows} cases")
    return Candidate((change,), {"calibration": json.loads(json.dumps(calibration.as_data()))})


# --- examples -------------------------------------------------------------------------------------------------


def example_lines(cases: Sequence[CheckedCase], reader: ExampleReader) -> list[dict[str, Any]]:
    """Return the cases as the lines of a file of examples; those that cannot be written as JSON are left out."""
    lines = []
    for case in cases:
        if case.expected is UNKNOWN or reader.output.is_none:
            continue
        try:
            line = {"args": to_jsonable_python(case.arguments), "value": case.wanted}
            reader.read((line["args"], line["value"]), case.id, is_json=True)
        except (SignatureError, PydanticSerializationError, TypeError, ValueError):
            continue  # a picture, or an argument that only Python can make
        lines.append(line)
    return lines


def _with_examples(pipeline: FunctionPipeline, train: Sequence[dict[str, Any]], seed: int) -> Iterator[Candidate]:
    own = pipeline.examples
    was = "none" if own is None else f"{len(own)}, at most {pipeline.options.max_examples} shown"
    many = len(train)

    def candidate(lines: Sequence[dict[str, Any]], most: int, now: str) -> Candidate:
        return Candidate((Change("examples", was, now),), {"examples": list(lines), "max_examples": most})

    if len(train) >= 2:
        chance = random.Random(f"examples {seed}")  # noqa: S311 - a draw, no secret
        yield candidate(train, 8, f"of {many} the 8 most like the arguments")
        if balanced := _balanced(train, 8, chance):
            yield candidate(balanced, len(balanced), f"{len(balanced)}, the same number of each answer")
        yield candidate(train, 3, f"of {many} the 3 most like the arguments")
        for number, count in enumerate((8, 4, 8, 16, 4), 1):
            if count <= many:
                yield candidate(chance.sample(train, count), count, f"{count} drawn at random (draw {number})")
        yield candidate(train, 16, f"of {many} the 16 most like the arguments")
    if own is not None:
        yield Candidate((Change("examples", was, "none"),), {"examples": None})


def _balanced(train: Sequence[dict[str, Any]], count: int, chance: random.Random) -> list[dict[str, Any]]:
    """Return examples with every answer equally often, in random order; empty where the answers are no classes."""
    by_answer: dict[str, list[dict[str, Any]]] = {}
    for line in chance.sample(train, len(train)):
        by_answer.setdefault(json.dumps(line["value"], sort_keys=True), []).append(line)
    if not 2 <= len(by_answer) <= min(16, len(train) // 2):
        return []
    each = max(1, count // len(by_answer))
    found = [line for lines in by_answer.values() for line in lines[:each]]
    return chance.sample(found, len(found))


# --- how the answer is asked for ------------------------------------------------------------------------------


def _mode_now(pipeline: FunctionPipeline) -> str:
    output, asked = pipeline.definition.output, pipeline.options.output_mode
    return choose_output_mode(output, pipeline.llm.profile, asked, has_tools=bool(pipeline.tools.specs))[0]


def _output_modes(pipeline: FunctionPipeline) -> Iterator[Candidate]:
    now, profile = _mode_now(pipeline), pipeline.llm.profile
    if now == "text":
        return
    impossible = {"auto", "text", now, *(() if profile.native else ("native",))}
    impossible |= set() if profile.tools == "native" else {"tool"}
    for mode in get_args(OutputMode):
        if mode not in impossible:
            yield Candidate((Change("output mode", now, mode),), {"output_mode": mode})


def _prompts(pipeline: FunctionPipeline) -> Iterator[Candidate]:
    if pipeline.options.system_prompt_template is not None:
        return  # the user's own
    returned = _RETURNED if _mode_now(pipeline) == "prompt" else ""
    change, template = Change("prompt", "long", "short"), templates.SHORT_SYSTEM_PROMPT_TEMPLATE + returned
    if pipeline.llm.profile.short_prompt and not returned:
        change, template = Change("prompt", "short", "long"), templates.PLAIN_SYSTEM_PROMPT_TEMPLATE
    yield Candidate((change,), {"system_prompt_template": template})


def _thinking(pipeline: FunctionPipeline) -> Iterator[Candidate]:
    was = pipeline.options.think_first
    words = {True: "reasons before the value", False: "the value alone"}
    yield Candidate((Change("think first", words[was], words[not was]),), {"think_first": not was})
