"""Check the arguments of a call against the annotations; nothing is converted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Annotated, Any, BinaryIO, TextIO, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator, core_schema

from SimpleLLMFunc.base.metadata import shown_signature
from SimpleLLMFunc.base.type_resolve import is_multimodal_type
from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.llm_decorator.steps.common.signature import type_of_argument
from SimpleLLMFunc.logger import shown_value

_ANY_CLASS = ConfigDict(arbitrary_types_allowed=True)


class ArgumentChecks:
    """Checks the arguments of one function; the check of a parameter is built at its first use.

    Args:
        func_name: of the function.
        signature: of the same.
        hints: its annotations by parameter.
    """

    def __init__(self, func_name: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> None:
        self._func_name = func_name
        self._signature = signature
        self._hints = hints
        self._checks: dict[str, Callable[[Any], object]] = {}

    def check(self, arguments: Mapping[str, Any], history_param: str | None = None) -> None:
        """Return if the arguments fit; a default, and a parameter without annotation, takes anything.

        Args:
            arguments: by parameter name.
            history_param: that is left out.

        Raises:
            SignatureError: some do not; names them.
        """
        problems, cause = [], None
        for name, value in arguments.items():
            parameter = self._signature.parameters[name]
            if name not in self._hints or name == history_param or value is parameter.default:
                continue
            try:
                self._check(parameter, value)
            except ValidationError as error:
                problems.append(f"{name}: {problems_of(error)}")
                cause = error
        if problems:
            written = shown_signature(self._signature)
            raise SignatureError(
                f"{self._func_name}() takes other arguments. {'; '.join(problems)}; the signature is {written}"
            ) from cause

    def _check(self, parameter: inspect.Parameter, value: Any) -> None:
        if parameter.name not in self._checks:
            self._checks[parameter.name] = _check_of(type_of_argument(parameter, self._hints))
        try:
            self._checks[parameter.name](value)
        except ValidationError:
            raise
        except Exception:  # noqa: BLE001, S110 - a validator of the user's that breaks says nothing about the argument
            pass


def _check_of(hint: Any) -> Callable[[Any], object]:
    """Return what raises pydantic's error for a value that is not of a type."""
    bare = hint.__origin__ if get_origin(hint) is Annotated else hint
    kind = get_origin(bare) or bare
    validate = _validator_of(hint, kind)
    if validate is None or kind in (IO, TextIO, BinaryIO):  # of these no file is an instance
        return lambda _: None

    is_shown = is_multimodal_type(hint)

    def check(value: Any) -> None:
        if is_shown and (isinstance(value, str) or _holds_dict(value)):
            validate(value, strict=True)  # else pydantic makes a picture of a dict, which opens the file it names
        elif not isinstance(value, Iterator):
            validate(value)
        elif not (isinstance(kind, type) and isinstance(value, kind)):
            validate(iter(()))  # in its place: looking at the items would take them away

    return check


def _holds_dict(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and any(map(_holds_dict, value)))


def _validator_of(hint: Any, kind: Any) -> Callable[..., object] | None:
    """Return what checks a type, of one that pydantic does not know only its class; None where there is no way."""
    ways: tuple[Callable[[], TypeAdapter[Any] | SchemaValidator], ...] = (
        lambda: TypeAdapter(hint),
        lambda: TypeAdapter(hint, config=_ANY_CLASS),  # a model or dataclass takes none from here
        lambda: SchemaValidator(core_schema.is_instance_schema(kind)),
    )
    for way in ways:
        try:
            return way().validate_python
        except Exception:  # noqa: BLE001, S112 - a type may raise anything when pydantic looks at it
            continue
    return None


def problems_of(error: Exception | None) -> str:
    """Say what pydantic found wrong, in one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    parts = []
    for problem in error.errors(include_url=False, include_context=False)[:5]:
        place = ".".join(str(part) for part in problem["loc"])
        parts.append(f"{place + ': ' if place else ''}{problem['msg']}, got {shown_value(problem['input'], 120)}")
    return "; ".join(parts)
