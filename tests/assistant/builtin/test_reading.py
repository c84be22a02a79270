"""Documents as text: kinds, encodings, and files that are damaged or meant to harm."""

import io
import logging
import re
import zipfile
from pathlib import Path

import pytest

from SimpleLLMFunc.assistant.builtin import reading
from SimpleLLMFunc.assistant.builtin.reading import MAX_TEXT_CHARS, Document, Unreadable, decoded, read_document
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import install_line

CONTRACT = Path(__file__).with_name("contract.pdf").read_bytes()
TEXT = "第一行：你好，世界\nsecond line"


# --- encodings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "gbk", "utf-16", "utf-32"])
@pytest.mark.parametrize("ending", ["txt", "MD", "csv", "tsv", "json", "log"])
def test_encodings(encoding, ending):
    assert read_document(f"a.{ending}", TEXT.encode(encoding)) == Document(f"a.{ending}", TEXT)


def test_big_endian_and_rare_characters():
    assert decoded(b"\xfe\xff" + "𠮷野".encode("utf-16-be")) == "𠮷野"
    assert decoded("𠮷野".encode("gb18030")) == "𠮷野"


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b"\x00\x01\x02binary", "abc".encode("utf-16-le"), b"caf\xe9 bleu", b"\xef\xbb\xbf\xff\xfe"],
)
def test_what_is_no_text_is_refused(content):
    with pytest.raises(ValueError, match="no text in UTF-8"):
        read_document("a.txt", content)


# --- plain kinds ---------------------------------------------------------------------------------------------


def test_a_kind_that_is_not_read_names_those_that_are():
    with pytest.raises(ValueError, match="txt, md, csv, json, pdf, docx"):
        read_document("a.exe", b"MZ")
    with pytest.raises(ValueError, match="are not read"):
        read_document("noending", b"x")


def test_a_long_text_is_cut_and_says_so():
    document = read_document("a.txt", b"x" * (MAX_TEXT_CHARS + 5))
    assert document.is_cut
    assert len(document.text) == MAX_TEXT_CHARS


# --- PDF -----------------------------------------------------------------------------------------------------


def pdf(change=lambda writer: None):
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter()
    for page in PdfReader(io.BytesIO(CONTRACT)).pages:
        writer.add_page(page)
    change(writer)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_pdf_in_chinese():
    document = read_document("合同.pdf", CONTRACT)
    assert "甲方应于十二月一日前付款" in document.text
    assert "第二页 Second page" in document.text


def test_an_encrypted_pdf_says_so():
    content = pdf(lambda writer: writer.encrypt("secret", algorithm="RC4-128"))
    with pytest.raises(ValueError, match=r"is encrypted\. Give a copy without a password"):
        read_document("a.pdf", content)


def test_a_pdf_that_only_forbids_printing_is_read():
    content = pdf(lambda writer: writer.encrypt("", "owner", algorithm="RC4-128"))
    assert "合同编号" in read_document("a.pdf", content).text


def test_a_pdf_of_images_has_no_text():
    from pypdf import PdfWriter

    writer = PdfWriter()
    writer.add_blank_page(200, 200)
    out = io.BytesIO()
    writer.write(out)
    assert read_document("scan.pdf", out.getvalue()).text == ""


@pytest.mark.parametrize("cut", [8, 100, 700, 1500, 2500])
def test_a_cut_pdf_is_read_or_refused_and_never_prints(cut, capfd, caplog):
    try:
        read_document("a.pdf", CONTRACT[:cut])
    except ValueError as error:
        assert len(str(error)) < 400
    assert capfd.readouterr() == ("", "")


# --- docx ----------------------------------------------------------------------------------------------------


