"""What a docstring says about a tool and its parameters: Google, NumPy, reST, epydoc, English or Chinese."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

# The parser knows English headings only. Each row: what people write, the Google heading, the NumPy heading.
_HEADINGS: Final = (
    (("参数", "参数说明", "参数列表", "输入参数", "入参", "输入"), "Args", "Parameters"),
    (("关键字参数", "其他参数"), "Args", "Parameters"),
    (("返回", "返回值", "返回结果", "返回值说明", "输出"), "Returns", "Returns"),
    (("产出", "生成", "迭代"), "Yields", "Yields"),
    (("异常", "抛出", "抛出异常", "引发", "可能的异常"), "Raises", "Raises"),
    (("示例", "例子", "用法", "使用示例"), "Examples", "Examples"),
    (("Keyword Args", "Keyword Arguments", "Other Parameters"), "Args", "Parameters"),
)
_GOOGLE = {name: google for names, google, _ in _HEADINGS for name in names}
_GOOGLE |= dict.fromkeys(("Arguments", "Parameters", "Params"), "Args")
# A model needs none of these, and the parser gives up on a whole docstring for one odd line in them.
_LEFT_OUT: Final = frozenset({"Returns", "Yields", "Raises", "Exceptions", "Attributes", "Example", "Examples"})
_NUMPY = {name: numpy for names, _, numpy in _HEADINGS for name in names}
_NUMPY |= {name: name for name in ("Parameters", "Returns", "Yields", "Raises", "Examples", "Attributes", "Notes")}
_FIELDS = {"参数": "param", "类型": "type", "返回": "returns", "返回值": "returns", "异常": "raises", "抛出": "raises"}

_HEADING = re.compile(r"^(?P<indent>[ \t]*)(?P<name>[\w ]+?)[ \t]*(?P<colon>[:：])?[ \t]*$")
_UNDERLINE = re.compile(r"^[ \t]*-{2,}[ \t]*$")
_FIELD = re.compile(rf"^(?P<indent>[ \t]*)(?P<mark>[:@])(?P<name>{'|'.join(_FIELDS)})(?P<rest>[ \t:：].*)$")
_ENTRY = re.compile(
    r"^(?P<indent>[ \t]+)(?:[-•][ \t]+)?(?P<name>\\?\*{0,2}\w+)[ \t]*"
    r"(?:[(（](?P<kind>[^()（）]*(?:\([^()]*\))?[^()（）]*)[)）])?[ \t]*[:：](?P<text>.*)$"
)


# The lines of reST and epydoc that say something of a parameter.
_PARAMETER = re.compile(r"^[ \t]*[:@](?:param|parameter|arg|argument|key|keyword|type|参数|类型)\s[^:：]*[:：]")
_WORD = re.compile(r"\w+")
_MARKS: Final = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "type", "optional", *_FIELDS})


@dataclass(frozen=True, slots=True)
class Documentation:
    """A docstring, read.

    Attributes:
        description: what stands above the sections; empty where there is no docstring.
        parameters: what is said about each parameter, by its name without asterisks.
    """

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Documentation:
    """Read a docstring; one that follows no style is its own description."""
    if not text or not text.strip():
        return Documentation()
    from docstring_parser import ParseError, parse

    cleaned = inspect.cleandoc(text)
    try:
        lines = [*_in_english(_lines(cleaned))]
        # The parser takes the indentation of all lines but the first for that of the whole text.
        found = parse("\n".join(["", *lines] if _is_google(_HEADING.match(lines[0])) else lines))
    except ParseError:
        return Documentation(cleaned)
    description = "\n\n".join(part.strip() for part in (found.short_description, found.long_description) if part)
    parameters: dict[str, str] = {}
    for name, said, _ in _told(found):
        if said:
            parameters.setdefault(name, said)
    return Documentation(description, parameters)


def _told(found: Any) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and type of each parameter that a parsed docstring knows; a line may name several."""
    for entry in found.params:
        for name in entry.arg_name.split(","):
            yield name.strip().lstrip("\\*"), (entry.description or "").strip(), entry.type_name or ""


