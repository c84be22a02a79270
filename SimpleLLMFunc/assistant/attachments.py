"""What came with a question: an image the model sees, files its tools may read."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.runtime import ForkSafeLock
from SimpleLLMFunc.type import ContentPart, File, ImgPath, ImgUrl

MAX_FILE_BYTES: Final = 20 * 1024 * 1024
_UNSAFE = re.compile(r"[^\w.\- ]+")


class SessionFiles:
    """The files of one session, in a folder that goes with the session.

    Attributes:
        root: the folder, None until something is kept.
        names: of what is kept, in order.
    """

    def __init__(self) -> None:
        self.root: Path | None = None
        self.names: list[str] = []
        self._lock = ForkSafeLock()
        self._remove: Callable[[], object] | None = None

    def add(self, name: str, content: bytes) -> str:
        """Keep a file and return the name it has in the folder.

        Raises:
            UsageError: it is empty or too large.
        """
        if not content or len(content) > MAX_FILE_BYTES:
            raise UsageError(
                f"the file {cut(name, 80)!r} has {len(content)} bytes; between 1 and {MAX_FILE_BYTES} are taken."
            )
        with self._lock:
            if self.root is None:
                self.root = Path(tempfile.mkdtemp(prefix="simplellmfunc-"))
                # Also when the assistant is forgotten without `close`, and at the end of the process.
                self._remove = weakref.finalize(self, _remove_folder, self.root, os.getpid())
            own = _free_name(_safe_name(name), self.names)
            self.root.joinpath(own).write_bytes(content)
            self.names.append(own)
            return own

    def add_image(self, image: Any) -> tuple[ContentPart, str]:
        """Return the part of a message that shows an image, and its name among the files; empty where it is not kept.

        Args:
            image: an `ImgPath` or `ImgUrl`; bytes; a data URL, an http address, or base64 text.

        Raises:
            UsageError: nothing of these, or no image.
        """
        try:
            if isinstance(image, (ImgPath, ImgUrl)):
                return image.to_part(), ""
            if isinstance(image, str) and image.startswith(("data:", "http://", "https://")):
                return ImgUrl(image).to_part(), ""
            name = self.add("image", _decoded(image, "image_data"))
            assert self.root is not None, "a file was kept"
            return ImgPath(self.root / name, root=self.root).to_part(), name
        except (ValueError, FileNotFoundError) as error:
            raise UsageError(f"image_data cannot be used: {error}") from None

    def add_file(self, file: Any) -> str:
        """Keep the file that came with a question and return its name.

        Args:
            file: a `Path` or a `File` (never a str: a text from a user must not name a file); ``{"name": …, "content": bytes or base64 text}``.

        Raises:
            UsageError: nothing of these, or not readable.
        """
        if isinstance(file, File):
            file = file.path
        if isinstance(file, os.PathLike):
            path = Path(file)
            try:
                if not path.is_file():
                    raise UsageError(f"file_data: there is no file {cut(str(path), 200)!r}.")
                if path.stat().st_size > MAX_FILE_BYTES:
                    raise UsageError(f"file_data: {cut(path.name, 80)!r} is larger than {MAX_FILE_BYTES} bytes.")
                return self.add(path.name, path.read_bytes())
            except (OSError, ValueError) as error:
                raise UsageError(f"file_data: {cut(str(path), 200)!r} cannot be read: {error}") from None
        if isinstance(file, Mapping) and "content" in file:
            return self.add(str(file.get("name") or "file"), _decoded(file["content"], "file_data"))
        raise UsageError(
            'file_data is a Path, a File or {"name": "report.pdf", "content": bytes or base64 text}; '
            f"not {type(file).__name__}."
        )

    def close(self) -> None:
        """Remove the folder; a forked child leaves its parent's alone."""
        with self._lock:
            remove, self._remove, self.root = self._remove, None, None
            self.names.clear()
        if remove is not None:
            remove()


def _remove_folder(root: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(root, ignore_errors=True)


def _decoded(content: Any, argument: str) -> bytes:
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    if isinstance(content, str):
        try:
            return base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f"{argument}: the text is not base64. Give bytes, or encode them.") from None
    raise UsageError(f"{argument}: content is bytes or base64 text, not {type(content).__name__}.")


def _safe_name(name: str) -> str:
    plain = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).strip(" .")
    stem, dot, ending = plain.rpartition(".")
    return f"{stem[:80]}.{ending[:16]}" if dot and stem else plain[:80] or "file"


def _free_name(name: str, taken: list[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{Path(name).stem}-{number}{Path(name).suffix}"
    return free