def docx_bytes(fill):
    import docx

    document = docx.Document()
    fill(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_docx_in_its_order():
    def fill(document):
        document.add_heading("议题", level=1)
        document.add_paragraph("第一段。")
        table = document.add_table(rows=2, cols=2)
        for cell, text in zip(table._cells, ["姓名", "任务", "李雷", "写 报告"], strict=True):
            cell.text = text
        document.add_heading("Decisions", level=2)
        document.add_paragraph("We ship.")

    document = read_document("a.docx", docx_bytes(fill))
    assert document.text.splitlines() == [
        "# 议题",
        "第一段。", "姓名 | 任务", "李雷 | 写 报告",
        "## Decisions",
        "We ship.",
    ]  # fmt: skip


def with_member(name, content):
    out = io.BytesIO(docx_bytes(lambda document: document.add_paragraph("x")))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return out.getvalue()


def test_a_packed_bomb_is_refused_before_it_is_unpacked():
    bomb = with_member("word/media/bomb.bin", b"\0" * (101 * 1024 * 1024))
    assert len(bomb) < 300_000
    with pytest.raises(ValueError, match="would unpack to"):
        read_document("a.docx", bomb)


@pytest.mark.parametrize(
    ("names", "said"),
    [([f"word/{number}" for number in range(6000)], "6000 parts"), (["xl/workbook.xml"], r"document\.xml is missing")],
    ids=["many parts", "another kind"],
)
def test_another_archive_is_refused(names, said):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    with pytest.raises(ValueError, match=said):
        read_document("a.docx", out.getvalue())


def test_entities_are_not_expanded():
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx_bytes(lambda document: document.add_paragraph("MARK")))) as source:
        with zipfile.ZipFile(out, "w") as target:
            for member in source.infolist():
                content = source.read(member)
                if member.filename == "word/document.xml":
                    laughs = b"".join(
                        b'<!ENTITY l%d "%s">' % (number, b"&l%d;" % (number - 1) * 10) for number in range(1, 9)
                    )
                    doctype = (
                        b'<!DOCTYPE d [<!ENTITY l0 "ha">' + laughs + b'<!ENTITY file SYSTEM "file:///etc/passwd">]>'
                    )
                    head, mark, rest = content.partition(b"?>")
                    content = head + mark + doctype + rest.replace(b"MARK", b"&l8;&file;")
                target.writestr(member, content)
    try:
        text = read_document("a.docx", out.getvalue()).text
    except ValueError:
        return
    assert "root:" not in text
    assert len(text) < 1000


@pytest.mark.parametrize(("content", "said"), [
    (b"", "no .docx"), (b"PK\x03\x04", "no .docx"), (b"plain text", "no .docx"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "old .doc, or encrypted"),
])  # fmt: skip
def test_what_is_no_docx_is_refused(content, said):
    with pytest.raises(ValueError, match=said):
        read_document("a.docx", content)


# --- extras --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "content"), [("a.pdf", CONTRACT), ("a.docx", None)])
def test_a_missing_extra_names_the_install_line(monkeypatch, name, content):
    content = docx_bytes(lambda document: document.add_paragraph("x")) if content is None else content

    def missing(module):
        raise ImportError(f"No module named {module!r}")

    monkeypatch.setattr("SimpleLLMFunc.extras.import_module", missing)
    with pytest.raises(ConfigError, match=re.escape(install_line("files"))):
        read_document(name, content)


def test_the_logger_of_the_pdf_library_stays_the_users():
    read_document("a.pdf", CONTRACT)
    read_document("a.pdf", CONTRACT)
    handlers = logging.getLogger("pypdf").handlers
    assert [type(handler) for handler in handlers].count(logging.NullHandler) == 1
    assert logging.getLogger("pypdf").propagate


def test_what_the_libraries_raise_is_said_with_the_name_of_the_file(monkeypatch):
    def broken(_content):
        return b"\xff".decode()

    monkeypatch.setitem(reading._READERS, ".txt", broken)
    with pytest.raises(Unreadable, match=r"^'a\.txt' cannot be read: UnicodeDecodeError: "):
        read_document("a.txt", b"x")
