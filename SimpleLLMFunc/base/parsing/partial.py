"""A growing text → growing values of the wanted type.

`PartialReader` gives ever larger parts of one value, `ItemReader` the items of a list, each as soon as it is complete.
What is given out is validated field by field; a field that has not arrived is absent: reading it raises
AttributeError, in a TypedDict KeyError. A string grows, a number or a date appears when it is complete, a list
grows by complete items. The last word has `finish`, which reads the whole text as `OutputSpec.parse` does.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Final, Protocol

from pydantic import BaseModel, TypeAdapter

from SimpleLLMFunc.base.parsing.alignment.align import Aligner
from SimpleLLMFunc.base.parsing.alignment.alignment import Misfit
from SimpleLLMFunc.base.parsing.alignment.shape import (
    AnyShape,
    Check,
    LeafShape,
    ListShape,
    MappingShape,
    ObjectShape,
    Shape,
    choices_of,
    resolved,
)
from SimpleLLMFunc.base.parsing.json_growth import Frame, JsonGrowth
from SimpleLLMFunc.base.parsing.json_node import Node
from SimpleLLMFunc.base.parsing.parsed import OutputMode, Parsed, RepairLevel

_ABSENT: Final[Any] = object()
_LARGE_PIECE: Final = 8_000
"""Characters of a piece that is too large for a stream: it is nearly all of an answer, and is read with the whole answer,
which does not block the event loop."""

_PASSED_ON: Final = frozenset({"default", "definition-ref", "definitions", "function-after", "nullable"})
_OBJECTS: Final = frozenset({"dataclass", "model", "typed-dict"})
_GROWING: Final = _OBJECTS | {"frozenset", "list", "set", "str", "tuple", "union"}
_CHANGES: Final = {"strip_whitespace": "strip", "to_lower": "lower", "to_upper": "upper"}

_STEADY: Final = 2048
"""Characters up to which a growing string is shown with every piece; beyond, only when it grew by 1/64."""


def is_equal(left: Any, right: Any, *, unclear: bool = False) -> bool:
    """Whether two values are equal; `unclear` where the comparison fails or has no truth value, as that of arrays."""
    try:
        return bool(left == right)
    except Exception:  # noqa: BLE001 - the comparison is code of the user's
        return unclear


class ReadableType(Protocol):
    """A return type as it is read: an `OutputSpec`, which stands on this room."""

    adapter: TypeAdapter[Any]
    is_text: bool
    is_wrapped: bool

    @property
    def shape(self) -> Shape:
        """The type as the aligner sees it."""
        ...

    def parse(self, text: str, repair: RepairLevel = "coerce", *, mode: OutputMode | None = None) -> Parsed[Any]:
        """Return the value that a whole text holds."""
        ...


class _Reader:
    """What both readers do: follow the growth and keep the validated members.

    Attributes:
        growth: the JSON as it arrives.
    """

    def __init__(self, spec: ReadableType, *, repair: RepairLevel = "coerce", mode: OutputMode | None = None) -> None:
        self._spec = spec
        self._repair: RepairLevel = repair
        self._mode: OutputMode | None = mode
        self._pieces: list[str] = []
        self.growth = JsonGrowth(self._open, self._add, takes_breaks=repair != "off")
        self._value_frame: Frame | None = None
        self._aligner = Aligner(may_coerce=repair == "coerce")
        self._root: Shape = resolved(spec.shape)
        self._root_check = Check(spec.adapter.core_schema)
        # Of an answer that was not asked for in our wrapper, {"value": …} may be any JSON as well.
        self._is_any = isinstance(self._root, AnyShape) and mode not in {"native", "tool"}

    def _follow(self, text: str) -> bool:
        """Take the next piece; tell whether a value became complete."""
        self._pieces.append(text)
        self._has_grown = False
        if len(text) > _LARGE_PIECE:
            self.growth.is_over = True
        self.growth.feed(text)
        return self._has_grown

    def feed(self, text: str) -> list[Any]:
        """Take the next piece of text; return what there is to show now."""
        try:
            return self._fed(text)
        except (RecursionError, TypeError):  # nested too deep, or items that no set takes: the whole tells of it
            self.growth.is_over = True
            return []

    def _fed(self, text: str) -> list[Any]:
        raise NotImplementedError

    def _open(self, frame: Frame) -> None:
        stack = self.growth.stack
        if len(stack) > 1:
            frame.shape = _of_kind(frame, *self._member(stack[-2]))
            if len(stack) == 2 and stack[0].is_wrapper:
                self._value_frame = frame
        elif self._spec.is_wrapped and isinstance(frame.node, dict) and not self._is_any:
            frame.is_wrapper = True
        else:
            frame.shape = _of_kind(frame, self._root, self._root_check)
            self._value_frame = frame

    def _member(self, outer: Frame) -> tuple[Shape | None, Check]:
        """Return the shape of what is arriving in a container, and its check."""
        self._settle(outer)
        shape = outer.shape
        if isinstance(shape, ObjectShape) and not shape.is_hooked and (part := shape.by_name.get(outer.key)):
            return part.shape, part.check
        if isinstance(shape, ListShape):
            return shape.item, shape.check
        return (self._root if outer.is_wrapper else None), self._root_check

    def _settle(self, frame: Frame) -> None:
        """See that an object with a key that is not ours is no wrapper, but the bare value."""
        if frame.is_wrapper and frame.key != "value":
            frame.is_wrapper, frame.values = False, {}
            frame.shape = _of_kind(frame, self._root, self._root_check)
            self._value_frame = frame

    def _add(self, frame: Frame, node: Node) -> None:
        self._settle(frame)
        shape = frame.shape
        value = _ABSENT
        if frame.is_wrapper and not isinstance(node, dict | list):
            value = self._validated(self._root, self._root_check, node)
        elif isinstance(shape, ObjectShape) and not shape.is_hooked and (part := shape.by_name.get(frame.key)):
            value = self._validated(part.shape, part.check, node)
        elif isinstance(shape, ListShape) and not frame.has_gap:
            # A bare value among lists could be the item of one, or of this one: the whole answer decides.
            is_unclear = isinstance(resolved(shape.item), ListShape) and not isinstance(node, list)
            value = _ABSENT if is_unclear else self._validated(shape.item, shape.check, node)
        if value is _ABSENT:
            frame.has_gap = True
            return
        if isinstance(shape, ListShape):
            frame.values.append(value)
        elif isinstance(shape, ObjectShape):
            frame.values[_name_in(shape, frame.key)] = value
        else:
            frame.values["value"] = value
            self._value_frame = frame
        self._has_grown = True

    def _validated(self, shape: Shape, check: Check, node: Node) -> Any:
        found = self._aligner.align(shape, node)
        if isinstance(found, Misfit):
            return _ABSENT
        try:
            return check.validate(found.value)
        except Exception:  # noqa: BLE001 - a validator of the user's own may want what has not arrived
            return _ABSENT

    def finish(self) -> Parsed[Any]:
        """Read the whole text as the value.

        Raises:
            ResponseParseError: no one value fits.
        """
        return self._spec.parse("".join(self._pieces), self._repair, mode=self._mode)


class PartialReader(_Reader):
    """Reads a growing answer as ever larger parts of one value."""

    _shown: Any = _ABSENT
    _shown_string: list[str] | None = None

    def _fed(self, text: str) -> list[Any]:
        # What is shown holds all that was shown before; it is never changed afterwards.
        if self._spec.is_text and self._mode not in {"native", "tool"}:
            # the text is the value: the pieces are what there is to show
            self._pieces.append(text)
            return []
        if not self._follow(text) and not self._string_grew():
            return []
        part = self._snapshot()
        if part is _ABSENT or (type(part) is type(self._shown) and is_equal(part, self._shown)):
            return []
        self._shown = part
        return [part]

    def _string_grew(self) -> bool:
        """Tell whether a string that is arriving has grown enough to be shown, at a cost of its new pieces alone."""
        string = self._growing_string()
        if string is None:
            return False
        if string is not self._shown_string:
            self._shown_string, self._shown_length = string, 0
            self._length = self._measured = 0
        self._length += sum(map(len, string[self._measured :]))
        self._measured = len(string)
        grown = self._length - self._shown_length
        if not grown or (self._length > _STEADY and grown < self._length // 64):
            return False
        self._shown_length = self._length
        return True

    def _growing_string(self) -> list[str] | None:
        """Return the pieces of the string that is arriving, if it belongs to a field that may show it."""
        growth = self.growth
        if growth.string is None or not growth.stack or growth.stack[-1].expects != "value":
            return None
        frame = growth.stack[-1]
        shape, check = self._member(frame)
        schema = None if shape is None or isinstance(frame.node, list) else _schema_in(check)
        return growth.string if schema is not None and schema["type"] == "str" else None

    def _snapshot(self) -> Any:
        """Build the value from the open containers, innermost first."""
        inner: Any = _ABSENT
        string = self._growing_string()
        stack = self.growth.stack
        if string:
            inner = _as_read("".join(string), self._member(stack[-1])[1]) or _ABSENT
        value = self._value_frame
        # the whole value may have closed with this piece of text
        for frame in [value] if value is not None and value not in stack else reversed(stack):
            shape = frame.shape
            if frame.is_wrapper:
                inner = frame.values.get("value", inner)
            elif isinstance(shape, ListShape):
                inner = shape.made(frame.values)
            elif isinstance(shape, ObjectShape):
                inner = self._partial_object(shape, frame, inner)
            else:
                inner = _ABSENT
        return inner

    def _partial_object(self, shape: ObjectShape, frame: Frame, inner: Any) -> Any:
        present = dict(frame.values)
        if inner is not _ABSENT and frame.key in shape.by_name and frame.expects == "value":
            present[_name_in(shape, frame.key)] = inner
        return _unfinished(shape.cls, present) if present else _ABSENT


class ItemReader(_Reader):
    """Reads a growing answer as the items of a list, each when it is complete.

    An item that does not fit ends the flow: the whole answer decides.
    """

    def __init__(self, spec: ReadableType, *, repair: RepairLevel = "coerce", mode: OutputMode | None = None) -> None:
        super().__init__(spec, repair=repair, mode=mode)
        self._ready: list[Any] = []

    def _fed(self, text: str) -> list[Any]:
        self._follow(text)
        items, self._ready = self._ready, []
        return items

    def _add(self, frame: Frame, node: Node) -> None:
        super()._add(frame, node)
        if frame.shape is self._root and isinstance(frame.node, list) and frame.values:
            self._ready.append(frame.values.pop())
            frame.node.clear()  # the node is not read again; all nodes freed at the end would take long


def _name_in(shape: ObjectShape, key: str) -> str:
    """Return what the field of a key is called in the value: an attribute, or a key of a TypedDict."""
    part = shape.by_name[key]
    return part.own_name if shape.cls is not None else part.key


def _of_kind(frame: Frame, shape: Shape | None, check: Check) -> Shape | None:
    """Return the only shape that the container can grow into; None where that is not known yet."""
    if shape is None or _schema_in(check) is None:
        return None
    containers = [part for part in choices_of(shape) if not isinstance(part, LeafShape)]
    kinds = ObjectShape | MappingShape if isinstance(frame.node, dict) else ListShape
    fitting = [part for part in containers if isinstance(part, kinds)]
    return fitting[0] if len(containers) == len(fitting) == 1 else None


def _schema_in(check: Check) -> Any:
    """Return the schema inside of defaults and the like; None where a value cannot be shown before it is complete.

    A validator of the user's own may make anything of it then; one of a whole object seldom changes its fields.
    """
    schema, known, is_checked = check.schema, check.definitions, False
    while schema["type"] in _PASSED_ON:
        known = {part["ref"]: part for part in schema.get("definitions", ())} or known
        is_checked = is_checked or schema["type"] == "function-after"
        schema = known[schema["schema_ref"]] if schema["type"] == "definition-ref" else schema["schema"]
    may_show = schema["type"] in (_OBJECTS if is_checked else _GROWING) and not schema.get("root_model")
    return schema if may_show else None


def _as_read(text: str, check: Check) -> str:
    """Return a growing text as it will be read."""
    schema, config = _schema_in(check), check.config or {}
    for name, change in _CHANGES.items():
        if schema.get(name, config.get(f"str_{name}")):
            text = getattr(text, change)()
    return text


# --- values of which only some fields have arrived ---------------------------------------------------------


def _unfinished(cls: Any, values: dict[str, Any]) -> Any:
    """Return an instance of `cls` that has only these fields; the others are absent, their defaults too."""
    if cls is None:
        return values
    if issubclass(cls, BaseModel):
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", set(values))
        object.__setattr__(made, "__pydantic_extra__", {} if cls.model_config.get("extra") == "allow" else None)
        object.__setattr__(made, "__pydantic_private__", {} if cls.__private_attributes__ else None)
        return made
    made = object.__new__(_unfinished_class(cls))
    for part in dataclasses.fields(cls):  # not an InitVar: only the whole has read it
        if part.name in values:
            object.__setattr__(made, part.name, values[part.name])
    return made


class _Absent:
    """Stands where a dataclass keeps a default: a field that has not arrived has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(f"{self._name!r} has not arrived yet")


@functools.lru_cache(maxsize=512)
def _unfinished_class(cls: type) -> type:
    """Return a subclass of a dataclass whose instances may lack fields and can still be printed and compared."""
    names = [part.name for part in dataclasses.fields(cls)]

    def arrived(self: Any) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def shown(self: Any) -> str:
        return f"{cls.__name__}({', '.join(f'{name}={value!r}' for name, value in arrived(self).items())})"

    def is_equal(self: Any, other: object) -> bool:
        return type(self) is type(other) and arrived(self) == arrived(other)

    members: dict[str, Any] = {
        "__repr__": shown, "__eq__": is_equal, "__hash__": None, "__slots__": (), "__module__": cls.__module__
    }  # fmt: skip
    if "__slots__" not in vars(cls):
        members |= {name: _Absent() for name in names if name in vars(cls)}
    return type(cls.__name__, (cls,), members)
