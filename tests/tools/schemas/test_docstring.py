"""What a docstring says about a tool and its parameters."""

import inspect

import pytest

from SimpleLLMFunc.tools.schemas.docstring import Documentation, read_docstring, taken_apart

GOOGLE = """Tell the weather.

Only for cities: villages are not known.

Args:
    city (str): Name of the city.
        In English.
    days: How many days. Defaults to 3.

Returns:
    str: The forecast.

Raises:
    KeyError: There is no such city.
"""
NUMPY = """
Tell the weather.

Only for cities: villages are not known.

Parameters
----------
city : str
    Name of the city.
    In English.
days : int, optional
    How many days. Defaults to 3.

Returns
-------
str
    The forecast.
"""
REST = """Tell the weather.

Only for cities: villages are not known.

:param city: Name of the city.
    In English.
:param int days: How many days. Defaults to 3.
:returns: The forecast.
:raises KeyError: There is no such city.
"""
EPYDOC = """Tell the weather.

Only for cities: villages are not known.

@param city: Name of the city.
    In English.
@type city: str
@param days: How many days. Defaults to 3.
@return: The forecast.
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST, EPYDOC], ids=["google", "numpy", "rest", "epydoc"])
def test_the_styles_say_the_same(text):
    assert read_docstring(text) == Documentation(
        "Tell the weather.\n\nOnly for cities: villages are not known.",
        {"city": "Name of the city.\nIn English.", "days": "How many days. Defaults to 3."},
    )


CHINESE = [
    "查询天气。\n\n参数:\n    city (str): 城市名称\n    days: 天数: 默认 3\n\n返回:\n    天气\n",
    "查询天气。\n\n参数：\n    city（str）：城市名称\n    days：天数: 默认 3\n返回值：\n    str：天气\n异常：\n    KeyError：没有\n",
    "查询天气。\n\n参数说明：\n    - city：城市名称\n    - days：天数: 默认 3\n返回：天气",
    "查询天气。\n\n参数\n----\ncity : str\n    城市名称\ndays : int\n    天数: 默认 3\n\n返回\n----\nstr\n    天气\n",
    "查询天气。\n\n:param city: 城市名称\n:param days: 天数: 默认 3\n:return: 天气\n",
    "查询天气。\n\n:参数 city: 城市名称\n:参数 days： 天数: 默认 3\n:返回: 天气\n",
    "查询天气。\n\nArgs:\n    city：城市名称\n    days（int，可选）：天数: 默认 3\n",
]


@pytest.mark.parametrize("text", CHINESE)
def test_chinese_headings_with_either_colon(text):
    found = read_docstring(text)
    assert found.description == "查询天气。"
    assert found.parameters == {"city": "城市名称", "days": "天数: 默认 3"}


def test_colons_in_the_text_of_an_entry_stay():
    found = read_docstring("查。\n\n参数：\n    q：格式：a：b\n        例如：x：y\n")
    assert found.parameters == {"q": "格式：a：b\n例如：x：y"}


@pytest.mark.parametrize("start", ["\n    Args:", "Args:", "参数："])
def test_it_may_begin_with_the_parameters(start):
    text = f"{start}\n        a: First.\n            More.\n        b: Second.\n    "
    assert read_docstring(text).parameters == {"a": "First.\nMore.", "b": "Second."}
    assert taken_apart(inspect.cleandoc(text)) == ("", {"a": ("First.\nMore.", ""), "b": ("Second.", "")})


def test_an_underline_of_another_length_will_do():
    assert read_docstring("S.\n\nParameters\n---\nx : int\n    It.\n").parameters == {"x": "It."}


def test_stars_and_nested_brackets():
    text = "S.\n\nArgs:\n    *args (int): Rest.\n    **options: More.\n    key (Callable[[int], str], optional): Key.\n"
    assert read_docstring(text).parameters == {"args": "Rest.", "options": "More.", "key": "Key."}


def test_keyword_arguments_add_to_the_arguments():
    text = "S.\n\nArgs:\n    a: First.\n\nKeyword Args:\n    b: Second.\n\nReturns:\n    It.\n"
    assert read_docstring(text) == Documentation("S.", {"a": "First.", "b": "Second."})


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_says_nothing(text):
    assert read_docstring(text) == Documentation()


@pytest.mark.parametrize(
    "text",
    ["Just a line.", "Args:\n  broken", "Look: a colon", "x: y\nz: w", ":param", "@", "---\n---", "参数：", "参数：\n\n"],
)  # fmt: skip
def test_what_follows_no_style_is_kept_or_left_out_but_never_fails(text):
    assert read_docstring(text).parameters == {}


def test_the_items_of_a_list_stay_beside_each_other():
    assert read_docstring("Do it:\n  - one\n  - two").description.splitlines()[-2:] == ["- one", "- two"]


def test_a_long_docstring_takes_linear_time():
    text = "S.\n\nArgs:\n" + "".join(f"    a{n}: {'x' * 50}\n" for n in range(3000))
    assert len(read_docstring(text).parameters) == 3000


# --- taken apart, for the prompt of a function -----------------------------------------------------------------------


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST, EPYDOC], ids=["google", "numpy", "rest", "epydoc"])
def test_sections_about_parameters_are_taken_out_and_all_else_stays_as_written(text):
    text = inspect.cleandoc(text)
    rest, told = taken_apart(text)
    assert {name: said for name, (said, _) in told.items()} == {
        "city": "Name of the city.\nIn English.",
        "days": "How many days. Defaults to 3.",
    }
    lines = text.splitlines()
    assert [line for line in rest.splitlines() if line not in lines] == []
    assert rest.startswith("Tell the weather.\n\nOnly for cities: villages are not known.\n\n")
    assert "The forecast." in rest
    assert "city" not in rest.replace("no such city", "")


@pytest.mark.parametrize("text", CHINESE)
def test_chinese_sections_are_taken_out_too(text):
    rest, told = taken_apart(inspect.cleandoc(text))
    assert {name: said for name, (said, _) in told.items()} == {"city": "城市名称", "days": "天数: 默认 3"}
    assert "城市" not in rest
    assert rest.startswith("查询天气。")


def test_the_types_that_it_gives_are_told_too():
    _, told = taken_apart("Do.\n\nArgs:\n    a (ISO date): when.\n    b: who.\n    *rest: more.")
    assert told == {"a": ("when.", "ISO date"), "b": ("who.", ""), "rest": ("more.", "")}


@pytest.mark.parametrize(
    "text",
    [
        "", "Just a text: with colons.\n    And lines.", "Do it.\n\nArgs:\n    All of them are German.\n    a: text.",
        "Do it.\n\nArguments:\n    a: text.\n    b", "Do it.\n\nArgs:\n\nReturns:\n    It.", "Do it.\n\nArgs: none.",
        "Say which arguments:\n    a: is one.", "Parameters of the model are set.\n\nNote:\n    a: b",
    ],
)  # fmt: skip
def test_a_docstring_stays_whole_where_a_word_would_be_lost(text):
    assert taken_apart(text) == (text, {})


def test_text_around_the_sections_stays():
    text = "Do it.\n\nParameters\n----------\na : int\n    The a.\n\nSay only one word.\n\n\nNever more."
    assert taken_apart(text)[0] == "Do it.\n\nSay only one word.\n\n\nNever more."
    text = ":param a: x\n\nIn between.\n\n:param b: y\n    more\n\n:returns: z"
    assert taken_apart(text) == ("In between.\n\n:returns: z", {"a": ("x", ""), "b": ("y\nmore", "")})


def test_what_two_sections_say_of_one_parameter_is_put_together():
    text = "Do.\n\nArgs:\n    a: first.\n    b: x.\n\nNote:\n    well\n\nKeyword Args:\n    a: second."
    assert taken_apart(text) == ("Do.\n\nNote:\n    well", {"a": ("first.\nsecond.", ""), "b": ("x.", "")})
