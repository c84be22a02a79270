# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""llm.lock: notice that a prompt, a signature, a type or a tool has changed, before a user does.

On the command line: `simplellmfunc lock shop` writes the file, `simplellmfunc lock --check` is for CI. This program does the
same from Python, with a module that it writes, locks, changes and checks.

Model: none is asked; `OpenAICompatible` in the line `llm = …` is only named.
"""

import importlib
import sys
import tempfile
from pathlib import Path

from SimpleLLMFunc.lock import check_lock, lock_of, read_lock, write_lock

SHOP = '''
from pydantic import BaseModel
from SimpleLLMFunc import OpenAICompatible, llm_function

llm = OpenAICompatible("gpt-5-mini", api_key="never-written-down")


class Grade(BaseModel):
    points: int


@llm_function(llm_interface=llm, temperature=0.2)
def grade(essay: str) -> Grade:
    """Grade the essay."""
    raise NotImplementedError


@llm_function(llm_interface=llm)
def name_it(essay: str) -> str:
    """Find a title."""
    raise NotImplementedError
'''


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # the module changes within a second

    (folder / "shop.py").write_text(SHOP)
    shop = importlib.import_module("shop")
    write_lock(folder / "llm.lock", lock_of(shop), ["shop"])
    print("no key in the file:", "never-written-down" not in (folder / "llm.lock").read_text())

    changed = SHOP.replace("Grade the essay.", "Grade the essay. Be fair.").replace("points: int", "points: float")
    (folder / "shop.py").write_text(changed.replace("temperature=0.2", "temperature=0.9"))
    shop = importlib.reload(shop)
    before, _ = read_lock(folder / "llm.lock")
    print(check_lock(before, lock_of(shop)))


if __name__ == "__main__":
    main()
