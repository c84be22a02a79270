"""What the pages, the reference and the examples of 1.0 name is still there, under the path that they show."""

import importlib
from pathlib import Path

import pytest

TEXT = Path(__file__).with_name("paths_of_1_0.txt").read_text("utf-8")
IMPORTS = dict(line.split(": ") for line in TEXT.splitlines())


@pytest.mark.parametrize("module", IMPORTS)
def test_the_path_leads_there(module: str) -> None:
    found = importlib.import_module(f"SimpleLLMFunc.{module}")
    assert not [name for name in IMPORTS[module].split() if not hasattr(found, name)]
