"""Which files the built-in tools may read: those below a folder given to them, or of the session they serve."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from SimpleLLMFunc.assistant.words import WORDS, Language
from SimpleLLMFunc.errors import ConfigError, cut
from SimpleLLMFunc.tools import ToolContext

MAX_SHOWN: Final = 20
_MAX_DEPTH = 3
_MAX_LOOKED_AT = 2000


def checked_root(root: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder whose files may be read, with links followed.

    Raises:
        ConfigError: it is no folder.
    """
    if root is None:
        return None
    folder = Path(os.fsdecode(root)).resolve()
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(root)!r}. Give root= a folder that exists.")
    return folder


def given_roots(root: Path | None, context: ToolContext[Any] | None) -> list[Path]:
    """Return the folders that may be read: the session's own, where there is one, then the one given."""
    own = getattr(getattr(context, "context", None), "root", None)
    session = own.resolve() if isinstance(own, Path) else None
    return [folder for folder in (session, root) if folder is not None]


def find_file(path: str, roots: list[Path], language: Language = "zh") -> tuple[Path, Path]:
    """Return the file that a model named, and the folder it lies in, both with links followed.

    What lies outside of the folders is not found, whether it is there or not.

    Raises:
        FileNotFoundError: there is no such file in any of the folders; says which there are.
    """
    for root in roots:
        if (file := _file_in(root, path.strip())) is not None:
            return file, root
    known = list(_names(roots))
    shown = ", ".join(known[:MAX_SHOWN]) + (" …" if len(known) > MAX_SHOWN else "")
    known_or_none = shown or WORDS["files"][language]["none"]
    raise FileNotFoundError(WORDS["files"][language]["not found"].format(name=cut(path, 80), known=known_or_none))


def _file_in(root: Path, path: str) -> Path | None:
    """Return the file of that name with links followed; None if it is missing or lies outside of the folder."""
    try:
        file = root.joinpath(path).resolve()
        return file if file.is_relative_to(root) and file.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long a name, a NUL, a loop of links
        return None


@contextmanager
def named_below(file: Path, root: Path) -> Iterator[str]:
    """Give the name of a file as a model knows it; errors inside the block name it so too, and not where it lies."""
    name = file.relative_to(root).as_posix()
    try:
        yield name
    except ConfigError:
        raise
    except (FileNotFoundError, ValueError) as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        raise kind(str(error).replace(str(file), name).replace(str(root), ".")) from None


def _names(roots: list[Path]) -> Iterator[str]:
    """Yield the names of files that may be read, relative to their folders; hidden ones are left out."""
    looked_at = 0
    for root in roots:
        for folder, below, names in os.walk(root):
            here = Path(folder).relative_to(root)
            below[:] = sorted(name for name in below if not name.startswith(".")) * (len(here.parts) < _MAX_DEPTH)
            for name in sorted(names):
                looked_at += 1
                if looked_at > _MAX_LOOKED_AT:
                    return
                shown = (here / name).as_posix()
                if not name.startswith(".") and _file_in(root, shown) is not None:
                    yield shown
