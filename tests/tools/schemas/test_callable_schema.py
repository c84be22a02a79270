"""A signature as a JSON Schema, and a model's arguments as a call."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union
from uuid import UUID

import jsonschema
import pytest
from pydantic import BaseModel, EmailStr, Field, SecretStr, field_validator
from typing_extensions import Doc, NotRequired, Required, TypedDict, Unpack

from SimpleLLMFunc.errors import SignatureError, ToolDefinitionError
from SimpleLLMFunc.tools import ArgumentsError, Tool, ToolContext
from SimpleLLMFunc.type import ImgPath


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    S = 1
    L = 2


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    number: int = 1


class Person(BaseModel):
    name: str = Field(min_length=1)
    address: Address
    friends: list[Person] = []


@dataclass
class Point:
    x: float
    y: float = 0.0


class Options(TypedDict):
    deep: bool
    limit: NotRequired[int]


class MoreOptions(Options, total=False):
    wide: Required[bool]


def schema(func: Callable[..., Any]) -> dict[str, Any]:
    found = Tool(func=func).parameters
    jsonschema.Draft202012Validator.check_schema(found)
    json.dumps(found)
    return found


def properties(func: Callable[..., Any]) -> dict[str, Any]:
    return schema(func)["properties"]


def call(func: Callable[..., Any], arguments: Any) -> Any:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    args, kwargs = Tool(func=func).bind(text)
    return func(*args, **kwargs)


def refused(func: Callable[..., Any], arguments: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(ArgumentsError) as caught:
        call(func, arguments)
    assert isinstance(caught.value, SignatureError)
    return caught.value.violations


# --- schemas -----------------------------------------------------------------------------------------------


def test_a_plain_signature():
    def search(query: str, limit: int = 5, exact: bool = False) -> list[str]:
        """Search the web.

        Args:
            query: What to look for.
            limit: At most so many.
        """

    limit = {"type": "integer", "default": 5, "description": "At most so many."}
    exact = {"type": "boolean", "default": False}
    properties = {"query": {"type": "string", "description": "What to look for."}, "limit": limit, "exact": exact}
    wanted = {"type": "object", "properties": properties, "required": ["query"], "additionalProperties": False}
    assert schema(search) == wanted


def test_no_parameters():
    def now() -> str: ...

    assert schema(now) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert Tool(func=now).bind("") == Tool(func=now).bind("null") == Tool(func=now).bind("{}") == ([], {})


def test_types_of_every_kind():
    def f(
        literal: Literal["a", 1],
        colour: Colour,
        maybe: Optional[int],
        union: int | str,
        old_union: Union[int, None],
        items: list[int],
        pair: tuple[int, str],
        table: dict[str, float],
        day: date,
        money: Decimal,
        anything: Any,
        point: Point,
        options: Options,
    ) -> None: ...

    found = properties(f)
    assert found["literal"] == {"enum": ["a", 1]}
    assert found["maybe"] == found["old_union"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert found["union"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert found["items"] == {"type": "array", "items": {"type": "integer"}}
    assert found["table"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert found["day"] == {"type": "string", "format": "date"}
    assert found["anything"] == {}
    references = [found[key]["$ref"] for key in ("colour", "point", "options")]
    assert references == ["#/$defs/Colour", "#/$defs/Point", "#/$defs/Options"]
    assert schema(f)["$defs"]["Options"]["required"] == ["deep"]


def test_descriptions_come_from_the_nearest_place():
    def f(
        a: Annotated[int, Field(description="from Field", ge=1)],
        b: Annotated[int, "from a string"],
        c: Annotated[int, Doc("from Doc")],
        d: int,
        e: int = Field(default=3, description="from the default"),
        g: Annotated[Optional[Address], Field(description="from Field")] = None,
    ) -> None:
        """F.

        Args:
            a: from the docstring
            d: from the docstring
        """

    found = properties(f)
    assert {key: part.get("description") for key, part in found.items()} == {
        "a": "from Field", "b": "from a string", "c": "from Doc", "d": "from the docstring", "e": "from the default",
        "g": "from Field",
    }  # fmt: skip
    assert found["a"]["minimum"] == 1
    assert found["e"]["default"] == 3
    assert schema(f)["required"] == ["a", "b", "c", "d"]


def test_defaults_are_shown_as_json():
    def f(
        colour: Colour = Colour.BLUE,
        size: Size = Size.L,
        point: Point = Point(1),  # noqa: B008 - the schema of it is what is tested
        day: date = date(2026, 1, 2),
        none: int = None,  # noqa: RUF013 - many people write it so
        many: tuple[int, ...] = (1, 2),
        path: Path = Path("a/b"),
        tags: frozenset[str] = frozenset("dcba"),
    ) -> None: ...

    found = properties(f)
    assert found["tags"]["default"] == ["a", "b", "c", "d"]
    assert found["colour"]["default"] == "blue"
    assert found["size"]["default"] == 2
    assert found["point"]["default"] == {"x": 1, "y": 0.0}
    assert found["day"]["default"] == "2026-01-02"
    assert found["none"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert found["many"]["default"] == [1, 2]
    assert found["path"]["default"] == "a/b"


def test_a_default_that_is_no_json_or_a_secret_is_not_shown_and_still_used():
    sentinel: Any = object()

    def f(a: int = sentinel) -> Any:
        return a

    assert properties(f) == {"a": {"type": "integer"}}
    assert call(f, {}) is sentinel

    def g(key: SecretStr = SecretStr("sk-CANARY-0123456789")) -> None: ...  # noqa: B008

    assert "CANARY" not in json.dumps(schema(g))

    def h(most: float = math.inf, steps: list[float] = Field([math.nan])) -> Any: ...  # noqa: B008 - it is read

    assert "default" not in json.dumps(schema(h))


AWKWARD = ["self", "cls", "tool_name", "name", "func", "model_config", "schema", "copy", "json", "dict", "_x", "__y",
           "class_", "model_fields", "arguments", "context", "args", "kwargs", "type", "Ünïcode", "p0"]  # fmt: skip


def test_any_name_will_do():
    namespace: dict[str, Any] = {}
    signature = ", ".join(f"{name}: int" for name in AWKWARD)
    exec(f"def f({signature}): return locals()", namespace)
    arguments = {name: number for number, name in enumerate(AWKWARD)}
    assert list(properties(namespace["f"])) == AWKWARD
    assert call(namespace["f"], arguments) == arguments


def test_an_alias_is_the_name_for_the_model_and_no_two_may_be_equal():
    def f(a: Annotated[int, Field(alias="number")], b: int = 0) -> tuple[int, int]:
        return a, b

    assert list(properties(f)) == ["number", "b"]
    assert call(f, {"number": 3, "b": 4}) == (3, 4)
    assert refused(f, {"a": 3})

    def swapped(a: Annotated[int, Field(alias="b")], b: Annotated[int, Field(alias="a")]) -> tuple[int, int]:
        return a, b

    assert call(swapped, {"a": 1, "b": 2}) == (2, 1)

    def same(a: Annotated[int, Field(alias="b")], b: int) -> None: ...

    with pytest.raises(ToolDefinitionError, match="two parameters have one name"):
        Tool(func=same)


def test_unannotated_parameters_are_refused_by_name():
    def f(a, b: int): ...

    def g(a: int, *rest): ...

    def h(**options): ...

    for func, name in ((f, "a"), (g, r"\*rest"), (h, r"\*\*options")):
        with pytest.raises(ToolDefinitionError, match=f"tool '{func.__name__}': parameter {name} has no type"):
            Tool(func=func)
    with pytest.raises(ToolDefinitionError, match=r"no signature to read|has no type"):
        Tool(func=max)


def test_a_type_that_needs_a_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr("pydantic.networks.email_validator", None)
    monkeypatch.setitem(sys.modules, "email_validator", None)

    def f(address: EmailStr) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"parameter address .*pip install .*pydantic\[email\]"):
        Tool(func=f)


def test_a_type_without_a_schema_is_refused_by_name():
    class Odd: ...

    def f(fine: int, odd: Odd) -> None: ...

    def g(callback: Callable[[int], str]) -> None: ...

    for func, name in ((f, "odd"), (g, "callback")):
        with pytest.raises(ToolDefinitionError, match=f"parameter {name} has a type no schema can be made of"):
            Tool(func=func)
    pattern = Annotated[str, Field(pattern="(?=x)")]
    for wrong, said in (((int, str), "odd is no type"), ({"a": int}, "odd has a type no"), (pattern, "look-around")):
        f.__annotations__["odd"] = wrong
        with pytest.raises(ToolDefinitionError, match=said):
            Tool(func=f)


def test_typing_s_typeddict_names_the_way_out():
    import typing

    if sys.version_info >= (3, 12):
        pytest.skip("it is fine there")
    wrong = typing.TypedDict("wrong", {"a": int})

    def f(a: wrong) -> None: ...

    f.__annotations__["a"] = wrong
    with pytest.raises(ToolDefinitionError, match=r"parameter a .*typing_extensions"):
        Tool(func=f)


def test_an_annotation_that_leads_nowhere_is_refused():
    def f(a: Missing) -> None: ...  # noqa: F821 - on purpose

    def g(a: int) -> None: ...

    g.__annotations__["a"] = "int |"
    for func in (f, g):
        with pytest.raises(ToolDefinitionError, match="an annotation cannot be read"):
            Tool(func=func)


def test_types_of_the_surrounding_function_are_found():
    class Local(BaseModel):
        a: int

    def make() -> Callable[..., Any]:
        class Inner(BaseModel):
            b: int

        def f(inner: Inner, local: list[Local]) -> Any:
            return inner.b + local[0].a

        assert Tool(func=f).parameters["required"] == ["inner", "local"]
        return f

    assert set(make().__annotations__) == {"inner", "local", "return"}

    def uses(local: Local) -> int:
        return local.a

    assert call(uses, {"local": {"a": 3}}) == 3


def test_a_name_that_the_closure_has_not_filled_yet_is_missing():
    def f(a: Later) -> None:  # noqa: F821 - on purpose
        late()

    with pytest.raises(ToolDefinitionError, match="'Later' is not defined"):
        Tool(func=f)

    def late() -> None: ...


# --- calls -------------------------------------------------------------------------------------------------


def test_arguments_arrive_with_their_types():
    def f(
        person: Person, point: Point, colour: Colour, day: date, money: Decimal, key: UUID, pair: tuple[int, str],
        tags: set[str], options: Options,
    ) -> Any:  # fmt: skip
        return person, point, colour, day, money, key, pair, tags, options

    uuid = "12345678-1234-5678-1234-567812345678"
    found = call(
        f,
        {
            "person": {"name": "Ann", "address": {"street": "High St"}}, "point": {"x": 1}, "colour": "red",
            "day": "2026-01-02", "money": "0.10", "key": uuid, "pair": [1, "a"], "tags": ["x", "x"],
            "options": {"deep": True},
        },
    )  # fmt: skip
    assert found == (
        Person(name="Ann", address=Address(street="High St")), Point(1), Colour.RED, date(2026, 1, 2), Decimal("0.10"),
        UUID(uuid), (1, "a"), {"x"}, {"deep": True},
    )  # fmt: skip
    assert type(found[0]) is Person


def test_text_that_holds_a_number_is_converted_but_in_a_union():
    def f(n: int, x: float = 0.0, yes: bool = False) -> Any:
        return n, x, yes

    assert call(f, {"n": "3", "x": "1.5", "yes": "true"}) == (3, 1.5, True)
    assert call(f, {"n": 3.0, "x": 2}) == (3, 2.0, False)

    def union(v: int | str | None) -> Any:
        return v

    for value in (3, "3", None, "x"):
        assert call(union, {"v": value}) == value


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(int, True), (float, False), (int | None, True), (list[int], [1, True]), (Decimal, True), (int, "x"), (int, 1.5),
     (str, 3), (str, None), (list[int], 3), (dict[str, int], []), (bool, "maybe"), (Literal["a"], "b"), (float, "nan")],
)  # fmt: skip
def test_what_does_not_fit_is_refused(annotation, value):
    def f(v) -> Any: ...

    f.__annotations__["v"] = annotation
    (violation, *_) = refused(f, {"v": value})
    assert violation[0].startswith("v")


def test_violations_name_the_place_what_was_wanted_and_what_came():
    def f(person: Person, n: int) -> None: ...

    assert refused(f, {"person": {"name": "", "address": {"street": "s", "number": "x"}}, "extra": 1}) == [
        ("person.name", "String should have at least 1 character", "''"),
        ("person.address.number", "a valid integer, unable to parse string as an integer", "'x'"),
        ("n", "a value", "nothing"),
        ("extra", "one of the parameters person, n", "another"),
    ]


def test_deep_arguments_are_refused():
    def f(v: Any) -> None: ...

    assert refused(f, '{"v":' + "[" * 500 + "]" * 500 + "}")
    assert refused(f, '{"v":' + "[" * 100_000 + "]" * 100_000 + "}")


def test_what_the_model_leaves_out_keeps_the_default_object():
    default: list[int] = []

    def f(a: int, items: list[int] = default) -> Any:
        return items

    assert call(f, {"a": 1}) is default

    # In the strict form every key is required, and null is how a model leaves one out.
    def g(n: int = 3, s: Optional[str] = "x", o: int = None) -> Any:  # noqa: RUF013
        return n, s, o

    assert call(g, {"n": None, "s": None, "o": None}) == (3, None, None)


def test_field_defaults():
    def f(
        a: int = Field(default=3, ge=1),
        b: list[int] = Field(default_factory=list),  # noqa: B008 - it is not called, it is read
        c: int = Field(ge=1),
    ) -> Any:
        return a, b, c

    assert schema(f)["required"] == ["c"]
    assert call(f, {"c": 1}) == (3, [], 1)
    assert refused(f, {"c": 0})[0][0] == "c"


def test_positional_only_and_keyword_only():
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int = 4) -> Any:
        return a, b, c, d

    assert call(f, {"a": 1}) == (1, 2, 3, 4)
    assert call(f, {"a": 1, "c": 9, "d": 8}) == (1, 2, 9, 8)

    def g(a: int = 1, b: int = 2, /) -> Any:
        return a, b

    assert call(g, {"b": 5}) == (1, 5)


def test_annotated_stars():
    def f(a: int, b: int = 2, *rest: int, c: int = 3, **more: float) -> Any:
        """F.

        Args:
            *rest: Numbers.
        """
        return a, b, rest, c, more

    found = schema(f)
    assert found["properties"]["rest"] == {"type": "array", "items": {"type": "integer"}, "description": "Numbers."}
    assert found["additionalProperties"] == {"type": "number"}
    assert call(f, {"a": 1}) == (1, 2, (), 3, {})
    assert call(f, {"a": 1, "rest": [7, 8]}) == (1, 2, (7, 8), 3, {})
    assert call(f, {"a": 1, "rest": ["7"], "c": 4, "z": 1}) == (1, 2, (7,), 4, {"z": 1.0})
    assert refused(f, {"a": 1, "z": "far"})[0][0] == "z"
    assert call(f, {"a": 1, "**": 5}) == (1, 2, (), 3, {"**": 5.0})


def test_unpacked_options():
    def f(a: int, **options: Unpack[MoreOptions]) -> Any:
        return a, options

    assert schema(f)["required"] == ["a", "deep", "wide"]
    assert schema(f)["additionalProperties"] is False
    assert call(f, {"a": 1, "deep": True, "wide": True}) == (1, {"deep": True, "wide": True})
    assert refused(f, {"a": 1, "deep": True, "wide": True, "other": 1})


def test_a_partial_hides_what_it_presets():
    def fetch(url: str, key: str, *, depth: int = 1) -> Any:
        """Fetch a page."""
        return url, key, depth

    func = functools.partial(functools.partial(fetch, key="sk-CANARY"), depth=2)
    found = Tool(func=func)
    assert "CANARY" not in json.dumps(found.to_openai_tool())
    assert (found.name, found.description, list(found.parameters["properties"])) == ("fetch", "Fetch a page.", ["url"])
    assert call(func, {"url": "u"}) == ("u", "sk-CANARY", 2)
    assert refused(func, {"url": "u", "key": "mine"})
    assert call(functools.partial(fetch, "u"), {"key": "k"}) == ("u", "k", 1)


def test_a_context_is_filled_and_hidden():
    @dataclass
    class State:
        user: str

    def f(a: int, ctx: ToolContext[State], other: ToolContext | None = None) -> Any:
        return a, ctx.context.user, other

    made = Tool(func=f)
    assert list(made.parameters["properties"]) == ["a"]
    context = ToolContext(trace_id="t", context=State("ann"))
    args, kwargs = made.bind({"a": 1}, context)
    assert f(*args, **kwargs) == (1, "ann", context)
    assert refused(f, {"a": 1, "ctx": {}})[0][0] == "ctx"


def test_a_validator_that_raises_anything_is_answered():
    class Strange(BaseModel):
        v: int

        @field_validator("v")
        @classmethod
        def check(cls, v: int) -> int:
            raise LookupError("not in the table")

    def f(s: Strange) -> None: ...

    def look(image: ImgPath) -> None: ...

    assert refused(f, {"s": {"v": 1}})[0][2] == "LookupError: not in the table"
    assert "FileNotFoundError" in refused(look, {"image": {"path": "/no/such.png"}})[0][2]


def test_a_surrogate_half_does_not_break_validation():
    def f(s: str) -> str:
        return s

    assert call(f, '{"s": "a\\ud800b"}') == "a�b"


def test_of_many_violations_the_first_are_told():
    def f(numbers: list[int], text: str) -> None:
        """Take numbers."""

    violations = refused(f, {"numbers": [None] * 1000, "text": ["x" * 1000] * 1000})
    assert [path for path, _, _ in violations] == [f"numbers[{number}]" for number in range(20)]
    (violation,) = refused(f, {"numbers": [], "text": ["x" * 1000] * 1000})
    assert len(violation[2]) <= 80
