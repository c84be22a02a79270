"""Arguments and options that several commands have; those of `run` and `preview` are read by the function's signature."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

import click
from pydantic import TypeAdapter, ValidationError

from SimpleLLMFunc.base.templates import fill_fields
from SimpleLLMFunc.cli.load import complete_target, load_object
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, cut
from SimpleLLMFunc.interface.current import named_model, use_llm
from SimpleLLMFunc.llm_decorator.decorated import CHATS, FILES, FUNCTIONS, Chat, Function, chat_pipeline_of, pipeline_of
from SimpleLLMFunc.logger import escape_control
from SimpleLLMFunc.type import ImgUrl, Text

Runnable: TypeAlias = Function | Chat
"""A decorated function or chat."""

F = TypeVar("F", bound=Callable[..., Any])

ANY_PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
PORT = click.IntRange(0, 65535)
SECONDS = click.FloatRange(min=0, min_open=True)

_SCORER = "How answers are judged; NAME is a scorer, or a function of value and expectation."

target_argument = click.argument("target", metavar="MODULE:FUNCTION", shell_complete=complete_target)
cases_argument = click.argument("cases", type=ANY_PATH, metavar="CASES")
scorer: dict[str, Any] = {"default": "exact", "metavar": "exact|fields|MODULE:NAME", "help": _SCORER}
model_option = click.option(
    "--model",
    "model_name",
    metavar="MODEL",
    help="Ask this model instead of the function's own: openai:NAME, anthropic:NAME, gemini:NAME, local, FILE.json:PROVIDER/NAME.",
)
json_option = click.option("--json", "as_data", is_flag=True, help="Print JSON.")


def _concurrency(_ctx: click.Context, _param: click.Parameter, value: str) -> int | Literal["auto"]:
    if value == "auto":
        return "auto"
    if not value.isdecimal() or len(value) > 9 or not int(value):
        raise click.BadParameter(f"{value!r} is neither a whole number above 0 nor auto.")
    return int(value)


concurrency_option = click.option(
    "--concurrency",
    callback=_concurrency,
    default="auto",
    metavar="N|auto",
    help="How many rows or cases are asked at a time.",
)
budget_usd = click.option("--budget-usd", type=click.FloatRange(min=0), help="Stop before more than this is spent.")
deadline_option = click.option("--deadline", type=SECONDS, help="Stop after so many seconds.")


def asking(model_name: str | None) -> AbstractContextManager[object]:
    """Return the block in which functions ask the model of `model_option`; None leaves them their own.

    Raises:
        ConfigError: no model has this name.
    """
    return nullcontext() if model_name is None else use_llm(named_model(model_name, named_by="--model"))


# --- the arguments of a function --------------------------------------------------------------------------

_SHORTHANDS = (Text, ImgUrl, *FILES)
_HISTORY = frozenset({"history", "chat_history"})
_INPUT = click.Path(allow_dash=True, dir_okay=False)
_ARG = "An argument, read by its type. NAME=@FILE reads a file, NAME=- the standard input, NAME:=JSON is JSON."
_SOURCE = "A JSON object with arguments by name; - reads the standard input."


def argument_options(command: F) -> F:
    """Add the options for a function's arguments and for its model; the command gets `function` and `arguments`."""

    @target_argument
    @click.argument("values", nargs=-1, metavar="[VALUE]...")
    @click.option("-a", "--arg", "named", multiple=True, metavar="NAME=VALUE", help=_ARG)
    @click.option("--input", "source", type=_INPUT, metavar="FILE|-", help=_SOURCE)
    @click.option("-t", "--template", multiple=True, metavar="NAME=VALUE", help="A value for a field of the docstring.")
    @model_option
    @wraps(command)
    def asked(
        *args: Any,
        target: str,
        values: Sequence[str],
        named: Sequence[str],
        source: str | None,
        template: Sequence[str],
        **kwargs: Any,
    ) -> Any:
        function = function_named(target)
        arguments, fields = arguments_of(function, values, named, source, template)
        if fields is not None:
            function = function.with_options(template_params=fields)
        return command(*args, function=function, arguments=arguments, **kwargs)

    return cast("F", asked)


def function_named(target: str) -> Runnable:
    """Return the decorated function that ``module:name`` names.

    Raises:
        ConfigError: it names none.
    """
    found = load_object(target)
    if not isinstance(found, (*FUNCTIONS, *CHATS)):
        raise ConfigError(
            f"{target!r} is a {type(found).__name__}. Name a function under @llm_function or @llm_chat, such as "
            "module:function."
        )
    return found


