"""The tasks: their rows, what a user would write as docstring and type, and how an answer is scored."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model

DATA = Path(__file__).parent / "data"
ORDER = (
    "sentiment",
    "question_type",
    "news_topic",
    "bank_intent",
    "restaurant_record",
    "word_problem",
    "function_call",
    "chinese_record",
)
Row = dict[str, Any]


class Call(BaseModel):
    """The chosen function and its arguments."""

    function: str = Field(description="the name of the chosen function")
    arguments: dict[str, str | int | float | bool] = Field(description="its arguments by name")


@dataclass(frozen=True)
class Score:
    """What an answer is worth: exact or not, and for records the fields found, made up and missed."""

    exact: bool
    found: int = 0
    made_up: int = 0
    missed: int = 0


class Task:
    """One task.

    Attributes:
        name: its name, which is the name of the function too.
        kind: choice, record, number or call.
        instruction: the docstring.
    """

    def __init__(self, name: str) -> None:
        told = json.loads((DATA / f"{name}.json").read_text("utf-8"))
        self.name, self.kind, self.instruction = name, told["kind"], told["instruction"]
        self.labels: tuple[str, ...] = tuple(told["type"].get("labels", ()))
        self._fields: dict[str, str] = told["type"].get("fields", {})
        self._meanings: dict[str, str] = told["type"]["meanings"]

    @cached_property
    def rows(self) -> list[Row]:
        """All rows; their ids tell the split."""
        text = gzip.decompress((DATA / f"{self.name}.jsonl.gz").read_bytes()).decode()
        return [json.loads(line) for line in text.splitlines()]

    def split(self, name: str) -> list[Row]:
        return [row for row in self.rows if row["id"].startswith(f"{self.name}-{name}-")]

    @cached_property
    def type(self) -> Any:
        """What a function of the task returns: the same for all contenders."""
        if self.kind == "choice":
            return Literal[self.labels]
        if self.kind == "number":
            return int
        if self.kind == "call":
            return Call
        kinds = {name: Literal[self.labels] if "Literal" in kind else str | None for name, kind in self._fields.items()}
        fields: Any = {name: (kind, Field(description=self._meanings[name])) for name, kind in kinds.items()}
        return create_model("".join(word.title() for word in self.name.split("_")), **fields)

    @cached_property
    def model(self) -> type[BaseModel]:
        """The type as a pydantic model, for those who take nothing else: `answer` holds a value that is none."""
        is_model = self.kind in {"record", "call"}
        return self.type if is_model else create_model("Answer", answer=(self.type, ...))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters and their types."""
        return {name: str if isinstance(value, str) else list[Any] for name, value in self.rows[0]["input"].items()}

    def text(self, given: dict[str, Any]) -> str:
        """Return the arguments as one text, for those who write their own prompt."""
        texts = [value if isinstance(value, str) else _functions_text(value) for value in given.values()]
        return "\n\n".join(texts)

    def function(self, *, is_async: bool = False) -> Any:
        """Return the function that a user would write, to be decorated."""
        head = f"{'async ' * is_async}def {self.name}({', '.join(self.parameters)}):\n    {self.instruction!r}\n"
        space: dict[str, Any] = {}
        exec(compile(f"{head}    raise NotImplementedError", f"<{self.name}>", "exec"), space)
        made = space[self.name]
        made.__annotations__ = {**self.parameters, "return": self.type}
        return made

    def fits(self, value: Any) -> bool:
        """Whether a value, records as dicts, is of the type that was asked for."""
        if self.kind in {"record", "call"}:
            kind, is_same = self.type, isinstance(value, dict)
        else:
            kind, is_same = self.type, not isinstance(value, bool)
        try:
            TypeAdapter(kind).validate_python(value, strict=True)
        except ValidationError:
            return False
        return is_same

    def score(self, row: Row, value: Any) -> Score:
        """Compare a value of the right type, or None for no answer, with what was expected."""
        if self.kind == "record":
            return _fields_score(row["expected"], value or dict.fromkeys(self._fields))
        if self.kind == "call":
            return Score(value is not None and _is_accepted(row, value))
        return Score(value == row["expected"])

    def judged(self, row: Row, told: dict[str, Any]) -> dict[str, Any]:
        """Return what came of a row: `kind` is right, wrong, type (a value of another one, silently) or error.

        Args:
            row: what was asked.
            told: the `value`, as JSON has it, or the `problem`.
        """
        value = told.get("value")
        is_typed = "value" in told and self.fits(value)
        score = self.score(row, value if is_typed else None)
        kind = "error" if "problem" in told else "type" if not is_typed else "right" if score.exact else "wrong"
        said = told.get("problem") or json.dumps(value, ensure_ascii=False)
        return {"id": row["id"], "kind": kind, **asdict(score), "said": said[:300]}


