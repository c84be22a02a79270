"""A JSON value → a value of the type: what is mended, what is refused, and the receipt."""

from __future__ import annotations

import datetime
import enum
import json
import math
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    RootModel,
    SecretStr,
    Tag,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import core_schema
from typing_extensions import TypeAliasType, TypedDict

from SimpleLLMFunc.base.post_process import parse_text
from SimpleLLMFunc.errors import ResponseParseError, UsageError, Violation
from tests.support.answer_types import Box, Color, Data, Pair, Shape, Square, Total, Tree


class Item(BaseModel):
    name: str
    price: float = Field(ge=0)
    color: Color = Color.RED


class Order(BaseModel):
    items: list[Item]
    paid: bool
    note: str | None = None


class Mirrored(enum.Enum):
    RED = "red"

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        return cls.__members__.get(value[::-1])


class Rights(enum.Flag):
    READ, WRITE = 1, 2


def value(text: str, wanted: Any, **options: Any) -> Any:
    return parse_text(text, wanted, **options).value


def violations(text: str, wanted: Any, **options: Any) -> list[Violation]:
    with pytest.raises(ResponseParseError) as caught:
        parse_text(text, wanted, **options)
    return caught.value.violations


# --- the receipt -----------------------------------------------------------------------------------------


def test_strict_json_needs_no_repairs() -> None:
    parsed = parse_text('{"items": [{"name": "x", "price": 1.5}], "paid": true}', Order)
    assert parsed.value == Order(items=[Item(name="x", price=1.5)], paid=True)
    assert parsed.repairs == []
    assert value('{"1e+16": 1}', dict[float, int], repair="off") == {1e16: 1}
    assert value('{"true": 1, "false": 0}', dict[bool, int], repair="off") == {True: 1, False: 0}
    assert value('{"1": 2}', dict[Literal[1], int], repair="off") == {1: 2}


def test_every_step_has_a_line_with_its_path() -> None:
    text = '{"Items": [{"name": 7, "price": "3 EUR", "color": "Blue"}], "paid": "yes"}'
    parsed = parse_text(text, Order)
    assert parsed.value == Order(items=[Item(name="7", price=3, color=Color.BLUE)], paid=True)
    assert parsed.repairs == [
        ("items", "key 'Items' read as 'items'"), ("items[0].name", "the number 7 kept as its digits"),
        ("items[0].price", "number taken from '3 EUR'"), ("items[0].color", "'blue' taken from 'Blue'"),
        ("paid", "true taken from 'yes'"),
    ]  # fmt: skip


def test_violations_name_path_expected_and_got() -> None:
    text = '{"items": [{"name": null, "price": "cheap"}, 5.50], "paid": 1}'
    assert violations(text, Order) == [
        ("items[0].name", "str", "null"), ("items[0].price", "float, at least 0", "'cheap'"),
        ("items[1]", "Item object", "5.50"), ("paid", "bool", "1"),
    ]  # fmt: skip
    assert violations(json.dumps(["x" * 1000]), list[int]) == [("[0]", "int", repr("x" * 60 + "…"))]


def test_constraints_hold() -> None:
    for wanted in (int, Decimal, Any):
        assert value("9" * 4300, wanted) > 10**4299
        assert violations("9" * 4301, wanted)
    assert violations('{"X": 1}', NamedTuple("Two", [("x", int), ("y", int)])) == [("y", "int", "nothing")]
    assert violations("[1]", Total) == [("", "Total object", "a list of 1")]
    assert "none of which is a field" in violations('{"error": 1}', Aliased)[-1][2]
    assert violations('{"items": [5]}', Order) == [("items[0]", "Item object", "5"), ("paid", "bool", "nothing")]
    assert "nested too deep" in violations("[" * 5000, list[int])[0][2]
    assert violations("[1e999]", list[Annotated[float, Field(allow_inf_nan=True)]])
    assert violations('{"name": "x"}', list[Item]) == [("[0].price", "float, at least 0", "nothing")]
    assert violations('{"items": [{"name": "x", "price": -1}], "paid": true}', Order) == [
        ("items[0].price", "greater than or equal to 0", "-1.0")
    ]
    assert violations('{"items": [{"name": "x", "price": "-1 EUR"}], "paid": true}', Order)[0][0] == "items[0].price"


