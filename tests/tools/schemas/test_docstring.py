"""What a docstring says about a tool and its parameters."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.tools.schemas.docstring import Documentation, read_docstring

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


def test_several_names_on_one_line():
    assert read_docstring("S.\n\nParameters\n----------\nx, y : int\n    Both.\n").parameters == {
        "x": "Both.",
        "y": "Both.",
    }


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
    [
        "Just a line.",
        "Args:\n  broken",
        "Look: a colon",
        "x: y\nz: w",
        ":param",
        "@",
        "---\n---",
        "参数：",
        "参数：\n\n",
    ],
)
def test_what_follows_no_style_is_kept_or_left_out_but_never_fails(text):
    assert read_docstring(text).parameters == {}


def test_a_long_docstring_takes_linear_time():
    text = "S.\n\nArgs:\n" + "".join(f"    a{n}: {'x' * 50}\n" for n in range(3000))
    assert len(read_docstring(text).parameters) == 3000
