"""What can be shown to a model besides plain text: `Text`, `ImgUrl`, `ImgPath`, `Audio`, `File`.

Each is checked when it is made and gives its part of a message's content by `to_part()`. A URL is never
fetched by us: it travels as text and the provider fetches it. A file is read from the disk only if its path was given as
one of these types; a plain `str` is never a path.
"""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import ConfigDict

from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.type.message import ContentPart

Detail: TypeAlias = Literal["auto", "low", "high"]
"""How closely the model shall look at an image; "auto" leaves it to the provider and is not sent."""

MAX_FILE_BYTES: Final = 20 * 1024 * 1024
"""The largest file that is read, in bytes."""

_DETAILS = ("auto", "low", "high")
_BLANK = re.compile(r"[\x00-\x20\x7f]")
_DATA_URL = re.compile(r"(?i:data:image)/[^,]+;(?i:base64),[A-Za-z0-9+/]+={0,2}")
_IMAGE_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif",
}  # fmt: skip
_AUDIO_STARTS = {b"ID3": "mp3", b"fLaC": "flac", b"OggS": "ogg"}
_BMP_HEADER_SIZES = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
_OFFICE_TYPES = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_TEXT_TYPES = {
    ".csv": "text/csv", ".html": "text/html", ".json": "application/json", ".md": "text/markdown",
    ".txt": "text/plain", ".xml": "text/xml",
}  # fmt: skip


def _described(kind: str) -> ConfigDict:
    """Return what keeps a class's docstring, which is for programmers, out of prompts and schemas."""
    return {"json_schema_extra": {"description": kind}}


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text that becomes its own part of the message, without its parameter's name before it."""

    content: str

    def __post_init__(self) -> None:
        if not isinstance(self.content, str):
            raise ValueError(f"Text takes a str, not {type(self.content).__name__}")  # noqa: TRY004 - one kind of error for all that cannot be shown

    def to_part(self) -> ContentPart:
        """Return the part of a message's content."""
        return {"type": "text", "text": self.content}

    def __repr__(self) -> str:
        return f"Text({cut(self.content, 60)!r})"


@dataclass(frozen=True, slots=True)
class ImgUrl:
    """An image by its address: http, https, or a data URL. We never fetch it.

    Raises:
        ValueError: another scheme, no host, or a data URL that is not an image in base64.
    """

    __pydantic_config__ = _described("an image")

    url: str
    detail: Detail = "auto"

    def __post_init__(self) -> None:
        _check_detail(self.detail)
        _check_url(self.url)

    def to_part(self) -> ContentPart:
        """Return the part of a message's content."""
        return _image_part(self.url, self.detail)

    def __repr__(self) -> str:
        return f"ImgUrl({_shown_url(self.url)!r}{_shown_detail(self.detail)})"