# --- how far ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "off", "syntax", "coerce"),
    [
        ('{"name": "x", "price": 1}', True, True, True), ('{"name": "x", "price": 1,}', False, True, True),
        ('```json\n{"name": "x", "price": 1}\n```', False, True, True),
        ('{"name": "x", "price": "1"}', False, False, True), ('{"Name": "x", "price": 1}', False, False, True),
        ('{"result": {"name": "x", "price": 1}}', False, False, True),
        ('{"name": 5, "price": 1}', False, False, True),
    ],
)  # fmt: skip
def test_levels_of_repair(text: str, off: bool, syntax: bool, coerce: bool) -> None:
    for level, works in (("off", off), ("syntax", syntax), ("coerce", coerce)):
        if works:
            assert isinstance(value(text, Item, repair=level), Item)
        else:
            violations(text, Item, repair=level)


def test_the_wrapper_of_a_plain_value_is_no_repair() -> None:
    for level in ("off", "syntax", "coerce"):
        for text in ('{"value": 3}', "3"):
            parsed = parse_text(text, int, repair=level)
            assert (parsed.value, parsed.repairs) == (3, [])


# --- never another shape ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[{"name": "x", "price": 1}]', Item), ('["x", 1]', Item), ('"x"', Item), ("[1, 2]", list[list[int]]),
        ('{"a": {"b": {"name": "x", "price": 1}}}', Item), ('{"price": 1}', Item), ('{"paid": true}', Order),
        ("9" * 5000, int), ("9" * 5000, float), ("true", Literal[1]), ("1", Literal[True]), ("3", Literal[1, 2]),
        # not a part of a longer number
        *((text, Literal["1", "3", "100"]) for text in ("$3.50", "1,000", "100,000", "1:30", "It costs 100.50", "2.1")),
        ("[1, 2, 3]", tuple[int, int]), ('["a\ud800b"', list[str]), ('["{\\"a\\": {\\"v\\": 1}}"]', list[Total]),
        # negation, counting and two candidates never decide
        *((text, Color) for text in
          ("red or blue", "not red", "red, red, blue", "infrared", "infra-red", "It is red-b.", "never red", "red?",
           "re", "neither", "so " * 300 + "\nAnswer: red")), ("It is true", enum.Enum("Switch", {"ON": True}) | bool),
        ("us", Literal["US", "Us"]), ("DER", Mirrored), ('"green"', Mirrored), ("5", Mirrored), ("true", Rights),
        ("The answer is 2", Rights | int), ("It is 5 stars", Literal["5 stars"] | int), ("昨天我们去玩了3次", int),
        ("red hot and cold", Literal["red hot", "hot and cold"]), (f"Ab: {'so ' * 12}c", Literal["a b", "a.b", "c"]),
    ],
)  # fmt: skip
def test_never_changes_the_shape_or_makes_up_a_value(text: str, wanted: Any) -> None:
    assert violations(text, wanted)


def test_the_two_wrappings() -> None:
    assert value('{"tags": "x"}', TypedDict("Tagged", {"tags": list[str]})) == {"tags": ["x"]}
    assert value('{"anything": {"name": "x", "price": 1}}', Item) == Item(name="x", price=1)
    assert value('{"items": [1, 2]}', list[int]) == [1, 2]
    assert violations('{"tags": "x, y"}', TypedDict("Tagged", {"tags": list[str]}))


# --- strings ---------------------------------------------------------------------------------------------


def test_strings_keep_the_characters_and_numbers_for_text_their_digits() -> None:
    texts = ["007", " a ", "1.0", "yes", "null"]
    assert value(json.dumps(texts), list[str]) == texts
    digits = ["7", "1.50", "-0.0", "1e5", "12345678901234567890123", "0.10"]
    assert value(f"[{', '.join(digits)}]", list[str]) == digits


def test_lone_surrogates_are_replaced_with_a_receipt() -> None:
    for text in ('["a\\ud800b"]', '["a\ud800b"]'):
        parsed = parse_text(text, list[str])
        assert parsed.value == ["a\ufffdb"]
        assert parsed.repairs
        json.dumps(parsed.value).encode()


# --- keys ------------------------------------------------------------------------------------------------


class Aliased(BaseModel):
    unit_price: float = Field(alias="unitPrice")
    amount: int = Field(1, validation_alias=AliasChoices("count", "qty"))


