"""Reading text in an image, offline, with RapidOCR (extra: ocr)."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from SimpleLLMFunc.extras import check_extra, load_extra
from SimpleLLMFunc.runtime import ForkSafeLock, in_thread

MAX_PIXELS: Final = 50_000_000
"""A larger image is refused: unpacked it would take gigabytes."""

_PURPOSE: Final = "reading text in images"
_SAME_LINE = 0.5


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text in an image.

    Attributes:
        confidence: from 0 to 1.
        box: left, top, right and bottom, in pixels.
    """

    text: str
    confidence: float
    box: tuple[float, float, float, float]


async def read_text_in_image(content: bytes) -> list[TextLine]:
    """Return the lines of text in an image, from the top, those at one height from the left.

    Args:
        content: of a PNG, JPEG, WebP, BMP or GIF file.

    Raises:
        ConfigError: the extra `ocr` is not installed.
        ValueError: it is no image, or too large a one.
    """
    for module in ("rapidocr", "onnxruntime"):
        check_extra(module, "ocr", purpose=_PURPOSE)
    return await in_thread(_read, content)


_one_at_a_time = ForkSafeLock()


def _read(content: bytes) -> list[TextLine]:
    pixels = _pixels(content)
    with _one_at_a_time:  # the engine takes all cores already
        found = _engine(os.getpid())(pixels)
    if getattr(found, "txts", None) is None or getattr(found, "boxes", None) is None:
        return []
    lines = [
        TextLine(str(text), float(score), _box(box))
        for text, score, box in zip(found.txts, found.scores, found.boxes, strict=True)
    ]
    return _in_reading_order(lines)


@lru_cache(maxsize=1)
def _engine(_process: int) -> Any:
    """Return the engine; a forked child makes one of its own."""
    made = load_extra("rapidocr", "ocr", purpose=_PURPOSE).RapidOCR
    # It would else write coloured lines to the terminal.
    return made(params={"Global.log_level": "critical"})


def _pixels(content: bytes) -> Any:
    """Return the image as the engine wants it, as rows of blue, green and red."""
    image_module = load_extra("PIL.Image", "ocr", purpose=_PURPOSE)
    numpy = load_extra("numpy", "ocr", purpose=_PURPOSE)
    try:
        with image_module.open(io.BytesIO(content)) as image:
            width, height = image.size
            # What is transparent is white paper, not black.
            plain = image.convert("RGBA") if width * height <= MAX_PIXELS else None
    except Exception as error:  # noqa: BLE001 - a broken image may raise anything
        raise ValueError(f"the image cannot be read: {type(error).__name__}: {error}") from None
    if plain is None:
        raise ValueError(f"the image has {width} x {height} pixels; at most {MAX_PIXELS} are read.")
    paper = image_module.new("RGBA", plain.size, "white")
    paper.alpha_composite(plain)
    return numpy.ascontiguousarray(numpy.asarray(paper.convert("RGB"))[:, :, ::-1])


def _box(corners: Iterable[Iterable[float]]) -> tuple[float, float, float, float]:
    points = [tuple(float(value) for value in corner) for corner in corners]
    across, down = [point[0] for point in points], [point[1] for point in points]
    return min(across), min(down), max(across), max(down)


def _in_reading_order(lines: list[TextLine]) -> list[TextLine]:
    """Return the lines from the top down; those whose middles are at one height, from the left."""
    rows: list[list[TextLine]] = []
    for line in sorted(lines, key=_middle):
        if rows and abs(_middle(line) - _middle(rows[-1][0])) < _SAME_LINE * (line.box[3] - line.box[1]):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda each: each.box[0])]


def _middle(line: TextLine) -> float:
    return (line.box[1] + line.box[3]) / 2
