"""Text in images, read by the real engine, offline."""

from __future__ import annotations

import io
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.assistant.builtin import ocr
from SimpleLLMFunc.assistant.builtin.ocr import TextLine, read_text_in_image
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
    assert [line.text.replace(" ", "") for line in lines] == [
        "InvoiceNo.4711",
        "彩虹城天气预报",
        "合计：128.50元",
        "Total",
        "2026-11-25",
    ]
    assert all(0.8 < line.confidence <= 1 for line in lines)
    assert lines[0].box[3] < lines[1].box[3]
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
    assert "4711" in (await read_text_in_image(out.getvalue()))[0].text


class Engine:
    """Stands for the engine where the order of its results is what matters."""

    def __init__(self, *results):
        self.results = results

    def __call__(self, pixels):
        self.shape = pixels.shape
        boxes = [
            [[left, top], [right, top], [right, bottom], [left, bottom]]
            for _, (left, top, right, bottom) in self.results
        ]
        if not boxes:
            return SimpleNamespace(txts=None, boxes=None, scores=None)
        return SimpleNamespace(txts=[text for text, _ in self.results], boxes=boxes, scores=[0.9] * len(boxes))


@needs_ocr
async def test_lines_at_one_height_are_read_from_the_left(monkeypatch):
    engine = Engine(("d", (300, 52, 400, 70)), ("a", (0, 0, 90, 20)), ("c", (0, 50, 90, 70)), ("b", (0, 25, 90, 45)))
    monkeypatch.setattr(ocr, "_engine", lambda _process: engine)
    assert [line.text for line in await read_text_in_image(image((400, 80)))] == ["a", "b", "c", "d"]
    assert engine.shape == (80, 400, 3)


@needs_ocr
async def test_nothing_found(monkeypatch):
    monkeypatch.setattr(ocr, "_engine", lambda _process: Engine())
    for mode in ("RGB", "L", "P", "RGBA", "1"):
        assert await read_text_in_image(image(mode=mode, colour=None)) == []


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


def test_a_line_is_a_fact():
    assert TextLine("a", 0.5, (0, 0, 1, 1)) == TextLine("a", 0.5, (0, 0, 1, 1))
