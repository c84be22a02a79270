"""What the tests of the log share."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.logger import known


@pytest.fixture
def no_secrets(monkeypatch):
    """Begin with no secret known, and leave none."""
    monkeypatch.setattr(known, "_known", ())
