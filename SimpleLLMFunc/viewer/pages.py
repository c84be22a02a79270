"""The static files of the page: read once, served by name; no other file is served."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page.

    Attributes:
        tag: ETag, a hash of the content.
    """

    content: bytes
    media_type: str
    tag: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return all files of the page by their path."""
    found: dict[str, StaticFile] = {}
    _gather(files("SimpleLLMFunc.viewer") / "static", "", found)
    return found


def _gather(folder: Traversable, before: str, found: dict[str, StaticFile]) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            _gather(entry, f"{before}{entry.name}/", found)
        elif (kind := entry.name.rpartition(".")[2]) in _TYPES:
            content = entry.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            found[before + entry.name] = StaticFile(content, _TYPES[kind], tag)


class FilePage:
    """Serves the static files; the empty name is the page itself.

    The files are read when this object is made, not for each request.
    """

    def __init__(self) -> None:
        self._files = static_files()

    async def __call__(self, request: Request) -> Response:
        """Answer with the file of the path."""
        from starlette.responses import PlainTextResponse, Response

        file = self._files.get(request.path_params["path"] or "index.html")
        if file is None:
            return PlainTextResponse("There is no such page.", 404)
        # The browser revalidates each time, so that a new version of the package shows at once.
        headers = {"etag": file.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)
