"""Build the documentation site: ``python docs/build.py`` writes `site/`, and fails on a link that leads nowhere.

The pages are written for two readers: a code host, which shows them as they lie, and the site. What differs
is changed here, in a copy under `.site/`:

* ` ```text output ` (the tests compare it with what the block above prints) becomes a titled block.
* Examples, benchmark results and the files at the top of the repository become pages of their own; links follow.
"""

from __future__ import annotations

import ast
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / ".site"

_TOP = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", "README.zh-CN.md", "LICENSE")
_FENCE = re.compile(r"^( *)(`{3,})(\w+) (output|no-run)$", re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"^( *)(```+|~~~+)[\s\S]*?^\1\2|``?[^`\n]+``?", re.MULTILINE)


def homes() -> dict[str, str]:
    """Return where each file of the repository lies in the site: path to path, both from their roots."""
    found = {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix() for path in _files("docs")}
    found |= {
        f"examples/{path.name}": f"examples/{path.stem}.md" for path in sorted((ROOT / "examples").glob("[0-9]*.py"))
    }
    for folder in sorted(path for path in (ROOT / "examples").iterdir() if (path / "README.md").exists()):
        found[f"examples/{folder.name}/README.md"] = f"examples/{folder.name}.md"
        for path in sorted(folder.glob("*.py")):
            found[f"examples/{folder.name}/{path.name}"] = f"examples/{folder.name}_{path.stem}.md"
    found |= {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT).as_posix() for path in _results()}
    found |= {name: f"project/{Path(name).stem}.md" for name in _TOP}
    found["examples"] = "examples/index.md"
    return found


def _files(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in {".md", ".png", ".svg"})


def _results() -> list[Path]:
    return [path for path in _files("benchmarks") if "__pycache__" not in path.parts]


def page(source: str, text: str, where: dict[str, str]) -> str:
    """Return the text of the page `source` as the site wants it."""
    home = where[source]

    def moved(link: re.Match[str]) -> str:
        head, target, anchor, tail = link.groups()
        if re.match(r"[a-z]+:", target):
            return link[0]
        goal = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if goal not in where:
            raise SystemExit(f"{source} links to {target}, which is no page of the site")
        return f"{head}{posixpath.relpath(where[goal], posixpath.dirname(home) or '.')}{anchor or ''}{tail}"

    parts, end = [], 0
    for code in _CODE.finditer(text):  # what looks like a link inside code is left alone
        parts += [_LINK.sub(moved, text[end : code.start()]), code[0]]
        end = code.end()
    text = "".join([*parts, _LINK.sub(moved, text[end:])])
    return _FENCE.sub(
        lambda fence: fence[1] + fence[2] + fence[3] + (' title="Output"' if fence[4] == "output" else ""), text
    )


def example(path: Path) -> str:
    """Return an example as a page: what it shows, then the program."""
    code = path.read_text("utf-8")
    said = ast.get_docstring(ast.parse(code)) or path.stem
    title, _, rest = said.partition("\n")
    number = f"{path.stem[:2]}. " if path.stem[:2].isdigit() else ""
    place = path.relative_to(ROOT).as_posix()
    return f"# {number}{title.rstrip('.:')}\n{rest}\n\n`{place}`\n\n```python\n{code}```\n"


def searched(index: Path) -> None:
    """Take the generated tables of the faults out of the search index: they hold every word, and answer no search."""
    told = json.loads(index.read_text("utf-8"))
    told["items"] = [
        item
        for item in told["items"]
        if not (item["location"].startswith("reference/faults/#") and " scenarios, " in item["text"])
    ]
    index.write_text(json.dumps(told, ensure_ascii=False), "utf-8")


def main() -> None:
    """Copy, change, build."""
    where = homes()
    shutil.rmtree(COPY, ignore_errors=True)
    titles = []
    for source, home in where.items():
        origin, goal = ROOT / source, COPY / "docs" / home
        if not origin.is_file():
            continue
        goal.parent.mkdir(parents=True, exist_ok=True)
        if origin.suffix == ".py":
            goal.write_text(text := example(origin), "utf-8")
            if origin.parent.name == "examples":
                titles.append(f"- [{text.splitlines()[0][2:]}]({goal.name})")
        elif origin.suffix == ".md":
            goal.write_text(page(source, origin.read_text("utf-8"), where), "utf-8")
            if goal.parent.name == "examples":
                name = origin.read_text("utf-8").splitlines()[0].lstrip("# ")
                titles.append(f"- [{name}]({goal.name})")
        elif source == "LICENSE":
            goal.write_text(f"# License\n\n```text\n{origin.read_text('utf-8')}```\n", "utf-8")
        else:
            shutil.copy(origin, goal)
    (COPY / "docs/examples/index.md").write_text(
        "# Examples\n\nEvery one runs without a key.\n\n" + "\n".join(titles) + "\n"
    )
    (COPY / "zensical.toml").write_text((ROOT / "zensical.toml").read_text("utf-8"), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=COPY, env=environment, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    searched(COPY / "site/search.json")
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    shutil.move(COPY / "site", ROOT / "site")
    print(f"Open {(ROOT / 'site/index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
