"""Growing values: what has arrived, and nothing else."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, ValidationInfo, field_validator
from typing_extensions import TypedDict

from SimpleLLMFunc.base.parsing.partial import ItemReader, PartialReader
from SimpleLLMFunc.base.schemas.output_mode import compile_output
from SimpleLLMFunc.errors import ResponseParseError


class Address(BaseModel):
    street: str
    number: int = 7


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)
    home: Address
    tags: list[str] = []
    note: str | None = None
    _seen: int = 0


@dataclasses.dataclass
class Data:
    x: int
    y: str = "default"
    z: list[int] = dataclasses.field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: int


TEXT = '{"name": "Bob \\u00e9\\ud83d\\ude00", "age": 42, "home": {"street": "Main", "number": 3}, "tags": ["a", "b"], "note": "hi"}'
BOB = Person(name="Bob é😀", age=42, home=Address(street="Main", number=3), tags=["a", "b"], note="hi")


def grown(reader: PartialReader | ItemReader, text: str, size: int) -> list[Any]:
    return [value for at in range(0, len(text), size) for value in reader.feed(text[at : at + size])]


@pytest.mark.parametrize("size", [1, 3, 7, 50, 1000])
def test_parts_grow_and_the_last_is_the_value(size: int) -> None:
    reader = PartialReader(compile_output(Person))
    parts = grown(reader, TEXT, size)
    assert reader.finish().value == BOB
    assert all(isinstance(part, Person) for part in parts)
    for earlier, later in zip(parts, parts[1:], strict=False):
        assert set(vars(earlier)) <= set(vars(later))
        assert later.name.startswith(earlier.name)
        assert later.tags[: len(earlier.tags)] == earlier.tags if "tags" in vars(earlier) else True
    for part in parts:
        assert BOB.name.startswith(part.name)
        assert vars(part).get("age", 42) == 42
    if size == 1:
        assert [part.name for part in parts[:4]] == ["B", "Bo", "Bob", "Bob "]


def test_a_field_that_has_not_arrived_is_absent_even_with_a_default() -> None:
    [part] = PartialReader(compile_output(Person)).feed('{"name": "Bob", "age": 4')
    assert part.name == "Bob"
    for name in ("age", "home", "tags", "note", "_seen"):
        with pytest.raises(AttributeError):
            getattr(part, name)
    assert (part.model_fields_set, part.model_extra) == ({"name"}, None)


def test_numbers_appear_when_they_are_complete_and_nested_objects_grow() -> None:
    reader = PartialReader(compile_output(Person))
    assert [part.name for part in grown(reader, '{"name": "Bob"', 11)] == ["B", "Bob"]
    assert reader.feed(', "age": 4') == []
    assert reader.feed("2") == []
    assert reader.feed(",") == [], "it may go on: 42,000"
    assert [part.age for part in reader.feed('"')] == [42]
    [part] = reader.feed('home": {"street": "Ma')
    assert part.home.street == "Ma"
    with pytest.raises(AttributeError):
        _ = part.home.number


def test_values_are_mended_in_parts_as_in_the_whole_and_what_does_not_fit_does_not_appear() -> None:
    [part] = PartialReader(compile_output(Person)).feed('{"age": "42 years", ')
    assert part.age == 42
    for text in ('{"age": "42 years", ', '{"name": "B\nob", '):
        assert PartialReader(compile_output(Person), repair="off").feed(text) == []
    [part] = PartialReader(compile_output(Person)).feed('{"age": -1, "name": "Bob", ')
    assert vars(part) == {"name": "Bob"}


def test_a_dataclass_and_a_typed_dict() -> None:
    parts = grown(PartialReader(compile_output(Data)), '{"x": 1, "y": "ab", "z": [1, 2]}', 1)
    assert [repr(part) for part in parts] == [
        "Data(x=1)", "Data(x=1, y='a')", "Data(x=1, y='ab')", "Data(x=1, y='ab', z=[1])", "Data(x=1, y='ab', z=[1, 2])"
    ]  # fmt: skip
    assert isinstance(parts[0], Data)
    with pytest.raises(AttributeError, match="not arrived"):
        _ = parts[0].y
    assert grown(PartialReader(compile_output(list[str])), '["ab", "cd"]', 1) == [["ab"], ["ab", "cd"]]
    parts = grown(PartialReader(compile_output(Movie)), '{"title": "Alien", "year": 1979}', 10)
    assert parts == [{"title": "Alien"}, {"title": "Alien", "year": 1979}]


def test_parts_are_never_changed_afterwards() -> None:
    reader = PartialReader(compile_output(Person))
    [first] = reader.feed('{"name": "Bob", "tags": ["a"')
    before = first.model_copy(deep=True)
    reader.feed(', "b"], "note": "x"')
    assert first == before


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("```json\n", "\n```"), ("Sure:\n```\n", "\n```\nBye"), ('<think>{"name": "X"}</think>\n', ""), ("Here: ", ""),
     ("\n\n", "\n"), ("<answer>", "</answer>")],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_in_fences_after_prose_and_after_reasoning(before: str, after: str, size: int) -> None:
    reader = PartialReader(compile_output(Person))
    parts = grown(reader, before + TEXT + after, size)
    assert reader.finish().value == BOB
    assert parts
    assert all(BOB.name.startswith(part.name) for part in parts)
    assert grown(ItemReader(compile_output(list[int])), f"{before}[1, 22, 333]{after}", size) == [1, 22, 333]


def test_wrapped_and_bare() -> None:
    assert grown(PartialReader(compile_output(list[int])), '{"value": [1, 2]}', 1) == [[1], [1, 2]]
    assert grown(PartialReader(compile_output(list[int])), "[1, 2]", 1) == [[1], [1, 2]]
    wrapped = PartialReader(compile_output(str), mode="native")
    assert grown(wrapped, '{"value": "abcd"}', 12) == ["a", "abcd"]
    assert wrapped.finish().value == "abcd"
    optional = grown(PartialReader(compile_output(Address | None)), '{"street": "ab"}', 1)
    assert [part.street for part in optional] == ["a", "ab"]
    assert PartialReader(compile_output(Early | None)).feed('{"value": {"n": " a b ')[0].name == "a b"


@pytest.mark.parametrize(
    ("text", "value"),
    [("{'street': 'x', 'number': 5}", Address(street="x", number=5)), ("abc", "abc"), ("1\n2", [1, 2]), ("so [1, 2]", [1, 2])],
)  # fmt: skip
def test_what_is_not_strict_json_and_a_text_come_at_the_end(text: str, value: Any) -> None:
    reader = PartialReader(compile_output(list[int] if isinstance(value, list) else type(value)))
    assert grown(reader, text, 3) == []
    assert reader.finish().value == value


class Early(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    name: str = Field(alias="n")
    root: RootModel[list[int]]
    loud: Annotated[str, AfterValidator(str.upper)]
    names: frozenset[str]
    late: int

    @field_validator("late")
    @classmethod
    def follows(cls, late: int, info: ValidationInfo) -> int:
        return late + len(info.data["name"])


@dataclasses.dataclass(slots=True)
class Seeded:
    seed: dataclasses.InitVar[int]
    name: str

    def __post_init__(self, seed: int) -> None:
        assert seed


@pytest.mark.parametrize(
    ("wanted", "text", "shown"),
    [
        (Early, '{"n": " a b", "root": [1], "loud": "x", "names": ["n"], "late": 1, ',
         {"name": "a b", "root": RootModel[list[int]]([1]), "loud": "X", "names": frozenset({"n"})}),
        (Early, '{"n": " a b ', {"name": "a b"}), (Early, '{"n": "a", "loud": "x', {"name": "a"}),
        (Early, '{"n": "a", "root": [1, ', {"name": "a"}), (Person, '{"name": "x", "age": 1,000', {"name": "x"}),
        (Person, '{"name": "x", "age": 1 000', {"name": "x"}), (Person, '{"name": "x", "age": 5 ', {"name": "x"}),
        (Seeded, '{"seed": 2, "name": "x', {"name": "x"}), (Person, '{"name": "x" "age": 5, "', {"name": "x"}),
        (Person, '{"name": "x", "age"; 5, "', {"name": "x"}), (Person, '{"name": "x"; "age": 5, "', {"name": "x"}),
        (Person, '{"name": "B\nob', {"name": "B\nob"}),
        (Person, '{"name": "x", "home": {"name": 1}, "age": 5, "', {"name": "x", "age": 5}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 1000])
def test_nothing_is_shown_that_the_whole_will_say_otherwise(wanted: Any, text: str, shown: Any, size: int) -> None:
    part = grown(PartialReader(compile_output(wanted)), text, size)[-1]
    assert {name: getattr(part, name) for name in get_type_hints(wanted) if hasattr(part, name)} == shown


def test_a_part_is_of_the_kind_of_the_whole_and_what_cannot_be_made_is_left_to_it() -> None:
    assert grown(PartialReader(compile_output(tuple[int, ...])), "[1, 2]", 1) == [(1,), (1, 2)]
    assert grown(PartialReader(compile_output(RootModel[list[int]])), "[1, 2]", 1) == []
    assert grown(PartialReader(compile_output(set[Address])), '[{"street": "x"}, 1]', 1) == [set()]
    homes = TypedDict("homes", {"all": set[Address], "name": str})
    assert grown(PartialReader(compile_output(homes)), '{"all": [{"street": "x"}], "name": "y"}', 1) == [{"all": set()}]
    assert grown(PartialReader(compile_output(Any), mode="prompt"), '{"value": 1}', 1) == []
    for text in ('[{"next": }, ', '[{"next": {},}, ', '[{"next": null], '):
        assert grown(ItemReader(compile_output(list[Link])), text, 1) == [], "only strict JSON grows"
    assert grown(ItemReader(compile_output(list[list[int]])), "[1, 2]", 1) == [], "one list, or two"


# --- items -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
@pytest.mark.parametrize(
    "form", ["[{}]", '{{"value": [{}]}}', "```json\n[{}]\n```", "Here you are:\n\n[{}]\n\nThat is all."]
)
def test_items_arrive_as_soon_as_they_are_complete(size: int, form: str) -> None:
    people = [{"name": f"n{number}", "age": number, "home": {"street": "s"}} for number in range(5)]
    text = form.format(", ".join(map(json.dumps, people)))
    reader = ItemReader(compile_output(list[Person]))
    seen = []
    for at in range(0, len(text), size):
        items = reader.feed(text[at : at + size])
        seen += items
        complete = text[: at + size].count('"s"}}')
        assert len(seen) == complete
    assert [item.name for item in seen] == ["n0", "n1", "n2", "n3", "n4"]
    assert reader.finish().value == seen


@pytest.mark.parametrize(
    ("text", "more", "told"),
    [
        ('[1, 2, "x", 4]', "", "'x'"),  # a bad item ends the flow, and is told at the end
        ("[1, 2]", "\nNo: [3]", "2 JSON values that all fit and differ"),  # it goes on as another list
        ("[1, 2, 3", "", "JSON that is cut off"), ("[1, 2, ?", "3, 4]", "'?3'"), ('["1", "2", ', "", "inside a list"),
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused_after_its_items(text: str, more: str, told: str) -> None:
    reader = ItemReader(compile_output(list[int]))
    assert (reader.feed(text), reader.feed(more)) == ([1, 2], [])
    with pytest.raises(ResponseParseError) as caught:
        reader.finish()
    assert told in caught.value.violations[0][2]


# --- work ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader_class", [PartialReader, ItemReader])
def test_a_long_answer_in_thousands_of_pieces_is_read_once(reader_class: type[PartialReader | ItemReader]) -> None:
    people = [{"name": f"name {number}", "age": number, "home": {"street": "s" * 40}} for number in range(1_500)]
    space_for_ever = " \n" * 5_000 + "[1, 2]"
    for text, size, wanted in ((json.dumps(people), 48, list[Person]), (space_for_ever, 2, list[int])):
        reader = reader_class(compile_output(wanted))
        assert grown(reader, text, size)
        assert len(text) <= reader.growth.characters_read <= 2 * len(text)


@pytest.mark.parametrize("size", [1, 3, 5, 7, 21])
def test_json_right_behind_reasoning_is_found_however_the_text_is_cut(size: int) -> None:
    for tag, items in (("think", [[1, 2], []]), ('Think n="1"', [])):  # of the second one the whole is read at the end
        reader = ItemReader(compile_output(list[list[int]]))
        assert grown(reader, f"<{tag}>hm\n[0]</think>[[1, 2], []]", size) == items


def test_a_long_string_is_read_once() -> None:
    text = json.dumps({"name": "ab\n" * 50_000, "age": 1, "home": {"street": "x"}})
    reader = PartialReader(compile_output(Person))
    parts = grown(reader, text, 50)
    assert reader.growth.characters_read <= 2 * len(text)
    assert sum(len(part.name) for part in parts) < 200 * len(text)
    assert len(parts) > 100
    assert [*map(len, map(PartialReader(compile_output(Person)).feed, ['{"name": "' + "a" * 5_000, "b"]))] == [1, 0]


def test_prose_and_reasoning_are_read_once() -> None:
    text = "<think>" + "hm </thin " * 4_000 + "</think>" + "so: `x` \n" * 4_000 + "[1]"
    reader = ItemReader(compile_output(list[int]))
    assert grown(reader, text, 5) == [1]
    assert reader.growth.characters_read <= 3 * len(text)


# --- any split gives the same ----------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.builds(dict, name=st.text(), age=st.integers(0), home=st.builds(dict, street=st.text())), max_size=4),
    st.lists(st.integers(1, 9), min_size=1, max_size=20),
    st.booleans(),
)
def test_any_split_gives_the_same_items(people: list[dict[str, Any]], sizes: list[int], escaped: bool) -> None:
    text = json.dumps(people, ensure_ascii=escaped)
    reader = ItemReader(compile_output(list[Person]))
    items, at = [], 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        items += reader.feed(text[at : at + size])
        at += size
    assert reader.finish().value == items
    assert [item.model_dump(include={"name", "age", "home"}) for item in items] == [
        {**person, "home": {**person["home"], "number": 7}} for person in people
    ]


@pytest.mark.parametrize("reader_class", [PartialReader, ItemReader])
def test_a_large_piece_is_left_to_the_reading_of_the_whole(reader_class: type[PartialReader | ItemReader]) -> None:
    people = [{"name": f"n{number}", "age": number, "home": {"street": "s"}} for number in range(1000)]
    text = json.dumps(people)
    reader = reader_class(compile_output(list[Person]))
    assert grown(reader, text[:200], 20)
    assert reader.feed(text[200:]) == []
    assert reader.growth.characters_read <= 200
    assert len(reader.finish().value) == 1000


class Link(BaseModel):
    next: Link | None = None


@pytest.mark.parametrize("levels", [100, 450, 990, 3000])
@pytest.mark.parametrize("reader_class", [PartialReader, ItemReader])
def test_an_answer_of_any_depth_grows_or_is_refused(
    reader_class: type[PartialReader | ItemReader], levels: int
) -> None:
    text = '{"next": ' * levels + "null" + "}" * levels
    is_list = reader_class is ItemReader
    reader = reader_class(compile_output(list[Link] if is_list else Link))
    try:
        for piece in (f"[{text}]" if is_list else text).split(" "):
            reader.feed(f"{piece} ")
        found = reader.finish().value
    except ResponseParseError:
        assert levels > 100
        return
    link = found[0] if is_list else found
    for _ in range(levels - 1):
        link = link.next
    assert link.next is None
