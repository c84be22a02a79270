"""Which model a call asks: that of `use_llm`, the function's own, or the one that the environment names."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from SimpleLLMFunc.config import MODEL_FORMS, Settings, file_path, missing_model_message
from SimpleLLMFunc.errors import ConfigError, UsageError, did_you_mean
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.logger import shown_value
from SimpleLLMFunc.runtime import ForkSafeLock, block
from SimpleLLMFunc.utils import ScopedVar

T = TypeVar("T")
M = TypeVar("M", bound=LLM_Interface)

_VARIABLE = "SIMPLELLMFUNC_MODEL"


_used: ScopedVar[LLM_Interface | None] = ScopedVar("SimpleLLMFunc.use_llm", None)


@block
def use_llm(llm: M) -> Generator[M, None, None]:
    """Let every decorated function called inside the ``with`` block ask `llm`, also where the decorator names another model.

    Raises:
        UsageError: `llm` is no model.
    """
    if not isinstance(llm, LLM_Interface):
        raise UsageError(f"use_llm takes a model (OpenAICompatible, LocalModel …), not {shown_value(llm, 120)}.")
    with _used.within(llm):
        yield llm


def used_llm() -> LLM_Interface | None:
    """Return the model of the nearest `use_llm`, None outside of any."""
    return _used.get()


def resolve_llm(own: LLM_Interface | None) -> LLM_Interface:
    """Return the model to ask: that of the nearest `use_llm`, else `own`, else the one the environment names.

    Inside `standing_in`, the substitute for that model.

    Raises:
        ConfigError: none of them names one, or the environment names one that cannot be.
    """
    used = _used.get()
    found = own if used is None else used
    stand_in = _stand_ins[-1] if _stand_ins else None
    if found is None:
        try:
            found = _from_environment()
        except ConfigError:
            if stand_in is not None and (substitute := stand_in(None)) is not None:
                return substitute  # a replay needs no model
            raise
    substitute = None if stand_in is None else stand_in(found)
    return found if substitute is None else substitute


# --- in the place of every model ---------------------------------------------------------------------------

StandIn: TypeAlias = Callable[[LLM_Interface | None], LLM_Interface | None]
"""Returns the substitute for a model, None to keep the model; it is given None where no model is named."""

_stand_ins: list[StandIn] = []


@contextmanager
def standing_in(stand_in: StandIn) -> Generator[None, None, None]:
    """Ask `stand_in(llm)` wherever `llm` would be asked, in all threads and tasks, until the block ends.

    The innermost block counts. Unlike `use_llm` it is told which model it replaces: a recorder needs that one.
    """
    _stand_ins.append(stand_in)
    try:
        yield
    finally:
        _stand_ins.remove(stand_in)


# --- the environment ---------------------------------------------------------------------------------------

_building = ForkSafeLock()
_built: tuple[Settings, LLM_Interface] | None = None

_FROM_FILE = re.compile(r"(?P<path>.+?\.json):(?P<provider>[^/]+)/(?P<model>.+)", re.IGNORECASE | re.DOTALL)


def _from_environment() -> LLM_Interface:
    """Return the model of the environment; the same object as long as the environment says the same."""
    global _built  # noqa: PLW0603 - connections and rate limits are the model's: one per process
    settings = Settings.from_environment()
    if settings.model is None:
        raise ConfigError(missing_model_message())
    with _building:
        if _built is None or _built[0] != settings:
            _built = (settings, named_model(settings.model))
        return _built[1]


MAKERS = {"openai": "OpenAICompatible", "anthropic": "Anthropic", "gemini": "Gemini"}
"""The class of a model that is named ``maker:name``."""


def named_model(value: str, *, named_by: str = _VARIABLE) -> LLM_Interface:
    """Return the model that a text names: ``local``, ``openai:gpt-5-mini``, ``provider.json:openai/gpt-5-mini``.

    Raises:
        ConfigError: it names none; `named_by` says where the text stood.
    """
    if value == "local":
        from SimpleLLMFunc.interface.local import LocalModel

        return LocalModel()
    maker, colon, model = value.partition(":")
    if maker in MAKERS and model.strip():
        from SimpleLLMFunc import interface

        made: LLM_Interface = getattr(interface, MAKERS[maker])(model.strip())
        return made
    named = _FROM_FILE.fullmatch(value)
    if named is None:
        known = [] if maker in MAKERS else ["openai"] if colon else ["local"]
        near = did_you_mean(maker, known).replace("openai", f"openai:{model}")
        raise ConfigError(f"{named_by}={value!r} names no model.{near} Accepted: {MODEL_FORMS}.")
    return _from_file(named["path"], named["provider"], named["model"], named_by)


def _from_file(path: str, provider: str, model: str, named_by: str) -> LLM_Interface:
    try:
        providers = OpenAICompatible.load_from_json_file(path)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{named_by} names the provider file {path!r}, and {str(file_path(path).absolute())!r} does not exist. "
            f"Accepted: {MODEL_FORMS}."
        ) from error
    except ConfigError as error:
        raise ConfigError(f"{named_by} names a provider file that cannot be used: {error}") from error
    models = _chosen(providers, provider, f"{named_by}: {path!r} has no provider")
    return _chosen(models, model, f"{named_by}: provider {provider!r} in {path!r} has no model")


def _chosen(found: Mapping[str, T], name: str, missing: str) -> T:
    if name in found:
        return found[name]
    near, has = did_you_mean(name, found), ", ".join(found) or "none"
    raise ConfigError(f"{missing} {name!r}.{near} It has: {has}. Accepted: {MODEL_FORMS}.")
