"""Names on the command line: `module`, `package.module:function`, `folder/file.py:function`, trace stores."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from click.shell_completion import CompletionItem

from SimpleLLMFunc.config import Settings, file_path
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, cut, did_you_mean
from SimpleLLMFunc.llm_decorator.decorated import CHATS, FUNCTIONS
from SimpleLLMFunc.logger import shown_error


def store_path(given: Path | None, command: str) -> Path:
    """Return the path of the trace store: the given one, else that of SIMPLELLMFUNC_TRACE.

    Raises:
        ConfigError: neither names one.
    """
    named = given or Settings.from_environment().trace
    if named is None:
        raise ConfigError(
            f"no trace store is named. Give its path, `simplellmfunc {command} runs.sqlite`, or set SIMPLELLMFUNC_TRACE."
        )
    return file_path(named)


def split_target(target: str) -> tuple[str, str]:
    """Return module and name of ``module:name``; the name is empty if only a module is named.

    Raises:
        ConfigError: the module is missing, or the name after a colon.
    """
    # From the end: a path may begin with a drive letter and a colon.
    module, colon, name = target.rpartition(":")
    if not colon or name.endswith(".py") or "/" in name or "\\" in name:
        module, name, colon = target, "", ""
    if not module.strip() or (colon and not name.strip()):
        raise ConfigError(f"{target!r} names no module. Write `module`, `module:function` or `file.py:function`.")
    return module.strip(), name.strip()


def load_module(name: str) -> ModuleType:
    """Import a module by its dotted name, looked for in the working directory first, or by the path of its file.

    Raises:
        ConfigError: the module is missing, or its import fails; the original error is the cause.
    """
    if name.endswith(".py") or os.sep in name or "/" in name:
        return _load_file(Path(name))
    _search_first(Path.cwd())
    importlib.invalidate_caches()
    with _translated(name):
        return importlib.import_module(name)


def load_object(target: str) -> Any:
    """Return the object that ``module:name`` names; the name may have dots, as in ``module:Class.method``.

    Raises:
        ConfigError: as `load_module`, or the module has no such name.
    """
    module_name, name = split_target(target)
    found: Any = load_module(module_name)
    if not name:
        one = next(iter(_decorated(found)), "function")
        raise ConfigError(f"{target!r} is a module only. Name a function in it: `{target}:{one}`.")
    for part in name.split("."):
        if not hasattr(found, part):
            names = _names_in(found) or _names_in(load_module(module_name))
            raise ConfigError(
                f"{module_name!r} has no {name!r}.{did_you_mean(part, names)} "
                f"It has: {cut(', '.join(names), 300) or 'nothing'}."
            )
        found = getattr(found, part)
    return found


def complete_target(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ``module:function`` for every decorated function of the module before the colon."""
    module_name, colon, begun = incomplete.rpartition(":")
    if not colon or not module_name:
        return []
    with contextlib.suppress(SimpleLLMFuncError), contextlib.redirect_stdout(io.StringIO()):
        names = _decorated(load_module(module_name))
        return [CompletionItem(f"{module_name}:{name}") for name in names if name.startswith(begun)]
    return []


def _decorated(found: Any) -> list[str]:
    return [
        name
        for name, each in getattr(found, "__dict__", {}).items()
        if not name.startswith("_") and isinstance(each, (*FUNCTIONS, *CHATS))
    ]


def _names_in(found: Any) -> list[str]:
    """Return the names to suggest: of decorated functions, else all public ones that no other module defines."""
    home = getattr(found, "__module__", getattr(found, "__name__", None))
    own = [
        name
        for name, each in getattr(found, "__dict__", {}).items()
        if not name.startswith("_") and not isinstance(each, ModuleType) and getattr(each, "__module__", home) == home
    ]
    return _decorated(found) or own


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"there is no file {str(path)!r}. Give the path of a Python file, or the name of a module.")
    # The file may import its neighbours, as when it is run.
    _search_first(path.resolve().parent)
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path.resolve()):
        return loaded
    # Under its own name where that is free, so that its functions can be found by name.
    name = path.stem if loaded is None else f"_loaded_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path.resolve())
    if specification is None or specification.loader is None:
        raise ConfigError(f"{str(path)!r} is not a Python file.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        with _translated(str(path)):
            specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _search_first(folder: Path) -> None:
    text = str(folder)
    if text not in sys.path:
        sys.path.insert(0, text)


@contextlib.contextmanager
def _translated(name: str) -> Generator[None, None, None]:
    """Turn errors of a module's import into `ConfigError`; our own errors pass."""
    try:
        yield
    except (SimpleLLMFuncError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # The named module is missing, or its package: not one that it imports.
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            here = [
                *(path.stem for path in Path().glob("*.py")),
                *(path.parent.name for path in Path().glob("*/__init__.py")),
            ]
            parent, _, last = name.rpartition(".")
            is_inside = hasattr(sys.modules.get(parent), last)
            meant = f" Did you mean '{parent}:{last}'?" if is_inside else did_you_mean(name, here)
            raise ConfigError(
                f"there is no module {name!r}.{meant} Looked in the working directory and where Python "
                "looks; start in the folder that holds it, or install its package."
            ) from error
        raise ConfigError(
            f"{name!r} failed while it was imported: {shown_error(error)}. Import it with Python alone to see where."
        ) from error
