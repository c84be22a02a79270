"""Reading text in an image, offline, with RapidOCR (extra: ocr)."""

from __future__ import annotations

import io
import os
from functools import lru_cache
from typing import Any, Final

from SimpleLLMFunc.extras import check_extra, load_extra
from SimpleLLMFunc.runtime import ForkSafeLock, in_thread

MAX_PIXELS: Final = 50_000_000
"""A larger image is refused: unpacked it would take gigabytes."""

_PURPOSE: Final = "reading text in images"


async def read_text_in_image(content: bytes) -> list[str]:
    """Return the lines of text in an image, in the order in which they are read.

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


def _read(content: bytes) -> list[str]:
    pixels = _pixels(content)
    with _one_at_a_time:  # the engine takes all cores already
        return [str(text) for text in _engine(os.getpid())(pixels).txts or ()]


@lru_cache(maxsize=1)
def _engine(_process: int) -> Any:
    """Return the engine; a forked child makes another."""
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