@pytest.mark.parametrize("key", ["unitPrice", "unit_price", "UnitPrice", "unit price", "UNIT-PRICE"])
def test_an_alias_and_its_own_name_and_case(key: str) -> None:
    assert value(f'{{"{key}": 2, "qty": 3}}', Aliased).unit_price == 2


def test_two_values_for_one_field() -> None:
    assert violations('{"unitPrice": 1, "unit_price": 2}', Aliased)
    assert violations('{"unitPrice": 1, "UnitPrice": 2}', Aliased)
    assert violations('{"unitPrice": 1, "unitPrice": 2}', Aliased)[0][2].endswith(" different values at character 0")
    assert violations('{"unitPrice": 1, "unitPrice": 1.0}', Aliased), "one number, but written in two ways"
    assert violations('{"unitPrice": [true], "unit_price": [1]}', Aliased)
    assert value('{"unitPrice": 1, "unitPrice": 1}', Aliased).unit_price == 1
    assert value('{"unitPrice": 1, "UnitPrice": 1}', Aliased).unit_price == 1


def test_an_object_of_unknown_keys_is_no_object_of_defaults() -> None:
    class Defaults(BaseModel):
        a: int = 1
        b: str | None = None

    assert value("{}", Defaults) == Defaults()
    assert value('{"result": {"a": 2}}', Defaults) == Defaults(a=2)
    assert violations('{"error": "not found"}', Defaults)
    assert value('{"a": 1, "B": "x"}', Defaults).b == "x", "a key in another case is not dropped for a default"


def test_extra_keys() -> None:
    forbids = create_model("Forbids", __config__=ConfigDict(extra="forbid"), a=(int, ...))
    allows = create_model("Allows", __config__=ConfigDict(extra="allow"), a=(int, ...))
    assert violations('{"A": 1, "b": 2}', forbids) == [("b", "no such key", "2")]
    assert value('{"A": 1, "b": [2]}', allows).model_extra == {"b": [2]}
    assert value('{"a": 1}', Total | forbids) == forbids(a=1), "the one that has no other field fits better"
    wide: Any = create_model("Wide", a=(int, ...), more=(int, 0), **dict.fromkeys("bcde", (int, 0)))
    assert value('{"a": 1, "more": 2}', Total | wide) == wide(a=1, more=2), (
        "what is left out matters less than what is lost"
    )
    assert value('{"name": "x", "price": 1, "more": 2}', Item) == Item(name="x", price=1)


def test_alias_paths_are_left_to_pydantic() -> None:
    class Deep(BaseModel):
        a: int = Field(validation_alias=AliasChoices("a"))
        first: str = Field(validation_alias=AliasPath("names", 0))

    assert value('{"a": "3 kg", "names": ["x", "y"]}', Deep).first == "x"


# --- open objects ----------------------------------------------------------------------------------------


def test_an_object_is_complete_with_every_field_and_its_last_value_closed() -> None:
    assert value('{"name": "x", "price": 1, "color": "red"', Item) == Item(name="x", price=1)
    assert violations('{"name": "x", "price": 1.5\n', Item)  # `color` may be missing or cut
    assert violations('{"name": "x", "color": "red", "price": 1', Item)  # 1 may be 15
    assert violations('{"a": 1, "b": 2\n', dict[str, int])
    assert violations('[{"name": "x", "price": 1, "color": "red"}', list[Item])


# --- kinds of types --------------------------------------------------------------------------------------


class Numbers(RootModel[list[int]]):
    pass


class Cat(BaseModel):
    name: str
    lives: int = 9


class Dog(BaseModel):
    name: str
    breed: str


class Named(BaseModel):
    name: str


