"""Names of tools on the wire."""

from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.tools.names import is_wire_name, wire_name, wire_names


def test_refused_characters_are_replaced():
    assert wire_name("web.search") == "web_search"
    assert wire_name("查询weather_forecast") == "weather_forecast"


def test_names_of_which_nothing_would_remain_stay_different():
    names = ["查天气", "查新闻", "x" * 65, "x" * 66, "", "...", "a" * 100 + "b"]
    found = [wire_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(map(is_wire_name, found))
    assert found[0].startswith("tool_")


def test_names_that_would_meet_are_kept_apart_and_the_good_one_keeps_itself():
    assert wire_names(["a.b", "a_b", "a b", "a_b_2"]) == {
        "a.b": "a_b_3",
        "a_b": "a_b",
        "a b": "a_b_4",
        "a_b_2": "a_b_2",
    }


@given(st.lists(st.text(max_size=90), unique=True, max_size=8))
def test_any_names_become_different_good_ones(names):
    found = wire_names(names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(map(is_wire_name, found.values()))
    assert all(found[name] == name for name in names if is_wire_name(name))
