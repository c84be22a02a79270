"""Files as text: txt, md, csv, json, pdf and docx; pure, and slow for large ones, so not for an event loop."""

from __future__ import annotations

import codecs
import io
import logging
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from SimpleLLMFunc.errors import ConfigError, cut
from SimpleLLMFunc.extras import load_extra

MAX_TEXT_CHARS: Final = 5_000_000
"""Characters of text that are taken from a document."""

MAX_UNPACKED_BYTES: Final = 100 * 1024 * 1024
"""What a packed document may unpack to."""

MAX_MEMBERS: Final = 5000


class Unreadable(ValueError):
    """A document that cannot be read; says why, without its name where the reader did not know it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read.

    Attributes:
        name: of the file.
        text: what it says.
        is_cut: its text is longer than what was taken.
    """

    name: str
    text: str
    is_cut: bool = False


def read_document(name: str, content: bytes) -> Document:
    """Read a document; its kind is that of its name.

    Raises:
        Unreadable: a kind that is not read, an encoding that is not known, damaged, encrypted, or made to be huge.
        ConfigError: the extra `files` is not installed.
    """
    read = _READERS.get(PurePath(name).suffix.lower())
    if read is None:
        raise Unreadable(f"{cut(name, 80)!r}: files of this kind are not read. These are: {', '.join(KINDS)}.")
    try:
        text = read(content).replace("\0", "").strip()
    except (Unreadable, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file may raise anything in the libraries that read it
        raise Unreadable(f"{cut(name, 80)!r} cannot be read: {type(error).__name__}: {cut(str(error), 200)}") from None
    return Document(name, text[:MAX_TEXT_CHARS], is_cut=len(text) > MAX_TEXT_CHARS)


KINDS: Final = ("txt", "md", "csv", "json", "pdf", "docx")
"""What can be read."""

# --- plain text ----------------------------------------------------------------------------------------------

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decoded(content: bytes) -> str:
    """Return a text in the encoding that its mark names, else in UTF-8, else in GB18030.

    Raises:
        Unreadable: none of these, or no text.
    """
    marked = [name for mark, name in _MARKS if content.startswith(mark)][:1]
    for name in marked or ("utf-8-sig", "gb18030"):
        try:
            text = content.decode(name)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break  # bytes of another kind, or UTF-16 without its mark
        return text.replace("\r\n", "\n").replace("\r", "\n")
    raise Unreadable("it is no text in UTF-8, GB18030, or UTF-16 with a byte order mark. Save it as UTF-8.")


# --- pdf -----------------------------------------------------------------------------------------------------

_NO_OUTPUT: Final = logging.NullHandler()


def _pdf(content: bytes) -> str:
    if b"%PDF-" not in content[:1024]:
        raise Unreadable("its first bytes are not those of a PDF.")
    pypdf = load_extra("pypdf", "files", purpose="reading PDF files")
    # It logs every oddity of a file; without a logging setup, that would go to stderr.
    logging.getLogger("pypdf").addHandler(_NO_OUTPUT)
    reader = pypdf.PdfReader(io.BytesIO(content), strict=False)
    if reader.is_encrypted and not _opens_without_password(reader):
        raise Unreadable("the PDF is encrypted. Give a copy without a password.")
    return _joined((page.extract_text() or "" for page in reader.pages), "\n\n")


def _opens_without_password(reader: Any) -> bool:
    """Whether the PDF only forbids some uses, and can be read without a password."""
    try:
        return bool(reader.decrypt(""))
    except Exception:  # noqa: BLE001 - a cipher that needs a library we do not have is as good as a password
        return False


# --- docx ----------------------------------------------------------------------------------------------------


def _docx(content: bytes) -> str:
    _check_archive(content)
    docx = load_extra("docx", "files", purpose="reading Word files")
    return _joined(_blocks(docx.Document(io.BytesIO(content))), "\n")


def _check_archive(content: bytes) -> None:
    """Refuse what is no Word file, and what unpacks to more than anybody writes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:
        # The old format, and an encrypted file, are OLE containers.
        old = content.startswith(b"\xd0\xcf\x11\xe0")
        said = (
            "it is an old .doc, or encrypted. Save it as .docx without a password." if old else "it is no .docx file."
        )
        raise Unreadable(said) from None
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES or len(members) > MAX_MEMBERS:
        raise Unreadable(
            f"it would unpack to {unpacked} bytes in {len(members)} parts; at most {MAX_UNPACKED_BYTES} bytes in "
            f"{MAX_MEMBERS} parts are read."
        )
    if not any(member.filename == "word/document.xml" for member in members):
        raise Unreadable("it is no Word file: the part word/document.xml is missing.")


def _blocks(document: Any) -> Iterator[str]:
    """Yield paragraphs and tables in their order."""
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                yield " | ".join(" ".join(cell.text.split()) for cell in row.cells)
            continue
        style = str(getattr(block.style, "name", "") or "")
        text = block.text
        if text.strip() and (style.startswith("Heading") or style == "Title"):
            level = int(style[-1]) if style[-1:].isdigit() else 1
            text = f"{'#' * level} {text.strip()}"
        yield text


def _joined(parts: Iterator[str], between: str) -> str:
    """Join texts, and take no more once there are more characters than are kept."""
    taken: list[str] = []
    size = 0
    for part in parts:
        taken.append(part)
        size += len(part) + len(between)
        if size > MAX_TEXT_CHARS:
            break
    return between.join(taken)


_READERS: Final[dict[str, Callable[[bytes], str]]] = {
    **dict.fromkeys([".txt", ".text", ".log", ".md", ".markdown", ".csv", ".tsv", ".json"], decoded), ".pdf": _pdf, ".docx": _docx,
}  # fmt: skip
"""By the ending of the name."""
