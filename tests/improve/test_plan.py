"""The split and the plan: parts of the right size, equal cases together, never more questions than allowed."""

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.evaluate.cases import CheckedCase
from SimpleLLMFunc.improve.plan import affordable, parted, rounds


def case(number, text):
    return CheckedCase(str(number), {"text": text}, "x", "x", ())


@given(st.lists(st.integers(0, 200), min_size=30, max_size=200), st.integers(0, 9))
def test_equal_arguments_are_in_one_part_and_parts_have_their_share(texts, seed):
    given_cases = [case(number, text) for number, text in enumerate(texts)]
    most = max(Counter(texts).values())
    try:
        parts = parted(given_cases, seed)
    except UsageError:
        assert len(set(texts)) < 10
        return
    assert sorted(each.id for part in parts for each in part) == sorted(each.id for each in given_cases)
    for one, other in itertools.combinations(parts, 2):
        assert not {each.arguments["text"] for each in one} & {each.arguments["text"] for each in other}
    for share, part in zip((0.3, 0.3, 0.4), parts, strict=True):
        assert abs(len(part) - share * len(texts)) <= 2 * most
    again = parted(given_cases[::-1], seed)
    assert [{each.id for each in part} for part in again] == [{each.id for each in part} for part in parts]


@given(st.integers(1, 40), st.integers(1, 400), st.integers(2, 20_000))
def test_a_plan_takes_no_more_questions_than_are_allowed(most, cases, allowed):
    count, used = affordable(most, cases, allowed)
    assert 1 <= count <= most
    assert 1 <= used <= cases
    plan = rounds(count, used)
    assert plan[0].candidates == count
    assert plan[-1] == (min(2, count), used)
    assert questions(plan) <= allowed
    assert affordable(count, used, questions(plan)) == (count, used)
    if used < cases:
        assert count == 1
    elif count < most:
        assert questions(rounds(count + 1, cases)) > allowed


def questions(plan):
    asked, before = 0, 0
    for number, each in enumerate(plan):
        # The better half of those before, a new one asked from the start, and the function as it was.
        asked += (each.candidates + 1) * (each.cases - before) + (each.cases if number else 0)
        before = each.cases
    return asked