@dataclass(frozen=True, slots=True)
class ImgPath:
    """An image on this machine: PNG, JPEG, GIF, WebP or BMP, at most 20 MiB.

    What kind of image it is, its first bytes decide, never its name. The file is read when it is sent, and
    checked again then.

    Args:
        path: the file; a symbolic link is followed before anything is checked.
        detail: how closely the model shall look.
        root: the folder the file must lie in, after links are followed; None allows any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: not a regular file, not an image, too large, not readable, or outside `root`.
    """

    __pydantic_config__ = _described("an image")

    path: Path
    detail: Detail = "auto"
    root: Path | None = None
    _file: Path = field(init=False, repr=False, compare=False)

    if TYPE_CHECKING:

        def __init__(
            self, path: str | os.PathLike[str], detail: Detail = "auto", root: str | os.PathLike[str] | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_detail(self.detail)
        _settle(self, _image_type)

    @property
    def mime_type(self) -> str:
        """What the first bytes say now, such as "image/png"."""
        return _read(self._file, self.root, _image_type)[0]

    def to_part(self) -> ContentPart:
        """Read the file and return the part of a message's content."""
        mime, content = _read(self._file, self.root, _image_type)
        return _image_part(_data_url(mime, content), self.detail)

    def __repr__(self) -> str:
        return f"ImgPath({str(self.path)!r}{_shown_detail(self.detail)})"


@dataclass(frozen=True, slots=True)
class _WithPath:
    """What `Audio` and `File` share."""

    path: Path
    root: Path | None = None
    _file: Path = field(init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Audio(_WithPath):
    """A sound on this machine: WAV, MP3, FLAC, Ogg or M4A, at most 20 MiB; checked as `ImgPath` is.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: as for `ImgPath`.
    """

    __pydantic_config__ = _described("a sound")

    if TYPE_CHECKING:

        def __init__(self, path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        _settle(self, _audio_format)

    def to_part(self) -> ContentPart:
        """Read the file and return the part of a message's content."""
        name, content = _read(self._file, self.root, _audio_format)
        return {"type": "input_audio", "input_audio": {"data": base64.b64encode(content).decode(), "format": name}}


@dataclass(frozen=True, slots=True, repr=False)
class File(_WithPath):
    """A document on this machine, at most 20 MiB; checked as `ImgPath` is.

    PDF by its first bytes; docx, pptx and xlsx by first bytes and name; txt, md, csv, json, html and xml by
    name and by being UTF-8 text.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: as for `ImgPath`.
    """

    __pydantic_config__ = _described("a document")

    if TYPE_CHECKING:

        def __init__(self, path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        _settle(self, _document_type)

    def to_part(self) -> ContentPart:
        """Read the file and return the part of a message's content."""
        mime, content = _read(self._file, self.root, _document_type)
        return {"type": "file", "file": {"filename": self._file.name, "file_data": _data_url(mime, content)}}


Multimodal: TypeAlias = Text | ImgUrl | ImgPath | Audio | File
"""Everything that becomes its own part of a message."""

MULTIMODAL: Final = (Text, ImgUrl, ImgPath, Audio, File)
"""The same for `isinstance`, which takes a tuple faster than a union."""


def read_file(path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> bytes:
    """Return the content of a file of any kind, with the checks of `ImgPath`: regular, not empty, at most 20 MiB.

    Args:
        path: the file; a symbolic link is followed before anything is checked.
        root: the folder the file must lie in, after links are followed; None allows any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: not a regular file, empty, too large, not readable, or outside `root`.
    """
    file = _resolved(Path(os.fsdecode(path)))
    return _read(file, None if root is None else Path(os.fsdecode(root)), lambda *_: "")[1]


# A kind is told by the first bytes; the name only helps where they are not enough.
_Kind: TypeAlias = Callable[[bytes, Path], str | None]


def _settle(owner: ImgPath | Audio | File, kind: _Kind) -> None:
    """Normalise the paths of a new object and check its file."""
    if not isinstance(owner.path, (str, os.PathLike)):
        raise ValueError(f"{type(owner).__name__} takes a path, not {type(owner.path).__name__}")  # noqa: TRY004 - one kind of error for all that cannot be shown
    path = Path(os.fsdecode(owner.path))
    root = None if owner.root is None else Path(os.fsdecode(owner.root))
    file = _resolved(path)
    object.__setattr__(owner, "path", path)
    object.__setattr__(owner, "root", root)
    # Kept resolved: a later change of the working directory or of a link must not lead to another file.
    object.__setattr__(owner, "_file", file)
    _read(file, root, kind)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"no such file: {path}") from None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links, below Python 3.13
        raise ValueError(f"{str(path)!r} cannot be a file: {error}") from error


def _read(file: Path, root: Path | None, kind: _Kind) -> tuple[str, bytes]:
    """Return the kind and the content of a resolved file."""
    if _resolved(file) != file:
        raise ValueError(f"{file} has become a link. Make the object again.")
    if root is not None and not file.is_relative_to(_resolved(root)):
        raise ValueError(f"{file} lies outside {root}. Only files below that folder are allowed.")
    try:
        # Before opening: the mere opening of a FIFO waits, and that of a device may do things.
        _check_status(file, file.stat())
        flags = os.O_RDONLY
        for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
            flags |= getattr(os, name, 0)
        with os.fdopen(os.open(file, flags), "rb") as stream:
            # Again on what is open now: the name may have been given to something else meanwhile.
            _check_status(file, os.fstat(stream.fileno()))
            content = stream.read(MAX_FILE_BYTES + 1) or b""
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {file}") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"{file} is larger than 20 MiB")
    found = kind(content, file)
    if found is None:
        raise ValueError(f"{file}: {_WANTED[kind]}")
    return found, content


def _check_status(file: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{file} is not a regular file")
    if status.st_size == 0:
        raise ValueError(f"{file} is empty")
    if status.st_size > MAX_FILE_BYTES:
        raise ValueError(f"{file} has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} (20 MiB) are sent")


def _image_type(content: bytes, _: Path) -> str | None:
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    # "BM" alone begins many a text; the size of the header that follows does not.
    if content.startswith(b"BM") and int.from_bytes(content[14:18], "little") in _BMP_HEADER_SIZES:
        return "image/bmp"
    return next((mime for start, mime in _IMAGE_STARTS.items() if content.startswith(start)), None)


def _audio_format(content: bytes, _: Path) -> str | None:
    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return "wav"
    if content[4:8] == b"ftyp" and content[8:11] in {b"M4A", b"M4B"}:
        return "m4a"
    # MPEG layer III: eleven bits of synchronisation, then two of version and two of layer.
    if len(content) > 2 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2:
        return "mp3"
    return next((name for start, name in _AUDIO_STARTS.items() if content.startswith(start)), None)


def _document_type(content: bytes, file: Path) -> str | None:
    suffix = file.suffix.lower()
    if content.startswith(b"%PDF-"):
        return "application/pdf"
    if content.startswith(b"PK\x03\x04"):
        return _OFFICE_TYPES.get(suffix)
    if suffix in _TEXT_TYPES and _is_text(content):
        return _TEXT_TYPES[suffix]
    return None


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


_WANTED: dict[_Kind, str] = {
    _image_type: "its first bytes are those of no PNG, JPEG, GIF, WebP or BMP image",
    _audio_format: "its first bytes are those of no WAV, MP3, FLAC, Ogg or M4A file",
    _document_type: "it is no PDF, docx, pptx or xlsx, and no UTF-8 text named .txt .md .csv .json .html or .xml",
}


def _check_detail(detail: str) -> None:
    if detail not in _DETAILS:
        raise ValueError(f"detail must be one of {', '.join(_DETAILS)}, not {detail!r}")


def _check_url(url: str) -> None:
    if not isinstance(url, str):
        raise ValueError(f"ImgUrl takes a str, not {type(url).__name__}")  # noqa: TRY004 - one kind of error for all that cannot be shown
    if _BLANK.search(url):
        raise ValueError("the URL of an image holds blanks or control characters; escape them")
    scheme, _, rest = url.partition(":")
    if scheme.lower() == "data":
        if not _DATA_URL.fullmatch(url):
            raise ValueError(f"not a data URL of an image, such as data:image/png;base64,…: {cut(url, 40)!r}")
        return
    if scheme.lower() not in {"http", "https"}:
        raise ValueError(f"the URL of an image begins with http:, https: or data:, not {cut(url, 40)!r}")
    try:
        host = urlsplit(url).hostname
    except ValueError:  # a malformed one; its text may repeat the part with the password
        host = None
    if not rest.startswith("//") or not host:
        raise ValueError(f"the URL of an image needs a host: {_shown_url(url)!r}")


def _image_part(url: str, detail: Detail) -> ContentPart:
    return {"type": "image_url", "image_url": {"url": url} if detail == "auto" else {"url": url, "detail": detail}}


def _data_url(mime: str, content: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def _shown_url(url: str) -> str:
    """Return a URL as it may be shown: no base64, and neither user nor query, where keys tend to stand."""
    if url[:5].lower() == "data:":
        return f"{url.partition(',')[0][:60]},<{_size(len(url) * 3 // 4)}>"
    without_query, question_mark, _ = url.partition("?")
    scheme, slashes, rest = without_query.partition("//")
    host, slash, path = rest.partition("/")
    return cut(scheme + slashes + host.rpartition("@")[2] + slash + path, 120) + (question_mark and "?…")


def _shown_detail(detail: str) -> str:
    return "" if detail == "auto" else f", detail={detail!r}"


def _size(count: int) -> str:
    """Return a number of bytes for people: "34 kB"."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
