"""A browser that is demanded is not passed over."""

from __future__ import annotations

import pytest

from tests.viewer import served


@pytest.mark.heavy  # playwright is installed for what is heavy
@pytest.mark.parametrize(("demanded", "outcome"), [("1", pytest.fail.Exception), ("0", pytest.skip.Exception)])
def test_without_a_browser(monkeypatch, demanded, outcome):
    monkeypatch.setattr(served, "chromium", lambda: None)
    monkeypatch.setenv("SIMPLELLMFUNC_DEMAND_BROWSER", demanded)
    with pytest.raises(outcome, match="no chromium"), served.opened_browser():
        raise AssertionError("there is none")
