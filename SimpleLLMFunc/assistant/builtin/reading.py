"""Files as text: txt, md, csv, json, pdf and docx; pure, and slow for large ones, so not for an event loop."""

from __future__ import annotations

import codecs
import csv
import io
import json
import logging
import re
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
_MOST_SHOWN = 20


class Unreadable(ValueError):
    """A document that cannot be read; says why, without its name where the reader did not know it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read.

    Attributes:
        name: of the file.
        kind: txt, md, csv, json, pdf or docx.
        text: what it says.
        facts: what was counted, in the order to show it.
        is_cut: its text is longer than what was taken.
    """

    name: str
    kind: str
    text: str
    facts: tuple[tuple[str, str], ...]
    is_cut: bool = False


def read_document(name: str, content: bytes) -> Document:
    """Read a document; its kind is that of its name.

    Raises:
        Unreadable: a kind that is not read, an encoding that is not known, damaged, encrypted, or made to be huge.
        ConfigError: the extra `files` is not installed.
    """
    ending = PurePath(name).suffix.lower()
    kind = _ENDINGS.get(ending)
    if kind is None:
        raise Unreadable(f"{cut(name, 80)!r}: files of this kind are not read. These are: {', '.join(KINDS)}.")
    try:
        text, facts = _READERS[kind](content)
    except (Unreadable, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file may raise anything in the libraries that read it
        raise Unreadable(f"{cut(name, 80)!r} cannot be read: {type(error).__name__}: {cut(str(error), 200)}") from None
    text = text.replace("\0", "").strip()
    counted = [("characters", f"{len(text)}"), ("lines", f"{text.count(chr(10)) + 1 if text else 0}")]
    return Document(name, kind, text[:MAX_TEXT_CHARS], (*facts, *counted), is_cut=len(text) > MAX_TEXT_CHARS)


KINDS: Final = ("txt", "md", "csv", "json", "pdf", "docx")
"""What can be read."""
_OTHER_ENDINGS: Final = {".text": "txt", ".log": "txt", ".markdown": "md", ".tsv": "csv"}
_ENDINGS: Final = {f".{kind}": kind for kind in KINDS} | _OTHER_ENDINGS

_Facts = list[tuple[str, str]]

# --- plain text ----------------------------------------------------------------------------------------------

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decoded(content: bytes) -> tuple[str, str]:
    """Return a text and its encoding: what its mark says, else UTF-8, else GB18030.

    Raises:
        Unreadable: none of these, or no text.
    """
    marked = next(((mark, name) for mark, name in _MARKS if content.startswith(mark)), None)
    tried = [(b"", "utf-8"), (b"", "gb18030")] if marked is None else [marked]
    for mark, name in tried:
        try:
            text = content[len(mark) :].decode(name)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break  # bytes of another kind, or UTF-16 without its mark
        return text.replace("\r\n", "\n").replace("\r", "\n"), name
    raise Unreadable("it is no text in UTF-8, GB18030, or UTF-16 with a byte order mark. Save it as UTF-8.")


def _plain(content: bytes) -> tuple[str, _Facts]:
    text, encoding = decoded(content)
    return text, [("encoding", encoding)]


def _markdown(content: bytes) -> tuple[str, _Facts]:
    text, encoding = decoded(content)
    headings = re.findall(r"^#{1,6} +(\S.*)$", text, re.MULTILINE)
    return text, [("encoding", encoding), *_listed("headings", headings)]


def _csv(content: bytes) -> tuple[str, _Facts]:
    text, encoding = decoded(content)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:4096], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = csv.reader(io.StringIO(text), delimiter=dialect.delimiter, strict=False)
        names = [name.strip() for name in next(rows, [])]
        count = sum(map(bool, rows))
    except csv.Error as error:
        raise Unreadable(f"it is no CSV: {error}.") from None
    return text, [("encoding", encoding), ("rows", f"{count}"), *_listed("columns", names)]


def _json(content: bytes) -> tuple[str, _Facts]:
    text, encoding = decoded(content)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"it is no JSON: {error.msg} in line {error.lineno}, column {error.colno}.") from None
    except (RecursionError, ValueError):
        raise Unreadable("it is no JSON that can be read: nested too deep, or a number too long.") from None
    named = data[0] if isinstance(data, list) and data else data
    fields = [str(name) for name in named] if isinstance(named, dict) else []
    return text, [("encoding", encoding), *_listed("fields", fields)]


def _listed(name: str, values: list[str]) -> _Facts:
    if not values:
        return []
    more = " …" if len(values) > _MOST_SHOWN else ""
    return [(name, f"{len(values)}: " + ", ".join(cut(value.strip(), 60) for value in values[:_MOST_SHOWN]) + more)]


# --- pdf -----------------------------------------------------------------------------------------------------


def _pdf(content: bytes) -> tuple[str, _Facts]:
    if b"%PDF-" not in content[:1024]:
        raise Unreadable("its first bytes are not those of a PDF.")
    pypdf = load_extra("pypdf", "files", purpose="reading PDF files")
    # It logs every oddity of a file; without a logging setup, that would go to stderr.
    _silence(logging.getLogger("pypdf"))
    reader = pypdf.PdfReader(io.BytesIO(content), strict=False)
    if reader.is_encrypted and not _opens_without_password(reader):
        raise Unreadable("the PDF is encrypted. Give a copy without a password.")
    facts: _Facts = [("pages", f"{len(reader.pages)}")]
    about = reader.metadata
    facts += [(name, cut(str(value), 200)) for name in ("title", "author") if (value := getattr(about, name, None))]
    text = _joined((page.extract_text() or "" for page in reader.pages), "\n\n")
    if not text.strip():
        facts.append(("note", "it holds no text: its pages are probably scanned images"))
    return text, facts


def _opens_without_password(reader: Any) -> bool:
    """Whether the PDF only forbids some uses, and can be read without a password."""
    try:
        return bool(reader.decrypt(""))
    except Exception:  # noqa: BLE001 - a cipher that needs a library we do not have is as good as a password
        return False


def _silence(logger: logging.Logger) -> None:
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())


# --- docx ----------------------------------------------------------------------------------------------------


def _docx(content: bytes) -> tuple[str, _Facts]:
    _check_archive(content)
    docx = load_extra("docx", "files", purpose="reading Word files")
    document = docx.Document(io.BytesIO(content))
    headings: list[str] = []
    facts: _Facts = []
    properties = document.core_properties
    facts += [(name, cut(str(value), 200)) for name in ("title", "author") if (value := getattr(properties, name, ""))]
    text = _joined(_blocks(document, headings), "\n")
    return text, [*facts, ("tables", f"{len(document.tables)}"), *_listed("headings", headings)]


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


def _blocks(document: Any, headings: list[str]) -> Iterator[str]:
    """Yield paragraphs and tables in their order; `headings` is filled on the way."""
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                yield " | ".join(" ".join(cell.text.split()) for cell in row.cells)
            continue
        style = str(getattr(block.style, "name", "") or "")
        text = block.text
        if text.strip() and (style.startswith("Heading") or style == "Title"):
            headings.append(text.strip())
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


_READERS: Final[dict[str, Callable[[bytes], tuple[str, _Facts]]]] = {
    "txt": _plain,
    "md": _markdown,
    "csv": _csv,
    "json": _json,
    "pdf": _pdf,
    "docx": _docx,
}
