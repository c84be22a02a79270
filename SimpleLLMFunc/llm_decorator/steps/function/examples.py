"""Examples for the prompt: checked once, and chosen for each call."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from SimpleLLMFunc.base.messages import render_value
from SimpleLLMFunc.base.parsing import QuoteCheck
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.base.type_resolve import is_multimodal_type
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError, SignatureError, UsageError
from SimpleLLMFunc.llm_decorator.steps.common.arguments import problems_of
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.signature import bind_function_arguments, type_of_argument
from SimpleLLMFunc.llm_decorator.steps.common.types import ExampleLines, GivenExamples
from SimpleLLMFunc.llm_decorator.steps.function.answers import as_answer
from SimpleLLMFunc.logger import shown_value
from SimpleLLMFunc.tools import TextIndex, best_of


@dataclass(frozen=True, slots=True)
class Example:
    """One call and what it should return.

    Attributes:
        arguments: by parameter name, defaults applied.
        value: of the return type.
        answer: `value` as the JSON that a model writes, not wrapped; for a function that returns text, the text.
    """

    arguments: dict[str, Any]
    value: Any
    answer: Any


@dataclass(frozen=True, slots=True)
class ExampleReader:
    """Checks examples against a function: the arguments against its parameters, the value against its return type.

    Attributes:
        name: of the function.
        signature: its parameters, without `self`.
        hints: the resolved annotations of the parameters.
        output: its return type.
    """

    name: str
    signature: inspect.Signature
    hints: Mapping[str, Any]
    output: OutputSpec

    def read(self, given: Any, where: str, *, is_json: bool = False) -> Example:
        """Return the example that `given`, a pair of arguments and value, is.

        Args:
            given: the pair.
            where: what it is called in an error.
            is_json: it comes from a file, and a list of arguments is meant one by one.

        Raises:
            SignatureError: it does not fit the function; says which one and why.
        """
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise SignatureError(f"{self.name}: {where} is {_shown(given)}. An example is a pair: (arguments, value).")
        arguments = self.arguments(given[0], where, is_json=is_json)
        value, answer = self.value(given[1], where, is_json=is_json)
        self.check_quotes(value, arguments, where)
        return Example(arguments, value, answer)

    def check_quotes(self, value: Any, arguments: Mapping[str, Any], where: str) -> None:
        """Set the places of the quotes in a value.

        Raises:
            SignatureError: no argument contains one of them.
        """
        if self.output.quotes and (violations := QuoteCheck(arguments)(value)):
            path, expected, got = violations[0]
            raise SignatureError(f"{self.name}: {where}: {path or 'the value'} is {got}, not {expected}.")

    def arguments(self, given: Any, where: str, *, is_json: bool = False) -> dict[str, Any]:
        """Return the arguments by name, defaults applied, each of the type of its parameter.

        Raises:
            SignatureError: they do not fit.
        """
        args, kwargs = split_arguments(given, self.signature, is_json=is_json)
        bound = bind_function_arguments(self.signature, args, kwargs, f"{self.name}: the arguments of {where}: ")
        return {name: self._argument(name, value, where, is_json) for name, value in bound.arguments.items()}

    def _argument(self, name: str, value: Any, where: str, is_json: bool) -> Any:
        parameter = self.signature.parameters[name]
        if name not in self.hints or value is parameter.default:
            return value
        hint = type_of_argument(parameter, self.hints)
        return self._fitting(_adapter_of(hint), hint, value, f"{where}: argument {name!r}", is_json)

    def value(self, given: Any, where: str, *, is_json: bool = False) -> tuple[Any, Any]:
        """Return the value as the return type has it, and as JSON data.

        Raises:
            SignatureError: it does not fit.
        """
        output = self.output
        value = self._fitting(output.adapter, output.return_type, given, f"{where}: the value", is_json)
        try:
            answer = as_answer(output, value)
            if not output.is_text:
                # Shown to the model, so it must be an answer that would be taken.
                output.parse(json.dumps(answer, ensure_ascii=False), "off")
        except (TypeError, ValueError) as error:
            raise SignatureError(
                f"{self.name}: {where}: the value {_shown(value)} cannot be shown as JSON that reads as the same: {error}"
            ) from error
        return value, answer

    def _fitting(self, adapter: TypeAdapter[Any] | None, hint: Any, value: Any, about: str, is_json: bool) -> Any:
        if adapter is None or is_multimodal_type(hint):
            expected = hint if isinstance(hint, type) else None
            if is_json and is_multimodal_type(hint):
                raise SignatureError(
                    f"{self.name}: {about} is a picture, a sound or a file, which a line of JSON cannot hold. "
                    "Give such examples in the code."
                )
            if expected is not None and not isinstance(value, expected):
                raise SignatureError(f"{self.name}: {about} is {_shown(value)}, not of type {expected.__name__}.")
            return value
        problem: ValidationError | ValueError | None = None
        if not is_json:
            try:
                return adapter.validate_python(value, strict=True)
            except ValidationError as error:
                problem = error
        try:
            # As plain data: a dict for a model, a text for a date.
            return adapter.validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            problem = error if is_json or problem is None or isinstance(value, (dict, list)) else problem
        except (TypeError, ValueError, RecursionError) as error:
            problem = problem or ValueError(str(error))
        raise SignatureError(f"{self.name}: {about} does not fit: {problems_of(problem)}") from problem


class Examples:
    """All examples of a function.

    Args:
        options: of the function, with examples.
        reader: of the function.
        folder: a folder to look for a relative path in, where the working directory has no such file.

    Attributes:
        given: as the decorator took them, with the lines of a file in place of its path.

    Raises:
        SignatureError: an example does not fit the function; says which one and why.
        ConfigError: there is no such file.
        UsageError: a line of it is no example.
    """

    def __init__(self, options: Options, reader: ExampleReader, folder: Path | None) -> None:
        self._most = options.max_examples
        self._embed = None if options.embeddings is None else options.embeddings.embed
        if reader.output.is_none:
            raise SignatureError(f"{reader.name} returns None: there is no answer that an example could show.")
        given: Any = options.examples
        if isinstance(given, (str, os.PathLike)):
            given = ExampleLines(recorded_lines(given, folder))
        self.given: GivenExamples = given
        if isinstance(given, ExampleLines):
            self.all = [
                reader.read((record.get("args"), _value_of(record, where)), where, is_json=True)
                for where, record in given
            ]
        else:
            self.all = [reader.read(pair, f"examples[{number}]") for number, pair in enumerate(given)]

    def __len__(self) -> int:
        return len(self.all)

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex([_text_of(example.arguments) for example in self.all], self._embed)

    def chosen(self, arguments: Mapping[str, Any], numbers: Sequence[int] | None = None) -> list[tuple[int, Example]]:
        """Return the examples to show with their numbers: all in order, or the most similar ones, the nearest last.

        Args:
            arguments: of the call.
            numbers: those that `nearest` gave; None chooses by words.
        """
        if len(self.all) <= self._most:
            return list(enumerate(self.all))
        if numbers is None:
            numbers = best_of(self._index.by_words(_text_of(arguments)), self._most)[::-1]
        return [(number, self.all[number]) for number in numbers]

    async def nearest(self, arguments: Mapping[str, Any]) -> list[int] | None:
        """Return the numbers of the examples that are most similar, the nearest last; None where all are shown."""
        if len(self.all) <= self._most:
            return None
        return best_of(await self._index.scores(_text_of(arguments)), self._most)[::-1]

    def definition(self) -> dict[str, Any]:
        """Return what the answers depend on, as plain data: part of the function's version."""
        shown = [[{name: _known(value) for name, value in each.arguments.items()}, each.answer] for each in self.all]
        return {"examples": shown, "max_examples": self._most}


