"""Text in images, read by the real engine, offline."""

from __future__ import annotations

import io
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from SimpleLLMFunc.assistant.builtin.ocr import read_text_in_image
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import install_line

PICTURE = Path(__file__).with_name("text_in_two_languages.png").read_bytes()


needs_ocr = pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra ocr is not installed")


def image(size=(40, 20), mode="RGB", kind="PNG", colour="white"):
    module = import_module("PIL.Image")
    out = io.BytesIO()
    module.new(mode, size, colour).save(out, kind)
    return out.getvalue()


@needs_ocr
@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_both_languages_are_read_in_order(capfd):
    lines = await read_text_in_image(PICTURE)
    assert [line.replace(" ", "") for line in lines] == [
        "InvoiceNo.4711",
        "彩虹城天气预报",
        "合计：128.50元",
        "Total",
        "2026-11-25",
    ]
    assert await read_text_in_image(image((300, 100))) == []
    assert capfd.readouterr() == ("", "")


@needs_ocr
@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_black_letters_on_nothing_are_read():
    module = import_module("PIL.Image")
    ink = module.open(io.BytesIO(PICTURE)).convert("L")
    clear = module.new("RGBA", ink.size, (0, 0, 0, 0))
    clear.putalpha(ink.point(lambda value: 255 - value))
    out = io.BytesIO()
    clear.save(out, "PNG")
    assert "4711" in (await read_text_in_image(out.getvalue()))[0]


@needs_ocr
@pytest.mark.parametrize("content", [b"", b"no image", PICTURE[:200], b"\x89PNG\r\n\x1a\n" + b"\0" * 100])
async def test_what_is_no_image_is_refused(content):
    with pytest.raises(ValueError, match="cannot be read"):
        await read_text_in_image(content)


@needs_ocr
async def test_a_huge_image_is_refused_before_it_is_unpacked():
    wide = image((8000, 8000), mode="1", colour=1)
    assert len(wide) < 50_000
    with pytest.raises(ValueError, match="8000 x 8000 pixels"):
        await read_text_in_image(wide)


@pytest.mark.parametrize("missing", ["rapidocr", "onnxruntime"])
async def test_a_missing_extra_names_the_install_line(monkeypatch, missing):
    monkeypatch.setattr("SimpleLLMFunc.extras.find_spec", lambda name: None if name == missing else object())
    with pytest.raises(ConfigError, match=re.escape(install_line("ocr"))):
        await read_text_in_image(PICTURE)
