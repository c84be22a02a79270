from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.interface.wires.per_choice import PerChoice


@given(st.lists(st.tuples(st.integers(-2, 300), st.text(max_size=3))))
def test_it_is_what_a_dictionary_would_be(pairs):
    kept: PerChoice[str] = PerChoice()
    known: dict[int, str] = {}
    for index, value in pairs:
        assert kept.get(index) == known.get(index)
        assert kept.put(index, value) == value
        known[index] = value
    assert list(kept.items()) == sorted(known.items())
    assert bool(kept) == bool(known)
    kept.clear()
    assert not kept
    assert list(kept.items()) == []
    assert all(kept.get(index) is None for index in known)


def test_an_empty_text_is_something():
    kept: PerChoice[str] = PerChoice()
    kept.put(0, "")
    assert kept
    assert kept.get(0) == ""