class Sized(Named):
    sizes: list[int]


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        ('{"a": "1 kg", "B": "x"}', Total, {"a": 1, "b": "x"}), ('["1", "x"]', Pair, Pair(1, "x")), ("-US$5", int, -5),
        ("[1]", Pair, Pair(1)), ('{"x": 1}', Pair, Pair(1)), ('{"X": 1, "y": 2}', Pair, Pair(1, "2")),
        ('{"N": "1", "tags": "x"}', Data, Data(1, ["x"])), ('{"content": "3"}', Box[int], Box[int](content=3)),
        ('["1", 2]', Numbers, Numbers([1, 2])), ("0.1234567890123456789", Decimal, Decimal("0.1234567890123456789")),
        ('{"label": 1, "kids": [{"Label": "x"}]}', Tree, Tree(label="1", kids=[Tree(label="x")])),
        ('["1", "1"]', set[int], {1}), ("{1, 2}", frozenset[int], frozenset({1, 2})), ("null", type(None), None),
        ('["a", "1"]', tuple[str, int], ("a", 1)), ('["1 kg", 2]', tuple[int, ...], (1, 2)),
        ('{"1": "a", "2": 3}', dict[int, str], {1: "a", 2: "3"}), ('{"red": "1"}', dict[Color, int], {Color.RED: 1}),
        ('{"RED": 1}', dict[Color, int], {Color.RED: 1}), ('{"value": [1, null, "x"]}', Any, {"value": [1, None, "x"]}),
        ('{"2024-01-02": 1}', dict[datetime.date, int], {datetime.date(2024, 1, 2): 1}),
        ('"1.50"', Decimal, Decimal("1.50")), ("1.50", Decimal, Decimal("1.50")),
        ('"2024-01-02"', datetime.date, datetime.date(2024, 1, 2)), ('"10:30"', datetime.time, datetime.time(10, 30)),
        ('"PT1H"', datetime.timedelta, datetime.timedelta(hours=1)), ('"secret"', SecretStr, SecretStr("secret")),
        ('"123e4567-e89b-12d3-a456-426614174000"', uuid.UUID, uuid.UUID("123e4567-e89b-12d3-a456-426614174000")),
        ("[1] as in [`x`", list[int], [1]), ('1 {"value": false}', bool, False), ('[1] ["x"] [1]', list[int], [1]),
        # unions take the best fit
        ("3", int | str, 3), ('"3"', int | str, "3"), ("3", int | float, 3), ("3.0", int | float, 3.0),
        ("true", bool | int, True), ("1", bool | int, 1), ("1", bool | str, "1"), ('"2"', int | Rights, 2),
        ("5", Annotated[str, BeforeValidator(repr)], "5"), ("3.0", int | str, 3), ("None", str | None, None),
        ("2024-01-02", datetime.date | str, datetime.date(2024, 1, 2)), ("3.5", Decimal | float, 3.5),
        ("3", Annotated[int, Tag("i")] | Annotated[str, Tag("s")], 3), ('{\\"a\\": 1}', str | dict[str, int], {"a": 1}),
        ("[-Infinity]", list[Annotated[float, Field(allow_inf_nan=True)]], [-math.inf]), ('"null"', str | None, "null"),
        ('{"name": "Rex", "breed": "pug"}', Cat | Dog, Dog(name="Rex", breed="pug")), ("[]", list[int] | list[str], []),
        ('{"name": "Tom", "lives": 7}', Cat | Dog, Cat(name="Tom", lives=7)), ('"red"', Color | Literal["red"], "red"),
        ('{"name": "Tom"}', Cat | Dog, Cat(name="Tom")), ('{"content": 3}', Box[int] | Box[str], Box[int](content=3)),
        ('{"Name": "Rex", "Breed": "pug"}', Cat | Dog, Dog(name="Rex", breed="pug")), ("red", Color | str, Color.RED),
        ('{"name": "Rex", "sizes": [1, 2, 3, 4, 5]}', Named | Sized, Sized(name="Rex", sizes=[1, 2, 3, 4, 5])),
        ('{"kind": "SQUARE", "side": "2 m"}', Shape, Square(kind="square", side=2)), ("null", int | None, None),
        ('{"kind": "square", "side": 2, "inside": [{"Kind": "square", "side": 1}]}', Shape,
         Square(kind="square", side=2, inside=[Square(kind="square", side=1)])),
        ('"null"', int | None, None), ('["1"]', list[int] | list[str], ["1"]), ('"red"', Color | Mirrored, Color.RED),
        ('{"a": 1}', dict[str, int] | list[int], {"a": 1}), ('["{\\"a\\": 1}"]', list[str | Total], ['{"a": 1}']),
        ('"2024-01-02"', datetime.date | str, datetime.date(2024, 1, 2)), ("3.5", Decimal | Any, Decimal("3.5")),
        ('"2024-01-02"', str | datetime.date, "2024-01-02"), ('{"A": 1}', Total | Any, {"A": 1}),
        ('["red"]', Annotated[list[str], BeforeValidator(list)] | list[Color], ["red"]), ("It is 3", int | float, 3),
        ('{"content": {"name": "x", "breed": "y"}}', Box[Cat] | Box[Dog], Box[Dog](content=Dog(name="x", breed="y"))),
        ("RED", Color | str, Color.RED), ("yes", bool | str, "yes"), ("3", Decimal | float, 3.0),
        ('{"value": 5}', int | dict[str, Any], 5),
        # enums and literals
        ("us", Literal["US", "EU"], "US"), ("US", Literal["US", "us"], "US"), ('"2"', Literal[1, 2], 2),
        ("The answer is 2", Literal[1, 2], 2), ("yes", Literal[True], True), ("no", Literal[True, False], False),
        ("At 3:30 I looked; the rating is 3", Literal["1", "3"], "3"), ("3.5 it is", Literal["3", "3.5"], "3.5"),
        ("It is light blue", Literal["light", "light blue"], "light blue"), ("The red one", Color, Color.RED),
        ("Ab: to judge by each of the pages that we have read so far.\nAnswer: c", Literal["a b", "a.b", "c"], "c"),
        ('" > "', Literal["<", ">"], ">"), ("换LED灯OK了", Literal["LED灯", "蜡烛"], "LED灯"), ("2", Literal["1", "2"], "2"),
        ('{"value": true}', Literal["true", "false"], "true"), ("C – like", Literal["C-like", "C++-like"], "C-like"),
        *((text, Color, Color.RED) for text in
          ("red", '"red"', "RED", "Red.", "Color.RED", "It is red.", "**red**", "re\u0301d")),
        ('"DER"', Mirrored, Mirrored.RED), ('"Red"', Mirrored, Mirrored.RED), ("3", Rights, Rights.READ | Rights.WRITE),
        ("Answer: 2", Literal[Rights.WRITE], Rights.WRITE), ("Answer: eu", Literal["US", "EU"], "EU"),
    ],
)  # fmt: skip
def test_every_kind_of_type(text: str, wanted: Any, expected: Any) -> None:
    found = value(text, wanted)
    assert found == expected
    assert type(found) is type(expected)


