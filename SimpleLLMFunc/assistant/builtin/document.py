"""Documents below a folder: analysed, summarised, or searched for what they say about something."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final, Literal

from SimpleLLMFunc.assistant.builtin.digest import Digest
from SimpleLLMFunc.assistant.builtin.files import checked_root, find_file, given_roots, named_below
from SimpleLLMFunc.assistant.builtin.localized_tool import localized
from SimpleLLMFunc.assistant.builtin.reading import Document, read_document
from SimpleLLMFunc.assistant.words import WORDS, Language
from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.tools import ModelRetry, Tool, ToolContext
from SimpleLLMFunc.type import read_file

Operation = Literal["analyze", "summarize", "extract"]

PARSE_SECONDS: Final = 60.0
"""How long reading one file may take; some are made to take for ever."""

_OPERATIONS: Final[dict[str, Operation]] = WORDS["operations"]
_WORDS: Final[dict[str, dict[str, str]]] = WORDS["document"]


def document_tools(
    root: str | os.PathLike[str] | None = None, *, llm: LLM_Interface | None = None, language: Language = "zh"
) -> list[Tool]:
    """Return the tool `process_document`.

    Args:
        root: the folder whose files may be read, as well as those of the session; None for those only.
        llm: reads the text; None takes the current one (`use_llm`, environment) at each call.
        language: of the description, and of what the tool says.

    Raises:
        ConfigError: `root` is no folder.
    """
    folder = checked_root(root)
    digest = Digest(llm, language)
    words = _WORDS[language]

    async def process_document(  # noqa: D417 - the context is no argument of the model's
        file_path: str, operation: str = "analyze", query: str = "", context: ToolContext[Any] | None = None
    ) -> str:
        """Process a document: analyse it, summarise it, or extract information. Reads txt, md, csv, json, pdf, docx.

        Args:
            file_path: Name of the file, such as report.pdf.
            operation: analyze, summarize or extract.
            query: What is of interest, or what to extract, such as "the price and the date of payment"; may be left
                out.
        """
        wanted = _OPERATIONS.get(operation.strip().lower())
        if wanted is None:
            raise ModelRetry(words["unknown"].format(operation=cut(operation, 60)))
        file, below = await in_thread(find_file, file_path, given_roots(folder, context), language)

        def read(name: str) -> Document:
            return read_document(name, read_file(file, below))

        with named_below(file, below) as name:
            try:
                async with asyncio.timeout(PARSE_SECONDS):
                    document = await in_thread(read, name)
            except TimeoutError:
                raise ValueError(words["slow"].format(name=name)) from None
        return await _processed(document, wanted, query, digest, language)

    return [localized(process_document, language, untrusted=True)]


async def _processed(document: Document, operation: Operation, query: str, digest: Digest, language: Language) -> str:
    words = _WORDS[language]
    name, text = document.name, document.text
    if not text:
        return words["empty"].format(name=name)
    match operation:
        case "analyze":
            said = [words["analysis"].format(name=name), await digest.analyze(text, query)]
        case "summarize":
            said = [words["summary"].format(name=name), await digest.summarize(text, query)]
        case "extract":
            found = await digest.extract(text, query)
            said = [words["found" if found else "nothing"].format(name=name)]
            said += [words["finding"].format(label=finding.label, value=finding.value) for finding in found]
    read = sum(map(len, digest.parts(text)))
    if document.is_cut or read < len(text):
        said.append(words["cut"].format(chars=read))
    return "\n".join(said)
