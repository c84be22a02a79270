"""What the wires share to write a request: its parameters, the service's own tools, what a model has no word for; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.config import speaks_chinese
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.wires.wire import Asked


def given_params(asked: Asked, called: str, no_word: Iterable[str], instead: str) -> dict[str, Any]:
    """Return the parameters of a request that are set; `n=1` is what every wire does.

    Args:
        asked: in chat completions' form.
        called: the wire's name in errors.
        no_word: parameters that the wire has no word for.
        instead: what to do where one is given.

    Raises:
        ConfigError: one of `no_word` is set.
        UsageError: there is no message.
    """
    if not asked.messages:
        raise UsageError("there is no message to send. Give at least one, such as a user message.")
    params = {name: value for name, value in asked.params.items() if value is not None}
    if params.get("n") == 1:
        del params["n"]
    if unknown := sorted(name for name in no_word if name in params):
        raise ConfigError(f"{called} has no word for {', '.join(unknown)}. {instead}")
    return params


def own_tool(spec: Mapping[str, Any], example: str, *, fits: bool) -> dict[str, Any]:
    """Return a tool of the service's own, as it is.

    Raises:
        ConfigError: it is not one of this service.
    """
    if not fits:
        raise ConfigError(
            f"the tool {dict(spec)!r} is not a server tool of this service. Write its own form, such as {example}."
        )
    return dict(spec)


def no_such_thinking(model_name: str, thinking: object, *, words: Sequence[str], off: bool) -> ConfigError:
    """Return the error for a `thinking` that a model does not have; `words` are those it has, without None and "off"."""
    has = ["None", *(["off"] if off else []), *words]
    if speaks_chinese():
        return ConfigError(f"{model_name} 没有 thinking={thinking!r}。可以写的是：{'、'.join(has)}。")
    return ConfigError(f"{model_name} has no thinking={thinking!r}. It has: {', '.join(has)}.")