def taken_apart(text: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a docstring without its sections about parameters, and by name the text and the type they give.

    Other text stays as written, and so does a section with words that belong to none of its parameters.
    """
    kept: list[str] = []
    fields: list[str] = []
    sections: list[list[str]] = []
    lines, position = _lines(text), 0
    while position < len(lines):
        end = _end_of_section(lines, position)
        section = lines[position : max(end, position + 1)]
        position += len(section)
        if end < position:
            # One of the empty lines around removed fields stays.
            kept += section if section[0].strip() or kept[-1:] != [""] or not fields else []
        elif _PARAMETER.match(section[0]):
            fields += section
        elif _parameters(section):
            sections.append(section)
        else:
            kept += section
    told: dict[str, tuple[str, str]] = {}
    for found in map(_parameters, filter(None, [fields, *sections])):
        if not found:
            return text, {}
        for name, (said, kind) in found.items():
            before = told.get(name, ("", ""))
            told[name] = "\n".join(filter(None, [before[0], said])), before[1] or kind
    return ("\n".join(kept).strip(), told) if told else (text, {})


def _lines(text: str) -> list[str]:
    """Return the lines of a cleaned docstring; cleaning has flattened a section that begins on its first line."""
    lines = text.splitlines()
    if len(lines) > 1 and _is_google(_HEADING.match(lines[0])) and lines[1][:1].strip():
        lines[1:] = (f"    {line}" for line in lines[1:])
    return lines


def _is_google(heading: re.Match[str] | None) -> bool:
    """Whether a line begins a section about parameters as Google writes it."""
    return heading is not None and bool(heading["colon"]) and _GOOGLE.get(heading["name"], heading["name"]) == "Args"


def _end_of_section(lines: list[str], start: int) -> int:
    """Return where a section about parameters ends that begins at `start`; `start` itself where none begins there."""
    first, *following = lines[start:]
    heading = _HEADING.match(first)
    if _PARAMETER.match(first):
        inside = [bool(line.strip()) and _depth(line) > _depth(first) for line in following]
    elif heading is None or heading["indent"]:
        return start
    elif _NUMPY.get(heading["name"]) == "Parameters" and following and _UNDERLINE.match(following[0]):
        # An entry stands at the margin, its text below it is indented; other text at the margin ends the section.
        pairs = zip(following[1:], [*following[2:], ""], strict=False)
        inside = [True, *(_is_indented(line) or _is_entry(line, below) for line, below in pairs)]
    elif _is_google(heading):
        inside = [_is_indented(line) for line in following]
    else:
        return start
    return start + 1 + [*inside, False].index(False)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_indented(line: str) -> bool:
    return not line.strip() or line[0].isspace()


def _is_entry(line: str, below: str) -> bool:
    return " : " in line or (below[:1].isspace() and bool(below.strip()))


def _parameters(section: list[str]) -> dict[str, tuple[str, str]]:
    """Return what a section says by parameter; nothing where a word of it would be lost."""
    from docstring_parser import ParseError, parse

    try:
        found = parse("\n".join(["", *_in_english(section)]))  # as in `read_docstring`
    except ParseError:
        return {}
    told = {name: (text, kind) for name, text, kind in _told(found)}
    said = {word for name, texts in told.items() for text in (name, *texts) for word in _WORD.findall(text)}
    body = section if _PARAMETER.match(section[0]) else section[1:]
    return told if set(_WORD.findall("\n".join(body))) <= said | _MARKS else {}


def _in_english(lines: list[str]) -> Iterator[str]:
    """Yield the lines with headings, colons and field marks as the parser knows them, without the other sections."""
    section, depth = "", ""
    underlined = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if underlined:
            # The parser wants the line under a heading exactly as long as the heading.
            yield underlined
            underlined = ""
            continue
        heading = _HEADING.match(line)
        name = heading["name"] if heading else ""
        if heading and _UNDERLINE.match(following) and name in _NUMPY:
            section = ""
            yield heading["indent"] + _NUMPY[name]
            underlined = heading["indent"] + "-" * len(_NUMPY[name])
        elif heading and heading["colon"] and not heading["indent"]:
            before, depth = section, ""
            section = _GOOGLE.get(name, name)
            # The parser keeps only the last of two sections with one name, so the second one continues the first.
            if section not in _LEFT_OUT and not (before == section == "Args"):
                yield f"{section}:"
        elif section == "Args":
            entry = _ENTRY.match(line)
            depth = depth or (entry["indent"] if entry else "")
            # Deeper lines belong to the text of the entry above them.
            yield _entry(entry) if entry and entry["indent"] == depth else line
        elif section not in _LEFT_OUT:
            yield _field(line)


def _entry(match: re.Match[str]) -> str:
    kind = f" ({match['kind']})" if match["kind"] else ""
    return f"{match['indent']}{match['name']}{kind}: {match['text'].strip()}"


def _field(line: str) -> str:
    match = _FIELD.match(line)
    if not match:
        return line
    return f"{match['indent']}{match['mark']}{_FIELDS[match['name']]}{match['rest'].replace('：', ':', 1)}"