def _functions_text(functions: list[Any]) -> str:
    return "Functions:\n" + "\n".join(json.dumps(each, ensure_ascii=False) for each in functions)


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, BaseModel):
        return {name: plain(each) for name, each in value}
    return plain(value.value) if isinstance(value, Enum) else value


def _bare(value: Any) -> Any:
    """Strings are compared without case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", value.lower()) if isinstance(value, str) else value


def _fields_score(expected: dict[str, Any], value: dict[str, Any]) -> Score:
    same = [name for name in expected if _bare(value.get(name)) == _bare(expected[name])]
    found = sum(expected[name] is not None for name in same)
    wanted, given = (sum(each is not None for each in fields.values()) for fields in (expected, value))
    return Score(len(same) == len(expected), found, given - found, wanted - found)


def _is_accepted(row: Row, value: dict[str, Any]) -> bool:
    required, optional = row["accept"]["required"], row["accept"]["optional"]
    given = value["arguments"]
    if value["function"] != row["expected"]["function"] or not set(required) <= set(given):
        return False
    return all(
        any(_bare(each) == _bare(wanted) and isinstance(each, bool) == isinstance(wanted, bool) for wanted in accepted)
        for name, each in given.items()
        for accepted in [required.get(name) or optional.get(name) or []]
    )


def f1(scores: list[Score]) -> float:
    """Return the F1 of the fields that are not null, over all rows together."""
    found, wrong = sum(each.found for each in scores), sum(each.made_up + each.missed for each in scores)
    return 2 * found / (2 * found + wrong) if found else 0.0


# --- the bars: answers without a model -----------------------------------------------------------------------


def constant(task: Task) -> Any:
    """Return the one answer that is best on train; None where there is none."""
    wanted = [row["expected"] for row in task.split("train")]
    if task.kind == "call":
        return None
    if task.kind != "record":
        return Counter(wanted).most_common(1)[0][0]
    best: dict[str, Any] = dict.fromkeys(wanted[0])
    common = {name: Counter(each[name] for each in wanted if each[name]).most_common(1)[0] for name in best}
    for name, (value, _) in sorted(common.items(), key=lambda item: -item[1][1]):
        must = all(each[name] for each in wanted)  # the category
        options = [{**best, name: value}] if must else [{**best, name: value}, best]
        best = max(options, key=lambda option: f1([_fields_score(each, option) for each in wanted]))
    return best


class NaiveBayes:
    """Multinomial naive Bayes over the words of train, add-one smoothing: no model at all."""

    def __init__(self, task: Task) -> None:
        self._counts: dict[str, Counter[str]] = {label: Counter() for label in task.labels}
        for row in task.split("train"):
            self._counts[row["expected"]].update(_words(row))
        self._size = len(set().union(*self._counts.values()))

    def __call__(self, row: Row) -> str:
        def likelihood(label: str) -> float:
            counts = self._counts[label]
            total = counts.total() + self._size
            return sum(math.log((counts[word] + 1) / total) for word in _words(row))

        return max(self._counts, key=likelihood)


def _words(row: Row) -> list[str]:
    return [word for value in row["input"].values() for word in re.findall(r"\w+", str(value).lower())]
