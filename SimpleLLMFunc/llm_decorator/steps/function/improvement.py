"""The file that `f.improve` writes and `with_options(improvement=...)` reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, Final

from SimpleLLMFunc.base.metadata import FunctionMetadata
from SimpleLLMFunc.config import json_of_file
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.steps.common.types import ExampleLines

KIND: Final = "simplellmfunc-improvement"
"""Tells the file from any other JSON."""

_FORMAT: Final = 1
_OPTIONS: Final = frozenset(
    {"calibration", "examples", "max_examples", "output_mode", "system_prompt_template", "think_first"}
)
_WORDING: Final = frozenset({"docstring", "descriptions"})


@dataclass(frozen=True)
class Improvement:
    """Other options and another wording for one version of one function.

    Attributes:
        options: JSON data by name: arguments of the decorator, "examples" as the lines of a file of examples, "calibration" as
            in its own file; "docstring"; and "descriptions" by the path of the field. Empty where nothing better was found.
        version: of the function that it was found for.
        source: the file, or "".
        is_checked: the function that has it is of this version.
        replaced: the options of the function before, by name.
        report: all that the file holds.
    """

    options: Mapping[str, Any]
    version: str = ""
    source: str = ""
    is_checked: bool = False
    replaced: Mapping[str, Any] = field(default_factory=dict, compare=False)
    report: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, given: Any) -> Improvement | None:
        """Return what `improvement=` was given: one, the path of a file, or None.

        Raises:
            ConfigError: there is no such file, or `f.improve` did not write it.
        """
        if given is None or isinstance(given, Improvement):
            return given
        data = json_of_file(given, "an improvement")
        if not isinstance(data, dict) or data.get("kind") != KIND or data.get("format") != _FORMAT:
            raise ConfigError(f"{os.fspath(given)!r} is not a file that f.improve(path=...) wrote.")
        options = data.get("options")
        if not isinstance(options, dict) or not all(starmap(_is_option, options.items())):
            known = ", ".join(sorted(_OPTIONS | _WORDING))
            raise ConfigError(f'{os.fspath(given)!r}: "options" is an object with some of {known}. Run improve again.')
        return cls(options, str(data.get("version")), os.fspath(given), report=data)

    @staticmethod
    def file_text(data: Mapping[str, Any]) -> str:
        """Return the text of the file that holds this data; an example is one line."""
        examples = data["options"].get("examples") or []
        marks = [f"\0{number}\0" for number in range(len(examples))]
        options = {**data["options"], **({"examples": marks} if marks else {})}
        shown = {"kind": KIND, "format": _FORMAT, **data, "options": options}
        text = json.dumps(shown, ensure_ascii=False, indent=2) + "\n"
        for mark, example in zip(marks, examples, strict=True):
            text = text.replace(json.dumps(mark), json.dumps(example, ensure_ascii=False))
        return text

    def check(self, about: FunctionMetadata) -> None:
        """Return if it was found for this version of the function.

        Raises:
            ConfigError: it was not.
        """
        if self.version != about.version:
            made_for = self.report.get("function", "")
            raise ConfigError(
                f"{self.source!r} was made for version {self.version} of {made_for}, and {about.place or about.name} is "
                f"version {about.version} now. Run improve again for it."
            )

    @property
    def decorator_options(self) -> dict[str, Any]:
        """Its arguments of the decorator, as that takes them."""
        found = {name: value for name, value in self.options.items() if name in _OPTIONS}
        where = self.source or "the improvement"
        if (lines := found.get("examples")) is not None:
            found["examples"] = ExampleLines([(f"example {at} of {where}", line) for at, line in enumerate(lines, 1)])
        if found.get("calibration") is not None:
            found["calibration"] = Calibration.of_data(found["calibration"], f"calibration of {where}")
        return found

    @property
    def wording(self) -> dict[str, Any]:
        """Its docstring and descriptions, where it has any."""
        return {name: value for name, value in self.options.items() if name in _WORDING}

    def __str__(self) -> str:
        return f"{self.source or 'unsaved'} ({', '.join(self.options) or 'nothing changed'})"


def _is_option(name: str, value: Any) -> bool:
    """Return whether the options of a file may have this one; the decorator checks its own arguments itself."""
    match name:
        case "docstring":
            return isinstance(value, str)
        case "descriptions":
            return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
        case "examples":
            return value is None or (isinstance(value, list) and all(isinstance(line, dict) for line in value))
    return name in _OPTIONS