def test_decimals_are_never_read_through_a_float() -> None:
    price = create_model("Price", amount=(Decimal, ...), name=(str, ...))
    for text in ('{"amount": 1.10, "name": "x"}', '{"amount": 1.10, "name": 5}'):
        assert str(value(text, price).amount) == "1.10"


def test_strict_models_and_dataclasses_inside_them() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        data: Data
        day: datetime.date

    found = value('```\n{"data": {"n": 1, "tags": []}, "day": "2024-01-02"}\n```', Strict)
    assert found == Strict(data=Data(1, []), day=datetime.date(2024, 1, 2))
    assert violations('"5"', Annotated[int, Field(strict=True), BeforeValidator(lambda raw: raw)], repair="syntax")


# --- a user's own validators -----------------------------------------------------------------------------


def test_validators_read_what_was_written() -> None:
    def dollars(raw: Any) -> Any:
        return 5_000_000 if raw == "$5 million" else raw

    class Money(BaseModel):
        amount: Annotated[int, BeforeValidator(dollars)]
        name: str

        @field_validator("name")
        @classmethod
        def shout(cls, name: str) -> str:
            return name.upper()

    assert value('{"amount": "$5 million", "Name": "x"}', Money) == Money(amount=5_000_000, name="x")
    assert value('{"amount": "7 USD", "name": "x"}', Money).amount == 7


def test_a_schema_of_a_users_own_around_the_arguments_of_a_call() -> None:
    arguments = core_schema.arguments_schema([core_schema.arguments_parameter("n", core_schema.int_schema())])
    checked = core_schema.no_info_after_validator_function(lambda given: given, arguments)
    assert value("[-1]", Annotated[int, GetPydanticSchema(lambda *_: core_schema.call_schema(checked, abs))]) == 1


def test_a_number_read_by_a_validator_fits_as_well_as_one_that_is_not() -> None:
    seen = Annotated[int, BeforeValidator(lambda raw: raw)]
    assert [type(each) for each in value("[3, 3.5]", list[seen | float])] == [int, float]


