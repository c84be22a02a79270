"""The switch that forbids real requests."""

import pytest

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.attempts.guard import check_real_call_allowed, forbid_real_calls, real_calls_asked_for


def is_allowed():
    try:
        check_real_call_allowed("gpt-5-mini")
    except UsageError:
        return False
    return True


def test_it_takes_effect_at_once_and_until_it_is_undone():
    guard = forbid_real_calls()
    try:
        with pytest.raises(UsageError, match=r"gpt-5-mini: .*ScriptedLLM.*\.undo\(\)"):
            check_real_call_allowed("gpt-5-mini")
    finally:
        guard.undo()
    assert is_allowed()
    guard.undo()
    assert is_allowed()


def test_as_a_context_manager_it_ends_with_its_block_and_may_be_used_again():
    with forbid_real_calls() as guard:
        assert not is_allowed()
    assert is_allowed()
    with guard:
        assert not is_allowed()
    assert is_allowed()


def test_they_nest_in_any_order():
    outer, inner = forbid_real_calls(), forbid_real_calls()
    outer.undo()
    assert not is_allowed()
    inner.undo()
    assert is_allowed()


def test_what_someone_asks_for_may_leave():
    outer, undone = forbid_real_calls(), forbid_real_calls()
    with outer:
        with real_calls_asked_for():
            assert is_allowed()
            with forbid_real_calls():  # what the test itself forbids is forbidden
                assert not is_allowed()
            undone.undo()
        assert not is_allowed()
    assert is_allowed()
