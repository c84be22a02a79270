"""Quotes in an answer: is each in an argument, and where?

A quote is looked for as it is. Where it does not stand so, these differences do not count: how much white space there
is (none next to a Chinese, Japanese or Korean character), full and half width, the kind of quote marks, composed and
decomposed letters, invisible characters, and a pair of quote marks around the whole. Letters, digits and punctuation do.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cached_property
from itertools import chain, repeat
from operator import is_not
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel

from SimpleLLMFunc.errors import Violation, cut
from SimpleLLMFunc.type import Audio, File, ImgPath, ImgUrl, Quoted, Text

_DEEPEST: Final = 32
_NO_TEXT: Final = (bool, bytes, bytearray, ImgUrl, ImgPath, Audio, File)
_CLUSTER: Final = re.compile(r"\s+|.[\u0300-\u036f\u3099\u309a\uff9e\uff9f]*", re.DOTALL)
_MARKS: Final = frozenset("\"'`´‘’‚‛“”„‟«»‹›「」『』〝〞＂＇′″")
_INVISIBLE: Final = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")


class QuoteCheck:
    """Looks for the quotes of an answer in the arguments of its call, and writes their places into them.

    Args:
        arguments: by parameter name.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._sources = [
            _Source(name, path, text) for name, value in arguments.items() for path, text in _texts(value, name, 0)
        ]
        self.size = sum(len(source.text) for source in self._sources)

    def __call__(self, value: Any, path: str = "") -> list[Violation]:
        """Return a violation for each quote in `value` that is in no argument; set the place of all others.

        Args:
            value: an answer, or the part of one that stands at `path`.
            path: goes before the path of each quote.
        """
        names = list(dict.fromkeys(source.argument for source in self._sources))
        several = f"one of the arguments {', '.join(names) or '(none of them is a text)'}"
        among = f"the argument {names[0]}" if len(names) == 1 else several
        wanted = f"a text that stands word for word in {among}"
        missing = [(where, quote) for where, quote in _quotes(value, path, 0) if not self._is_found(quote)]
        return [(where, wanted, cut(str.__repr__(quote), 200)) for where, quote in missing]

    def _is_found(self, quote: Quoted[Any]) -> bool:
        quote.locate("", "", -1, -1)
        text = str(quote)
        if not text.strip():
            return False
        for source in self._sources:
            start = source.text.find(text)
            if start >= 0:
                quote.locate(source.argument, source.path, start, start + len(text))
                return True
        wanted = _Folded(text).text
        for folded in (wanted, wanted[1:-1].strip() if wanted[:1] == wanted[-1:] == "'" else ""):
            for source in self._sources:
                if folded and (place := source.folded.find(folded)) is not None:
                    quote.locate(source.argument, source.path, *place)
                    return True
        return False


@dataclasses.dataclass
class _Source:
    """One text of the arguments."""

    argument: str
    path: str
    text: str

    @cached_property
    def folded(self) -> _Folded:
        return _Folded(self.text)


class _Folded:
    """A text without what does not count, and where each of its characters stood."""

    def __init__(self, text: str) -> None:
        pieces: list[str] = []
        self._starts, self._ends = array("l"), array("l")
        gap: tuple[int, int] | None = None
        was_wide = True  # white space at the beginning counts as none
        for found in _CLUSTER.finditer(text):
            piece = found[0]
            if piece.isspace():
                gap = gap or found.span()
                continue
            if piece in _INVISIBLE:
                continue
            piece, is_wide = _folded(piece)
            if gap is not None and not (was_wide or is_wide):
                self._add(pieces, " ", *gap)
            gap, was_wide = None, is_wide
            self._add(pieces, piece, *found.span())
        self.text = "".join(pieces)

    def _add(self, pieces: list[str], piece: str, start: int, end: int) -> None:
        pieces.append(piece)
        self._starts.extend([start] * len(piece))
        self._ends.extend([end] * len(piece))

    def find(self, wanted: str) -> tuple[int, int] | None:
        start = self.text.find(wanted)
        return None if start < 0 else (self._starts[start], self._ends[start + len(wanted) - 1])


def _folded(piece: str) -> tuple[str, bool]:
    """Return a character as it is compared, and whether it is one of those that stand without spaces."""
    if piece.isascii():
        return ("'" if piece in _MARKS else piece), False
    if piece in _MARKS:
        return "'", False
    width = unicodedata.east_asian_width(piece[0])
    form: Final = "NFKC" if width in {"F", "H"} else "NFC"
    return unicodedata.normalize(form, piece), width in {"F", "W"}


def _texts(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the texts in an argument, each with its path."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        yield path, str(value)
    elif isinstance(value, Text):
        yield path, value.content
    elif value is None or isinstance(value, _NO_TEXT) or depth > _DEEPEST:
        return
    elif (parts := _parts(value)) is not None:
        for key, part in parts:
            yield from _texts(part, f"{path}{key}", depth + 1)
    else:
        yield path, str(value)  # a number or a date, as the model reads it


def _quotes(value: Any, path: str, depth: int) -> Iterator[tuple[str, Quoted[Any]]]:
    """Yield the quotes in an answer, each with its path."""
    if isinstance(value, BaseModel):
        own, fields = vars(value), type(value).model_fields
        for name in own.keys() & fields.keys():
            own[name] = _marked(own[name], fields[name].annotation)
    if isinstance(value, Quoted):
        yield path, value
    elif depth <= _DEEPEST and not isinstance(value, (str, bytes)) and (parts := _parts(value)) is not None:
        if isinstance(value, Mapping):
            yield from ((f"{path}.{key!s}".removeprefix("."), key) for key in value if isinstance(key, Quoted))
        for key, part in parts:
            yield from _quotes(part, f"{path}{key}".removeprefix("."), depth + 1)


def _marked(value: Any, annotation: Any) -> Any:
    """Return the value of a field; a quote is marked again if a validator (`text.strip()`) made a plain text of it."""
    origin, kinds = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _marked(value, kinds[0])
    if origin is dict and type(value) is dict:
        pairs = [*value.items()]
        made = _marked(pairs, list[tuple[kinds]])  # type: ignore[valid-type]
        return value if made is pairs else dict(made)
    if origin in (list, set, frozenset, tuple) and type(value) is origin:
        # What no kind is told of stays as it is: the items of a bare `List`, the last ones of a longer tuple.
        is_fixed = origin is tuple and kinds[1:] != (...,)
        of = chain(kinds, repeat(None)) if is_fixed else repeat(kinds[0] if kinds else None)
        items = [_marked(item, kind) for item, kind in zip(value, of, strict=False)]
        return origin(items) if any(map(is_not, items, value)) else value
    if origin in (Union, UnionType) and str not in kinds:
        return next((marked for kind in kinds if (marked := _marked(value, kind)) is not value), value)
    return Quoted(value) if Quoted in (annotation, origin) and type(value) is str else value


def _parts(value: Any) -> Iterable[tuple[str, Any]] | None:
    """Return what a container holds, each part with its step of a path; None if it is not a container."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        own = ((f".{_alias(field) or name}", getattr(value, name, None)) for name, field in fields.items())
        return (*own, *((f".{name}", part) for name, part in (value.model_extra or {}).items()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{part.name}", getattr(value, part.name, None)) for part in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [(f".{key}", part) for key, part in value.items()]
    if isinstance(value, (list, tuple, AbstractSet)):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    return None


def _alias(field: Any) -> str | None:
    alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias
    return alias if isinstance(alias, str) else None
