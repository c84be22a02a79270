"""Libraries that come with an extra: imported where they are used, and asked for by name where they are missing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from SimpleLLMFunc.errors import ConfigError

__all__ = ["check_extra", "load_extra"]


def load_extra(module: str, extra: str, *, purpose: str) -> Any:
    """Import a library that the extra brings; it may be slow, so not on an event loop.

    Args:
        module: dotted name.
        extra: the name in the brackets of the install line.
        purpose: what needs it, as the subject of the error's sentence.

    Raises:
        ConfigError: it is not installed, or cannot be loaded.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise _missing(module, extra, purpose) from error


def check_extra(module: str, extra: str, *, purpose: str) -> None:
    """Make sure, without importing it, that a top-level library is there.

    Raises:
        ConfigError: it is not.
    """
    try:
        found = find_spec(module) is not None
    except ValueError:  # something stands in its place that was not imported in the usual way
        found = True
    if not found:
        raise _missing(module, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> ConfigError:
    name = module.partition(".")[0]
    return ConfigError(
        f'{purpose} needs `{name}`, which is not installed or cannot be loaded: pip install "SimpleLLMFunc[{extra}]"'
    )
