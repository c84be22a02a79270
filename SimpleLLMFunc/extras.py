"""Libraries that come with an extra: imported where they are used, and asked for by name where they are missing."""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from SimpleLLMFunc.errors import ConfigError, cut

_NAME: Final = "SimpleLLMFunc"
_PACKAGE: Final = Path(__file__).resolve().parent
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([^"']+)""")


def install_line(extra: str = "", package: Path = _PACKAGE) -> str:
    """Return what to run for the extra, quoted as every shell wants it; for none, what installs the library.

    The package index has another SimpleLLMFunc, so the line names the packages that the extra needs; in a checkout it
    installs that again.

    Args:
        extra: its name.
        package: the directory of the library.
    """
    from importlib.metadata import distributions  # only an error needs it, and a start need not pay for that

    brackets = f"[{extra}]" if extra else ""
    if (package.parent / "pyproject.toml").is_file():
        return f'pip install -e "{package.parent}{brackets}"'
    found = next(iter(distributions(name=_NAME, path=[str(package.parent)])), None)
    if found is None:
        return f"{_NAME}{brackets}, from where this one came"
    lines = [line.partition(";") for line in found.requires or ()]
    names = [name.strip() for name, _, condition in lines if extra in (_EXTRA.findall(condition) or [""])]
    return f"pip install {' '.join(json.dumps(name) for name in names)}"


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
    except ValueError:  # a module of that name that was not imported in the usual way
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
