"""Plain code that answers for a model: checked against the function, called, and counted how often both agree."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.llm_decorator.definition import Definition
from SimpleLLMFunc.runtime import ForkSafeLock
from SimpleLLMFunc.tools import run_callable
from SimpleLLMFunc.type import ABSTAIN, Abstain


class PlainCode:
    """A plain function that is called with the arguments of a decorated one.

    Args:
        name: "first" or "fallback".
        code: the function, sync (then it runs in a thread) or async.
        definition: of the decorated function.

    Raises:
        SignatureError: it does not take these arguments.
    """

    def __init__(self, name: Literal["first", "fallback"], code: Callable[..., Any], definition: Definition) -> None:
        self.name: Literal["first", "fallback"] = name
        self._code = code
        self.takes_instance = False
        try:
            own = inspect.signature(code)
        except (TypeError, ValueError):
            return  # a function of C that does not say what it takes
        func_name = definition.name
        signature, is_method = definition.as_called()
        args, kwargs = _filled(signature)
        if is_method and _takes(own, (None, *args), kwargs):
            self.takes_instance = True
        elif not _takes(own, args, kwargs):
            raise SignatureError(
                f"{func_name}: {name}={getattr(code, '__name__', code)!r} takes {own}, but is called with the arguments "
                f"of {func_name}{signature}."
            )
        self._check_names(own, signature, func_name)

    def _check_names(self, own: inspect.Signature, signature: inspect.Signature, func_name: str) -> None:
        names = [name for name, each in signature.parameters.items() if each.kind is not each.KEYWORD_ONLY]
        mine = list(own.parameters)[1 if self.takes_instance else 0 :]
        for given, taken in zip(names, mine, strict=False):
            if given != taken and taken in signature.parameters:
                raise SignatureError(
                    f"{func_name}: {self.name}= takes {taken!r} where {func_name} has {given!r}. Give both the same order."
                )

    async def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], instance: Any, clock: Deadline) -> Any:
        """Return what the code says, `ABSTAIN` where it leaves the call to the model.

        Raises:
            DeadlineExceeded: it took too long.
        """
        if self.takes_instance:
            args = (instance, *args)
        try:
            work = run_callable(self._code, [*args], dict(kwargs))
            return await clock.wait(work, f"running the plain code of {self.name}=")
        except Abstain:
            return ABSTAIN


def _filled(signature: inspect.Signature) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments as the code will get them: one for each parameter."""
    parameters = signature.parameters.values()
    args = tuple(None for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD))
    return args, {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}


def _takes(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A call that plain code and the model answered differently."""

    arguments: Mapping[str, Any]
    code: Any
    model: Any
    source: Literal["first", "fallback"] = "first"


class Agreement:
    """Counts of the calls that plain code and the model answered, and of their agreement.

    Attributes:
        by_first, by_model, by_fallback: calls that each of them answered.
        compared: calls in which both were asked (a share of `sample`).
        agreed: those in which both said the same.
        failed: those in which the one that was only asked to compare failed.
        disagreements: the latest hundred.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self.reset()

    def reset(self) -> None:
        """Set all counts to 0."""
        self.by_first = self.by_model = self.by_fallback = 0
        self.compared = self.agreed = self.failed = 0
        self.disagreements: deque[Disagreement] = deque(maxlen=100)

    @property
    def rate(self) -> float | None:
        """Share of the compared calls in which both said the same; None where none was compared."""
        return self.agreed / self.compared if self.compared else None

    def count(self, source: Literal["first", "model", "fallback"]) -> None:
        """Count a call that was answered."""
        with self._lock:
            name = f"by_{source}"
            setattr(self, name, getattr(self, name) + 1)

    def count_failure(self) -> None:
        """Count a comparison that could not be made."""
        with self._lock:
            self.failed += 1

    def compare(self, disagreement: Disagreement, *, is_same: bool) -> None:
        """Count a call that both answered."""
        with self._lock:
            self.compared += 1
            if is_same:
                self.agreed += 1
            else:
                self.disagreements.append(disagreement)

    def __repr__(self) -> str:
        rate = "" if self.rate is None else f", {self.agreed} of {self.compared} compared agree ({self.rate:.1%})"
        by = f"{self.by_first} by code, {self.by_model} by the model, {self.by_fallback} by the fallback"
        return f"<Agreement: {by}{rate}>"
