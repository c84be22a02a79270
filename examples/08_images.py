# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Images in and out: an argument that the model sees, and a tool that shows it another picture.

Model: answers written down (`ScriptedLLM`). For a real one change the line `llm = …`.
"""

import struct
import tempfile
import zlib
from pathlib import Path

from SimpleLLMFunc import ImgPath, llm_function
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

COLOURS = {"red": (220, 30, 30), "blue": (30, 60, 220)}


def write_png(path: Path, colour: tuple[int, int, int], size: int = 8) -> Path:
    """Write a square of one colour, so that the example needs no image file."""

    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + block(b"IDAT", zlib.compress(rows)) + block(b"IEND", b"")
    )
    return path


def main(folder: Path) -> None:
    def shelf(colour: str) -> tuple[str, ImgPath]:
        """Take a photo of the shelf with tiles of a colour."""
        return f"The shelf of {colour} tiles:", ImgPath(write_png(folder / f"{colour}.png", COLOURS[colour]))

    # A real model that sees: from SimpleLLMFunc import OpenAICompatible; llm = OpenAICompatible("gpt-5-mini")
    llm = ScriptedLLM(tool_calls(("shelf", {"colour": "blue"})), "No: yours is red, and those on the shelf are blue.")

    @llm_function(llm_interface=llm, toolkit=[shelf])
    def compare(question: str, photo: ImgPath) -> str:
        """Compare a customer's tile with what is in the shop."""
        raise NotImplementedError

    # Only an ImgPath is ever read from the disk, and only an image; a str is always text.
    mine = ImgPath(write_png(folder / "mine.png", COLOURS["red"]), detail="low")
    result = compare.call("Do you have this in stock?", mine)

    # In the messages, pictures are parts next to the text; those of a tool follow in a separate message.
    for message in result.messages[1:]:
        content = message["content"]
        if isinstance(content, list):
            print(f"{message['role']}: {' + '.join(part['type'] for part in content)}")
        else:
            print(f"{message['role']}: {content or [call.function.name for call in result.tool_calls]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