def test_a_validator_that_refuses_is_a_violation() -> None:
    seen = []

    def even(number: int) -> int:
        seen.append(number)
        if number % 2:
            raise ValueError("an even number, please")
        return number

    wanted = "a value that passes the type's own check"
    assert violations("[1]", list[Annotated[int, AfterValidator(even)]]) == [
        ("[0]", wanted, "1: an even number, please")
    ]
    assert seen == [1]
    in_python = core_schema.no_info_plain_validator_function(even)  # it is another one that reads JSON
    shape = core_schema.json_or_python_schema(core_schema.int_schema(), in_python)
    assert value("1", Annotated[int, GetPydanticSchema(lambda *_: shape)]) == 1


def test_a_validator_that_breaks_is_a_violation_and_one_that_asked_a_model_passes_on_why() -> None:
    class Tags(BaseModel):
        tags: Annotated[list[str], BeforeValidator(lambda raw: raw.split(","))]

    for wanted in (Tags, Tags | list[int]):
        assert "AttributeError" in violations('{"tags": null}', wanted)[0][2]
    assert value('{"tags": 5} {"tags": "a,b"}', Tags).tags == ["a", "b"]

    def spend(number: int) -> int:
        raise UsageError(f"nothing may be asked, not even {number}")

    with pytest.raises(UsageError, match="not even 1"):
        value("1", Annotated[int, AfterValidator(spend)])


class Odd(enum.Enum):
    DAY = datetime.date(2024, 1, 2)
    PAIR = (1, 2)
    LOW = ONE = 1
    HIGH = 2

    @classmethod
    def _missing_(cls, raw: object) -> Odd | None:
        return cls.HIGH if raw in {"top", 9} else None


def test_an_enum_is_read_as_its_values_stand_on_the_wire_by_each_name_and_by_its_own_rule() -> None:
    texts = {
        **dict.fromkeys(('"2024-01-02"', '"2024-01-02."'), Odd.DAY), "[1, 2]": Odd.PAIR, "one": Odd.LOW,
        **dict.fromkeys(("2 (high)", '"top"', "9"), Odd.HIGH),
    }  # fmt: skip
    assert {text: value(text, Odd) for text in texts} == texts
    assert violations("1 (high)", Odd) == [("", violations("x", Odd)[0][1], "'1 (high)', which names 1 and 2")]
    assert violations("1e999", Odd)
    assert parse_text("PAIR", Odd).repairs == [("", "[1, 2] taken by its name 'PAIR'")]
    assert parse_text("blu", Literal[Color.BLUE]).repairs == [("", "'blue' taken from its beginning 'blu'")]
    assert violations("red and blue", Color)[0][2] == "'red and blue', which names 'red' and 'blue'"
    assert violations("1.", Literal[True, False]), "1 is not True"
    assert violations("He told us so", Literal["US", "EU"]), "a word that any sentence has"


def test_a_model_that_reads_other_shapes_itself() -> None:
    class Range(BaseModel):
        low: int
        high: int

        @model_validator(mode="before")
        @classmethod
        def split(cls, raw: Any) -> Any:
            return dict(zip(("low", "high"), raw, strict=True)) if isinstance(raw, list) else raw

    for text, wanted in (("[1, 2]", Range), ('{"Low": "1", "high": 2}', Range), ("[1, 2.0]", Range | list[int])):
        assert value(text, wanted) == Range(low=1, high=2)
    assert value("[1]", Annotated[Cat, BeforeValidator(lambda raw: {"name": str(raw)})]) == Cat(name="[1]")


# --- unions ----------------------------------------------------------------------------------------------


def test_two_branches_that_fit_equally_well_are_refused_and_a_tagged_union_needs_its_tag() -> None:
    left, right = (create_model(name, x=(Literal[1], ...), side=(Literal[name], name)) for name in ("Left", "Right"))
    assert "equally well" in violations('{"x": 1}', left | right)[0][2]
    assert "equally well" in violations("RED", Color | Mirrored)[0][2]
    for text, level in (('{"side": 2}', "coerce"), ('{"Kind": "square", "side": 2}', "syntax")):
        assert violations(text, Shape, repair=level) == [("kind", "one of 'circle', 'square'", "nothing")]
    assert violations('{"kind": "not a square", "side": 2}', Shape)[0][0] == "kind"
    sides: Any = Annotated[left | right, Field(discriminator="side")] | create_model("Other", x=(Literal[2], ...))
    assert value('{"x": 1, "side": "Right"}', Annotated[sides, Field(discriminator="x")]) == right(x=1)


# --- large numbers -----------------------------------------------------------------------------------------