def arguments_of(
    function: Runnable, values: Sequence[str], named: Sequence[str], source: str | None, template: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Return the arguments of a call by name, and the fields of the docstring.

    Raises:
        click.UsageError: the arguments do not fit the function; the message has its parameters.
        ConfigError: a file cannot be read.
        TemplateError: the docstring has a field without a value.
    """
    pipeline = chat_pipeline_of(function) if isinstance(function, CHATS) else pipeline_of(function)
    signature, hints = pipeline.definition.signature, pipeline.definition.hints
    kinds = {each.kind for each in signature.parameters.values()}
    parameters = {name: each for name, each in signature.parameters.items() if each.kind not in _REST}
    histories = _HISTORY & parameters.keys() if isinstance(function, CHATS) else frozenset()
    told = _told(function, parameters, hints)
    # A history can only be given by name.
    places = [name for name, each in parameters.items() if each.kind is not each.KEYWORD_ONLY and name not in histories]
    if len(values) > len(places):
        raise click.UsageError(f"there are too many values ({len(values)}). {told}")
    pairs, templates = [_pair(item) for item in named], [_pair(item) for item in template]
    texts = [*values, *(text for _, text, _ in [*pairs, *templates])]
    if sum(text in {"-", "@-"} for text in texts) + (source == "-") > 1:
        raise click.UsageError("the standard input can be read once only; it is named twice.")
    names = [*places[: len(values)], *(name for name, _, _ in pairs)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.UsageError(f"{twice} is given twice. {told}")
    given: dict[str, Any] = {} if source is None else _object(_read(source), source, parameters, hints)
    for name, value in zip(places, values, strict=False):
        given[name] = _converted(name, _text(value), hints.get(name, Any))
    for name, value, is_json in pairs:
        if name not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise click.UsageError(f"there is no parameter {name!r}. {told}")
        text, hint = _text(value), hints.get(name, Any)
        given[name] = _validated(name, _json(text, name), hint) if is_json else _converted(name, text, hint)
    for name in histories:
        given.setdefault(name, [])
    missing = [name for name, each in parameters.items() if each.default is each.empty and name not in given]
    if missing:
        raise click.UsageError(f"no value for {', '.join(missing)}. {told}")
    fields = {name: _text(value) for name, value, _ in templates}
    if fields:
        docstring = pipeline.definition.metadata[3]
        fill_fields(docstring, fields, name="docstring")  # a call would ask with the docstring as written
        if unused := [name for name in fields if f"{{{name}}}" not in docstring]:
            raise click.UsageError(f"the docstring has no field {{{unused[0]}}}.")
    return given, fields or None


_REST = frozenset({inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL})


def _pair(item: str) -> tuple[str, str, bool]:
    name, sign, value = item.partition("=")
    is_json = name.endswith(":")
    name = name.removesuffix(":")
    if not sign or not name.isidentifier():
        raise click.UsageError(f"{item!r} is not NAME=VALUE.")
    return name, value, is_json


def _text(value: str) -> str:
    if value == "-":
        return _read(value)
    if value.startswith("@@"):
        return value[1:]  # @@ stands for @
    return _read(value[1:]) if value.startswith("@") and len(value) > 1 else value


def _read(path: str) -> str:
    if path == "-":
        if sys.stdin is None:
            raise ConfigError("'-' reads stdin, which is closed. Name a file: NAME=@letter.txt.")
        return sys.stdin.read()
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _object(text: str, source: str, parameters: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    data = _json(text, source)
    if not isinstance(data, dict):
        raise click.UsageError(f"{source}: a JSON object with arguments by name, not {type(data).__name__}.")
    unknown = [name for name in data if name not in parameters]
    if unknown:
        raise click.UsageError(f"{source}: there is no parameter {unknown[0]!r}. There are: {', '.join(parameters)}.")
    return {name: _validated(name, value, hints.get(name, Any)) for name, value in data.items()}


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{name}: no JSON: {escape_control(cut(str(error), 200))}.") from None


def _converted(name: str, text: str, hint: Any) -> Any:
    """Return the value of a text for a parameter: the text itself for a str, else pydantic's reading, else JSON.

    Raises:
        click.UsageError: the text is no value of the type.
    """
    for shorthand in _SHORTHANDS:
        if hint is shorthand or (shorthand in get_args(hint) and str not in get_args(hint)):
            return _made(name, shorthand, text)
    if NoneType in get_args(hint) and text == "null":
        return None
    for strict in (True, False):
        with suppress(ValidationError):
            return TypeAdapter(hint).validate_python(text, strict=strict)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = text
    return _validated(name, data, hint)


def _made(name: str, kind: Any, text: str) -> Any:
    try:
        return kind(text)
    except (ValueError, OSError, SimpleLLMFuncError) as error:
        raise click.UsageError(f"{name}: {escape_control(str(error))}") from None


def _validated(name: str, data: Any, hint: Any) -> Any:
    if hint in _SHORTHANDS and isinstance(data, str):
        return _made(name, hint, data)
    if get_args(hint) and any(each in _SHORTHANDS for each in get_args(hint)) and isinstance(data, list):
        return [_validated(name, item, get_args(hint)[0]) for item in data]
    try:
        return TypeAdapter(hint).validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = "".join(f"[{part!r}]" for part in first["loc"])
        raise click.UsageError(
            f"{name}{where}: {first['msg'][:1].lower()}{first['msg'][1:]}, not {cut(escape_control(repr(data)), 80)}."
        ) from None


def _told(function: Runnable, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> str:
    """Return a sentence with a function's parameters."""
    parts = []
    for name, parameter in parameters.items():
        hint = hints.get(name, Any)
        shown = getattr(hint, "__name__", None) if not get_args(hint) else str(hint).replace("typing.", "")
        default = "" if parameter.default is inspect.Parameter.empty else f" = {cut(repr(parameter.default), 40)}"
        parts.append(f"{name}: {shown or hint}{default}")
    return escape_control(f"{function.__name__} takes ({', '.join(parts)}).")
