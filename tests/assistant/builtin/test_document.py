"""The tool for documents: analyse, summarise, extract, below a folder only."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.assistant.builtin import document as document_module
from SimpleLLMFunc.assistant.builtin.document import document_tools
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.tools import ModelRetry, ToolContext

HERE = Path(__file__).parent


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "in"
    root.mkdir()
    (root / "合同.pdf").write_bytes((HERE / "contract.pdf").read_bytes())
    (root / "prices.csv").write_text("item,price\npen,2\nbook,12\n")
    (root / "note.txt").write_bytes("会议定于周五上午十点。".encode("gb18030"))
    (root / "empty.md").write_text("\n")
    (root / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0")
    (tmp_path / "secret.txt").write_text("secret")
    return root


def process(folder, *replies, language="zh", **options):
    llm = ScriptedLLM(*replies)
    (tool,) = document_tools(folder, llm=llm, language=language, **options)
    return tool, llm


def asked(llm):
    return "".join(str(message["content"]) for message in llm.requests[-1])


@pytest.mark.parametrize("operation", ["analyze", "Analyse", "分析内容"])
async def test_an_analysis_is_what_the_model_says(folder, operation):
    tool, llm = process(folder, "一份价目表。")
    assert await tool("prices.csv", operation) == "《prices.csv》的分析：\n一份价目表。"
    assert "book,12" in asked(llm)


async def test_what_is_extracted(folder):
    found = [{"label": "时间", "value": "周五 10:00"}, {"label": "主题", "value": "未知"}]
    tool, _ = process(folder, json.dumps(found, ensure_ascii=False))
    said = await tool("note.txt", "提取信息", "时间和地点")
    assert said == "从《note.txt》中提取的信息：\n- 时间：周五 10:00\n- 主题：未知"


async def test_a_summary_of_a_pdf(folder):
    tool, llm = process(folder, "A contract.", language="en")
    assert await tool("合同.pdf", "summarize", "dates") == "Summary of 合同.pdf:\nA contract."
    assert "甲方应于十二月一日前付款" in asked(llm)
    assert "dates" in asked(llm)


async def test_a_file_without_text_asks_no_model(folder):
    tool, llm = process(folder)
    assert (
        await tool("empty.md", "summarize")
    ) == "《empty.md》里没有可读的文字；如果是扫描的 PDF，请改用图片的文字识别。"
    assert llm.calls == []


async def test_what_was_not_read_is_said(folder):
    (folder / "long.txt").write_text("x" * 600_000)
    (tool,) = document_tools(folder, llm=ScriptedLLM("n", repeat=True), language="en")
    assert "only its first 480000 characters were read" in await tool("long.txt", "summarize")


@pytest.mark.parametrize("operation", ["translate", "", "delete"])
async def test_another_operation_is_refused(folder, operation):
    tool, llm = process(folder, language="en")
    with pytest.raises(ModelRetry, match="There are: analyze, summarize, extract"):
        await tool("note.txt", operation)
    assert llm.calls == []


async def test_a_larger_file_is_refused(folder):
    with (folder / "sparse.txt").open("wb") as file:
        file.truncate(3_000_000_000)
    tool, _ = process(folder)
    with pytest.raises(ValueError, match=r"^sparse\.txt has .*; at most 21"):
        await tool("sparse.txt")


async def test_a_file_that_takes_for_ever_is_given_up(folder, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(document_module, "PARSE_SECONDS", 0.1)
    monkeypatch.setattr(document_module, "read_document", lambda *_: release.wait(30))
    tool, _ = process(folder, language="en")
    with pytest.raises(ValueError, match="took too long"):
        await tool("note.txt")
    release.set()


async def test_the_files_of_a_session_are_read_and_without_a_folder_there_is_nothing_to_read(folder):
    (tool,) = document_tools(language="en")
    session = ToolContext(context=SimpleNamespace(root=folder))
    with use_llm(ScriptedLLM("On Friday.")):
        assert await tool("note.txt", "summarize", context=session) == "Summary of note.txt:\nOn Friday."
    with pytest.raises(FileNotFoundError, match="There are: none"):
        await tool("note.txt")
    with pytest.raises(ConfigError):
        document_tools("/nowhere/at/all")
