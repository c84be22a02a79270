"""Looking at images: by a vision model, or by the real engine offline; files below the folders only, addresses never fetched."""

import io
import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.assistant.builtin import image as image_module
from SimpleLLMFunc.assistant.builtin.image import image_tools, read_text_in_image
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.tools import ModelRetry, ToolContext
from tests.support.server import LoopbackServer

PICTURE = Path(__file__).with_name("text_in_two_languages.png").read_bytes()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(PICTURE)
    (tmp_path / "in" / "fake.png").write_text("just text")
    (tmp_path / "out.png").write_bytes(PICTURE)
    return tmp_path / "in"


def analyze(*replies, root=None, language="zh"):
    llm = ScriptedLLM(*replies)
    (tool,) = image_tools(llm, root=root, language=language)
    return tool, llm


def sent(llm):
    """What the model was sent: the texts, and the addresses of the images."""
    parts = [
        part for message in llm.requests[-1] if isinstance(message["content"], list) for part in message["content"]
    ]
    system = "".join(message["content"] for message in llm.requests[-1] if message["role"] == "system")
    texts = system + "".join(part.get("text", "") for part in parts)
    return texts, [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


async def test_an_address_goes_to_the_model_and_is_never_fetched():
    async with LoopbackServer() as server:
        tool, llm = analyze("a cat")
        address = f"{server.base_url}/cat.png"
        assert await tool(address) == "a cat"
        assert sent(llm)[1] == [address]
        assert server.requests == []


@pytest.mark.parametrize("kind", ["objects", "物体检测"])
async def test_objects_are_a_typed_list(folder, kind):
    found = [{"name": "猫", "count": 2, "where": "左上", "details": "黑色"}, {"name": "桌子"}]
    tool, _ = analyze(json.dumps(found, ensure_ascii=False), root=folder)
    assert await tool("a.png", kind) == "- 猫 × 2，左上，黑色\n- 桌子 × 1"
    tool, _ = analyze("[]", root=folder, language="en")
    assert await tool("a.png", kind) == "No objects were found in the image."


# --- text ----------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(monkeypatch):
    seen = []

    async def read(content):
        seen.append(content)
        return ["合计", "42"] if len(seen) == 1 else []

    monkeypatch.setattr(image_module, "read_text_in_image", read)
    return seen


@pytest.mark.parametrize("kind", ["text", "ocr", "文字识别"])
async def test_text_needs_no_model(folder, engine, kind):
    tool, llm = analyze(root=folder)
    assert await tool("a.png", kind) == "识别到的文字：\n合计\n42"
    assert engine == [PICTURE]
    assert llm.calls == []
    assert await tool("a.png", kind) == "图片里没有识别到文字。"


async def test_a_large_image_is_read_off_the_loop(folder, engine):
    (folder / "large.png").write_bytes(PICTURE + b"x" * 15_000_000)  # the guard looks at such files
    tool, _ = analyze(root=folder)
    assert "42" in await tool("large.png", "text")


async def test_text_of_an_address_is_refused_without_a_request(engine):
    async with LoopbackServer() as server:
        tool, _ = analyze(language="en")
        with pytest.raises(ModelRetry, match="nothing is downloaded"):
            await tool(f"{server.base_url}/a.png", "text")
        assert server.requests == []


@pytest.mark.parametrize("kind", ["faces", "", "人脸识别", "x" * 1000])
async def test_another_kind_is_clearly_refused(folder, kind):
    tool, llm = analyze(root=folder)
    with pytest.raises(ModelRetry, match=r"不支持的分析类型.*general.*objects.*text") as caught:
        await tool("a.png", kind)
    assert len(str(caught.value)) < 250
    assert llm.calls == []


async def test_it_reads_the_sessions_files_and_asks_the_current_model(folder):
    (tool,) = image_tools(language="en")
    session = ToolContext(context=SimpleNamespace(root=folder))
    with use_llm(ScriptedLLM("a receipt")):
        assert await tool("a.png", context=session) == "a receipt"


# --- the engine ---


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
        "InvoiceNo.4711", "彩虹城天气预报", "合计：128.50元", "Total", "2026-11-25",
    ]  # fmt: skip
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