class Account(enum.IntEnum):
    OURS = 9007199254740993
    THEIRS = 9007199254740992


@pytest.mark.parametrize("form", ["The account is\n```json\n{}\n```", "{} it is", "Account: {}"])
def test_a_number_beyond_what_a_float_holds_is_not_taken_for_its_neighbour(form: str) -> None:
    assert parse_text(form.format(9007199254740993), Account).value is Account.OURS
    assert parse_text(form.format(9007199254740992), Account).value is Account.THEIRS
    assert violations(form.format(9007199254740993), Literal[9007199254740992])
    assert parse_text('so: {"a": 9007199254740993}', dict[str, Account]).value == {"a": Account.OURS}
    assert parse_text('so: {"a": 1.0}', dict[str, Literal[1]]).value == {"a": 1}
    assert violations('so: {"a": 1e999}', dict[str, Literal[1]])


# --- a type inside itself ----------------------------------------------------------------------------------


Nested = TypeAliasType("Nested", "int | list[Nested] | dict[str, Nested]")


def test_one_value_is_no_list_where_the_items_may_be_lists_too() -> None:
    assert parse_text('so: {"a": [1, {"b": 2}]}', Nested).value == {"a": [1, {"b": 2}]}
    assert violations('{"a": "x"}', Nested) == [("a", "int or list of object or object", "'x'")]


def test_a_violation_says_what_is_wanted_and_what_is_wrong() -> None:
    class Bill(BaseModel):
        lines: list[int] = Field(min_length=1)
        total: int
        name: str = Field(default="abc", min_length=3, pattern="^a")

        @model_validator(mode="after")
        def adds_up(self) -> Bill:
            if self.total > 100:
                raise AssertionError("too much")
            if sum(self.lines) != self.total:
                raise ValueError(f"the lines add up to {sum(self.lines)}, not {self.total}")
            return self

    def found(**fields: Any) -> Violation:
        [violation] = violations(json.dumps({"lines": [1], "total": 1, **fields}), Bill)
        return violation

    own = "a value that passes the type's own check"
    assert found(total=3) == ("", own, "an object with lines, total: the lines add up to 1, not 3")
    assert found(total=300) == ("", own, "an object with lines, total: too much")
    assert found(name="a") == ("name", "at least 3 characters", "'a'")
    assert found(name="bcd") == ("name", "text of the pattern '^a'", "'bcd'")
    assert found(lines=[]) == ("lines", "at least 1 item after validation, not 0", "a list of 0")


# --- 1 and 0 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1", '"1"', " 1\n", '{"value": 1}', '{"value": "1"}', "**1**"])
@pytest.mark.parametrize("wanted", [bool, bool | None])
def test_one_and_zero_are_true_and_false_where_they_are_the_whole_answer(text: str, wanted: Any) -> None:
    parsed = parse_text(text, wanted)
    assert (parsed.value, parsed.repairs) == (True, [("", "true taken from 1")])
    parsed = parse_text(text.replace("1", "0"), wanted)
    assert (parsed.value, parsed.repairs) == (False, [("", "false taken from 0")])


def test_one_is_not_true_where_nothing_is_coerced() -> None:
    assert violations("1", bool, repair="off")
    for text, wanted in (("1", bool), ("abc", str | None), ('"RED"', Color)):
        assert violations(text, wanted, repair="syntax")


# --- what is told of the way to the JSON ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"value": 2}', []), ('  {"value": 2}\n', []),
        ('```json\n{"value": 2}\n```', ["JSON taken out of a fence or tag"]), ("{'value': 2}", ["single quotes"]),
        ('{\\"value\\": 2}', ["quotes were escaped"]), ('Sure:\n{"value": 2}', ["JSON found in the text"]),
        ('{"value": 2}\nThat is all.', ["JSON found in the text"]),
        ('Sure:\n```json\n{"value": 2}\n```\nDone.', ["JSON found in the text"]),
        ('It is {"value": 2}, I think.', ["JSON found in the text"]), ("\\boxed{2}", ["taken out of \\boxed{}"]),
        ("so \\boxed{2}.", ["taken out of \\boxed{}", "number taken from 'so 2.'"]),
    ],
)  # fmt: skip
def test_what_stood_around_the_json_is_told(text: str, told: list[str]) -> None:
    parsed = parse_text(text, int)
    assert parsed.value == 2
    assert [what for _, what in parsed.repairs] == told