def split_arguments(
    given: Any, signature: inspect.Signature, *, is_json: bool = False
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what `given` means as positional arguments and keywords.

    A tuple (in JSON a list) is positional arguments, a dict whose keys are all parameters is keywords, everything else
    is the single value.
    """
    if isinstance(given, tuple) or (is_json and isinstance(given, list)):
        return tuple(given), {}
    known = signature.parameters
    if isinstance(given, dict) and (given or not known) and all(key in known for key in given):
        return (), dict(given)
    return (given,), {}


def recorded_lines(path: str | os.PathLike[str], folder: Path | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the lines of a JSONL file of calls and values, each with what it is called in an error.

    Args:
        path: of the file; "~" is the home folder.
        folder: a folder to look for a relative path in, where the working directory has no such file.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
        UsageError: a line is no JSON object.
    """
    found = _found(file_path(path), folder)
    lines: list[tuple[str, dict[str, Any]]] = []
    try:
        text = found.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(found)!r} cannot be read as UTF-8 text: {error}.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"line {number} of {found.name}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where} is not JSON ({error}).") from error
        if not isinstance(record, dict):
            raise UsageError(f'{where} is {_shown(record)}, not an object such as {{"args": …, "value": …}}.')
        lines.append((where, record))
    return lines


def _found(path: Path, folder: Path | None) -> Path:
    places = [path] if path.is_absolute() or folder is None else [path, folder / path]
    for place in places:
        if place.is_file():
            return place
    also = f" or in {folder}" if len(places) > 1 and folder != Path.cwd() else ""
    raise ConfigError(f"there is no file {str(path)!r} in {Path.cwd()}{also}.")


def _value_of(record: Mapping[str, Any], where: str) -> Any:
    values = [record[name] for name in ("value", "expected") if name in record]
    for name, is_there in (("args", "args" in record), ("value", bool(values))):
        if not is_there:
            raise UsageError(f'{where} has no "{name}". A line is {{"args": …, "value": …}}.')
    return values[0]


def _adapter_of(hint: Any) -> TypeAdapter[Any] | None:
    try:
        return TypeAdapter(hint)
    except ImportError as error:
        name = getattr(hint, "__qualname__", None) or repr(hint)
        raise SignatureError(f"the type {name} needs a package that cannot be imported: {error}") from error
    except Exception:  # noqa: BLE001 - a type may raise anything when pydantic looks at it
        return None


def _text_of(arguments: Mapping[str, Any]) -> str:
    return "\n".join(render_value(value) for value in arguments.values() if not is_multimodal_type(value))


def _known(value: Any) -> str:
    part = getattr(value, "to_part", None)
    return json.dumps(part(), sort_keys=True) if callable(part) else render_value(value)


def _shown(value: Any) -> str:
    return shown_value(value, 120)
