"""Libraries that come with an extra: imported where they are used, and asked for by name where they are missing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from SimpleLLMFunc.errors import ConfigError, cut

__all__ = ["check_extra", "install_line", "load_extra", "missing_extra"]


def install_line(extra: str) -> str:
    """Return what to run for the extra, quoted as every shell wants it."""
    return f'pip install "SimpleLLMFunc[{extra}]"'


def load_extra(module: str, extra: str, *, purpose: str, advice: str = "") -> Any:
    """Import a library that the extra brings; it may be slow, so not on an event loop.

    Args:
        module: dotted name.
        extra: the name in the brackets of the install line.
        purpose: what needs it, as the subject of the error's sentence.
        advice: what else the user can do, in whole sentences.

    Raises:
        ConfigError: it is not installed, or cannot be loaded.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra(module, extra, purpose=purpose, advice=advice, error=error) from error


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
        raise missing_extra(module, extra, purpose=purpose)


def missing_extra(
    module: str, extra: str, *, purpose: str, advice: str = "", error: ImportError | None = None
) -> ConfigError:
    """Return the error for a library that is not there: which one, for what, and the line to run.

    Args:
        module: the library; its error may name another one, that this one needs.
        extra: the name in the brackets of the install line.
        purpose: what needs it, as the subject of the error's sentence.
        advice: what else the user can do, in whole sentences.
        error: what importing it raised; None where it was only looked for.
    """
    name, state = module.partition(".")[0], "is not installed"
    if isinstance(error, ModuleNotFoundError):
        name = error.name or name
    elif error is not None:
        state = f"cannot be loaded ({cut(str(error), 200)})"
    more = f". {advice}" if advice else ""
    return ConfigError(f"{purpose} needs `{name}`, which {state}: {install_line(extra)}{more}")
