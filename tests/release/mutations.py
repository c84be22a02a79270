"""How many wrong lines the tests notice: ``python -m tests.release.mutations --places 200 --seed 1 [--write FILE]``.

One place of the package at a time is changed (a comparison, an `and`, a `not`, a constant), in a copy of the project, and
the tests of its module run, then those of its floor, until one fails. A change that no test notices is printed. The
results stand in a file of JSON lines, so a run that was interrupted goes on where it was.

Source: R. A. DeMillo, R. J. Lipton, F. G. Sayward, "Hints on Test Data Selection", Computer 11(4), 1978.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("base", "interface", "batch", "calls", "journal", "improve")
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.LtE: ast.Lt, ast.GtE: ast.Gt, ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is, ast.Is: ast.IsNot, ast.NotIn: ast.In, ast.In: ast.NotIn,
}  # fmt: skip
SECONDS = 420  # for the tests of one floor; tests that then still run have noticed an endless loop


@dataclass(frozen=True)
class Change:
    """One place, by its offsets in the file's text, and what is written there instead."""

    file: str
    line: int
    start: int
    end: int
    was: str
    now: str


def changes_of(path: Path) -> Iterator[Change]:
    """Every change that can be made in one file; annotations, decorators and f-strings are left as they are."""
    data = path.read_bytes()
    starts = [0, *accumulate(map(len, data.splitlines(keepends=True)))]
    for node in _behaviour(ast.parse(data)):
        if isinstance(node, ast.expr) and (changed := _changed(node)) is not None:
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            was = data[start:end].decode()
            yield Change(str(path.relative_to(ROOT)), node.lineno, start, end, was, f"({ast.unparse(changed)})")


def _changed(node: ast.expr) -> ast.expr | None:
    """What is written instead of a node; None where nothing else is."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=right) if type(operator) in COMPARISONS:
            return ast.Compare(left, [COMPARISONS[type(operator)]()], right)
        case ast.BoolOp(op=operator, values=values):
            return ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value)):
            return ast.Constant(value + 1)
    return None


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below that decide what happens."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _behaviour(child)


def tests_of(file: str) -> list[tuple[str, str]]:
    """The tests of a module, and which of them: its own file first, then its folder, its floor, its folder's heavy ones."""
    path = Path(file)
    folder = Path("tests", *path.parts[1:-1])
    quick = [folder / f"test_{path.stem}.py", folder, Path("tests", path.parts[1])]
    seen = [(str(one), "not heavy") for one in quick if (ROOT / one).exists()]
    return list(dict.fromkeys([*seen, (str(folder), "heavy")] if (ROOT / folder).exists() else seen))


def noticed_by(change: Change | None, copy: Path, tests: list[tuple[str, str]]) -> str:
    """Make the change in `copy`, run the tests, take it back; the tests that failed, or "" where none did."""
    original = b""
    if change is not None:
        original = (copy / change.file).read_bytes()
        (copy / change.file).write_bytes(original[: change.start] + change.now.encode() + original[change.end :])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m"]
    environ = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        for one, which in tests:
            try:
                ran = subprocess.run(
                    [*command, which, one], cwd=copy, env=environ, capture_output=True, timeout=SECONDS, check=False
                )
            except subprocess.TimeoutExpired:
                return f"{one} (did not end)"
            if ran.returncode not in (0, 5):  # 5: the folder holds no such test
                failed = re.search(rb"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
                return failed[1].decode() if failed else one
        return ""
    finally:
        if change is not None:
            (copy / change.file).write_bytes(original)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--places", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--write", type=Path, default=ROOT / ".bench" / "mutations.jsonl")
    asked = arguments.parse_args()
    files = [file for floor in FLOORS for file in sorted((ROOT / "SimpleLLMFunc" / floor).rglob("*.py"))]
    places = [change for file in files for change in changes_of(file)]
    chosen = random.Random(asked.seed).sample(places, min(asked.places, len(places)))
    asked.write.parent.mkdir(exist_ok=True)
    done = [json.loads(line) for line in asked.write.read_text("utf-8").splitlines()] if asked.write.exists() else []
    known = {json.dumps(line["change"], sort_keys=True): line["noticed"] for line in done}
    survived = noticed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "project")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "site", "__pycache__"))
        for number, change in enumerate(chosen, 1):
            key = json.dumps(asdict(change), sort_keys=True)
            if key not in known:
                known[key] = noticed_by(change, copy, tests_of(change.file))
                with asked.write.open("a", encoding="utf-8") as file_of_results:
                    file_of_results.write(json.dumps({"change": asdict(change), "noticed": known[key]}) + "\n")
            noticed += bool(known[key])
            survived += not known[key]
            if not known[key]:
                said = f"{change.file}:{change.line}: {change.was!r} -> {change.now!r}"
                print(f"{number}/{len(chosen)} not noticed: {said}", flush=True)
    print(f"{noticed} of {noticed + survived} changes were noticed ({noticed / (noticed + survived):.0%})")
    return 0 if noticed >= 0.9 * (noticed + survived) else 1


if __name__ == "__main__":
    sys.exit(main())
