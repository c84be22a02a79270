"""What a service did by itself for a reply, its own tools, and where it took what it says from; pure.

Both are read from the message: from what the service wants back (`provider_state`), or, on chat completions, from
`annotations`. So a message holds them once, in a history too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE
from SimpleLLMFunc.type import content_text, count, mapping, mappings, text_or_none


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool that the service ran by itself.

    Attributes:
        type: as the service calls it, such as "web_search", "web_search_call" or "googleSearch".
        input, output: as the service tells them; None where it tells none.
    """

    type: str
    input: Any = None
    output: Any = None


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a part of an answer comes from.

    Attributes:
        url: empty for a source without one, such as a file.
        title: of the source, or the name of the file.
        text: the quoted text, of the answer or of the source, as the service tells it.
    """

    url: str = ""
    title: str = ""
    text: str = ""


_INPUTS = ("action", "queries", "code", "arguments", "input")
_OUTPUTS = ("results", "outputs", "output", "result", "tools")
_USERS = frozenset({"function", "custom_tool", "computer", "local_shell", "apply_patch"})
"""Calls of ``/v1/responses`` that the user's side answers."""

_ABOUT = ("groundingMetadata", "citationMetadata", "urlContextMetadata")


def about_of(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a candidate of Gemini tells of its sources."""
    return {name: candidate[name] for name in _ABOUT if isinstance(candidate.get(name), Mapping)}


def server_tools_in(messages: Iterable[Mapping[str, Any]]) -> list[ServerTool]:
    """Return the tools that the service ran by itself, in order.

    Args:
        messages: of the model, as a history holds them; one that was paused goes on in the next.
    """
    found: dict[Any, ServerTool] = {}
    for place, message in enumerate(messages):
        state = mapping(message.get(STATE))
        read = _READERS.get(str(state.get("wire")))
        for key, tool in read(state) if read else ():
            # Only ids are known in the next message too.
            known = key if isinstance(key, str) else (place, key)
            old = found.get(known)
            found[known] = tool if old is None else ServerTool(old.type, old.input, tool.output)
    return list(found.values())


def _blocks(state: Mapping[str, Any]) -> Iterator[tuple[Any, ServerTool]]:
    for block in mappings(state.get("items")):
        kind = str(block.get("type"))
        if kind.endswith("_tool_use"):
            yield text_or_none(block.get("id")), ServerTool(str(block.get("name") or kind), block.get("input"))
        elif kind.endswith("_tool_result"):
            tool = ServerTool(kind.removesuffix("_tool_result"), None, block.get("content"))
            yield text_or_none(block.get("tool_use_id")), tool


def _items(state: Mapping[str, Any]) -> Iterator[tuple[Any, ServerTool]]:
    key: Any = None
    for number, item in enumerate(mappings(state.get("items"))):
        kind = str(item.get("type"))
        given = next(filter(None, map(item.get, _INPUTS)), None)
        told = next(filter(None, map(item.get, _OUTPUTS)), None) or mapping(item.get("action")).get("sources")
        if kind.endswith("_call") and kind.removesuffix("_call") not in _USERS:
            key = text_or_none(item.get("call_id")) or (number, kind.removesuffix("_call"))
            yield key, ServerTool(kind, given, told)
        elif kind.endswith("_output"):
            # One that the service ran stands right behind its call, which may have no id.
            yield text_or_none(item.get("call_id")) or key, ServerTool(kind, None, told)


def _parts(state: Mapping[str, Any]) -> Iterator[tuple[Any, ServerTool]]:
    key: Any = None
    for number, part in enumerate(mappings(state.get("items"))):
        called, result = mapping(part.get("toolCall")), mapping(part.get("toolResponse"))
        if called:
            yield text_or_none(called.get("id")) or number, ServerTool(str(called.get("toolType")), called.get("args"))
        elif result:
            tool = ServerTool(str(result.get("toolType")), None, result.get("response"))
            yield text_or_none(result.get("id")) or number - 1, tool
        elif "executableCode" in part:
            key = number
            yield key, ServerTool("codeExecution", part["executableCode"])
        elif "codeExecutionResult" in part:
            yield key, ServerTool("codeExecution", None, part["codeExecutionResult"])
    about = mapping(state.get("about"))
    grounding = mapping(about.get("groundingMetadata"))
    if grounding.get("webSearchQueries"):
        yield ("search",), ServerTool("googleSearch", grounding["webSearchQueries"], grounding.get("groundingChunks"))
    if fetched := mapping(about.get("urlContextMetadata")).get("urlMetadata"):
        yield ("urls",), ServerTool("urlContext", None, fetched)


_READERS = {"messages": _blocks, "responses": _items, "gemini": _parts}


def citations_in(message: Mapping[str, Any]) -> list[Citation]:
    """Return where an answer comes from, in the order of the service.

    Args:
        message: of the model, as a history holds it.
    """
    state, text = mapping(message.get(STATE)), content_text(message.get("content")) or ""
    items = mappings(state.get("items"))
    match state.get("wire"):
        case "messages":
            found = [each for block in items for each in mappings(block.get("citations"))]
            return [_citation(each, each.get("cited_text")) for each in found]
        case "responses":
            parts = [part for item in items if item.get("type") == "message" for part in mappings(item.get("content"))]
            return [_slice(each, str(part.get("text"))) for part in parts for each in mappings(part.get("annotations"))]
        case "gemini":
            return list(_grounded(mapping(state.get("about")), text))
    found = [mapping(each.get(str(each.get("type")))) or each for each in mappings(message.get("annotations"))]
    return [_slice(each, text) for each in found]


def _citation(told: Mapping[str, Any], text: Any) -> Citation:
    url = next(filter(None, map(told.get, ("url", "uri", "source"))), "")
    title = next(filter(None, map(told.get, ("title", "document_title", "filename"))), "")
    return Citation(str(url), str(title), str(text or ""))


def _slice(told: Mapping[str, Any], text: str) -> Citation:
    return _citation(told, text[count(told, "start_index") : count(told, "end_index")])


def _grounded(about: Mapping[str, Any], text: str) -> Iterator[Citation]:
    grounding, cited = mapping(about.get("groundingMetadata")), mapping(about.get("citationMetadata"))
    chunks = mappings(grounding.get("groundingChunks"))
    sources = [next((dict(each) for each in chunk.values() if isinstance(each, Mapping)), {}) for chunk in chunks]
    supports = mappings(grounding.get("groundingSupports"))
    for support in supports:
        said = mapping(support.get("segment")).get("text")
        places = support.get("groundingChunkIndices")
        for place in places if isinstance(places, list) else ():
            if isinstance(place, int) and 0 <= place < len(sources):
                yield _citation(sources[place], said)
    if not supports:
        yield from (_citation(source, "") for source in sources)
    whole = text.encode("utf-8", "replace")  # the indices count bytes
    for each in mappings(cited.get("citationSources") or cited.get("citations")):
        yield _citation(each, whole[count(each, "startIndex") : count(each, "endIndex")].decode("utf-8", "replace"))
