"""Guards: checks of a function's arguments and of its value, and what they may decide."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from SimpleLLMFunc.base.parsing import Repair
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.errors import ConfigError, ContentBlocked, ResponseParseError, UsageError, did_you_mean
from SimpleLLMFunc.tools import ModelRetry, run_callable


class Block(Exception):
    """Returned or raised by a guard: the call ends with `ContentBlocked`, which says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """Returned by a guard: `value` replaces the value; of arguments, those that the mapping names."""

    value: Any


@dataclass(frozen=True, slots=True)
class _Guard:
    name: str
    func: Callable[..., Any]
    given: tuple[str, ...]


class Guards:
    """The guards of one function, each called with what its parameters name.

    A guard with a parameter `value` is called after the model has answered, and may have a parameter `arguments` too;
    one with `arguments` alone is called before the model is asked. A single parameter of another name is the value.

    Args:
        given: plain or decorated functions, sync or async.

    Raises:
        ConfigError: one cannot be called with these parameters.
    """

    def __init__(self, given: Sequence[Callable[..., Any]] | None) -> None:
        listed: Any = given
        if listed is not None and (isinstance(listed, str) or not isinstance(listed, Sequence)):
            raise ConfigError(f"guards must be a list of functions, not {type(listed).__name__}.")
        guards = [_read(guard) for guard in listed or ()]
        self._before = [guard for guard in guards if guard.given == ("arguments",)]
        self._after = [guard for guard in guards if guard.given != ("arguments",)]

    def __bool__(self) -> bool:
        return bool(self._before or self._after)

    @property
    def judge_values(self) -> bool:
        """Whether what the model writes is given out only after a guard has seen all of it."""
        return bool(self._after)

    async def arguments(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
        """Return the arguments as the guards let them pass, and a line for each guard that changed some.

        Raises:
            ContentBlocked: a guard says so.
            UsageError: a guard changed something that is no argument, or returned what means nothing.
        """
        found, changes = dict(arguments), list[Repair]()
        for guard in self._before:
            said = await _asked(guard, {"arguments": dict(found)})
            if isinstance(said, ModelRetry):
                raise _blocked(guard, str(said))  # the model has not written anything yet
            if isinstance(said, Change):
                if not isinstance(said.value, Mapping) or not said.value.keys() <= found.keys():
                    raise UsageError(
                        f"the guard {guard.name} must change arguments by their names, with Change({{name: value}}); "
                        f"the arguments are {', '.join(found)}."
                    )
                found |= said.value
                changes.append((f"guard {guard.name}", f"changed {', '.join(said.value)} before the model was asked"))
        return found, changes

    async def value(
        self, value: Any, arguments: Mapping[str, Any], text: str, spec: OutputSpec
    ) -> tuple[Any, list[Repair]]:
        """Return the value as the guards let it pass, and a line for each guard that changed it.

        Args:
            value: of the answer.
            arguments: of the call.
            text: the answer as the model wrote it.
            spec: of its type.

        Raises:
            ContentBlocked: a guard says so.
            ResponseParseError: a guard wants another answer, and says why.
            UsageError: a guard returned what means nothing, or a value of another type.
        """
        changes = list[Repair]()
        for guard in self._after:
            given = {"arguments": dict(arguments), "value": value}
            said = await _asked(guard, {name: given.get(name, value) for name in guard.given})
            if isinstance(said, ModelRetry):
                wrong = (f"guard {guard.name}", str(said) or "another answer", "an answer that it does not accept")
                raise ResponseParseError(text, spec.return_type, [wrong])
            if isinstance(said, Change):
                try:
                    value = spec.adapter.validate_python(said.value, strict=True)
                except ValidationError as error:
                    what = f"into one of another type: {error.errors()[0]['msg']}"
                    raise UsageError(f"the guard {guard.name} changed the value {what}") from None
                changes.append((f"guard {guard.name}", "changed the value"))
        return value, changes


async def _asked(guard: _Guard, given: dict[str, Any]) -> Change | ModelRetry | None:
    """Return what a guard wants; what it raises except `Block` and `ModelRetry` is the caller's own error.

    Raises:
        ContentBlocked: it blocks, or a function that it asked got no answer that fits.
        UsageError: what it returned means nothing.
    """
    try:
        said = await run_callable(guard.func, [], given)
    except (Block, ModelRetry) as raised:
        said = raised
    except ResponseParseError as error:
        # Of a function that the guard asked: the answer that is judged may fit, and the model must not be told otherwise.
        raise _blocked(guard, f"it came to no verdict ({error})") from error
    if said is None or said is True:
        return None
    if isinstance(said, (Change, ModelRetry)):
        return said
    if said is False or isinstance(said, Block):
        raise _blocked(guard, str(said or "it said no")) from None
    raise UsageError(
        f"the guard {guard.name} returned a {type(said).__name__}. It returns None or True to let pass, False or "
        "Block('why'), Change(value), or ModelRetry('why')."
    )


def _blocked(guard: _Guard, why: str) -> ContentBlocked:
    return ContentBlocked(f"guard {guard.name}: {why}")


def _read(guard: Any) -> _Guard:
    if not callable(guard):
        raise ConfigError(f"guards must be functions, not {type(guard).__name__}.")
    name = getattr(guard, "__name__", type(guard).__name__)
    try:
        parameters = list(inspect.signature(guard).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the guard {name} shows no parameters: {error}.") from error
    taken = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    known = tuple(each.name for each in taken if each.name in {"arguments", "value"})
    others = [each.name for each in taken if each.name not in known and each.default is each.empty]
    if (known and not others) or (not known and len(others) == 1):
        return _Guard(name, guard, known or tuple(others))
    hint = did_you_mean(others[0], ["arguments", "value"]) if others else ""
    raise ConfigError(f"the guard {name} must have a parameter `arguments`, or `value`, or both.{hint}")
