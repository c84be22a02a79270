"""Every Python block of README, docs and docstrings runs; every link between pages leads somewhere."""

import ast
import doctest
import importlib
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.docs.forked import run_code
from tests.docs.pages import ROOT, Block, blocks, clean_environment, pages

RUN_PAGE = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tests.docs.pages import forbid_network, run_page
sys.path.pop(0)
forbid_network()
run_page(Path({{page!r}}))
"""
_LEFT_BEHIND = ("Exception ignored", "was never retrieved", "was never awaited", "Task was destroyed")


def run(page: Path, cwd: Path) -> str:
    """Run the code of a page with warnings as errors in `cwd`, and return what it printed."""
    done = run_code(RUN_PAGE.format(page=str(page)), cwd=cwd, env=clean_environment(cwd))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert not any(trace in done.stderr for trace in _LEFT_BEHIND), done.stderr
    return done.stdout


def runs(page: Path) -> Any:
    """A page to run; a translation holds the code of the English page, and the page about MCP starts many servers."""
    is_later = page.name.endswith(".zh-CN.md") or page.name == "mcp.md"
    return pytest.param(page, id=str(page), marks=pytest.mark.heavy if is_later else ())


@pytest.mark.parametrize("page", [runs(page) for page in pages() if blocks((ROOT / page).read_text("utf-8"))])
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    run(ROOT / page, tmp_path)


README = blocks((ROOT / "README.md").read_text("utf-8"))


@pytest.mark.parametrize("block", README, ids=lambda block: f"line {block.line}")
def test_each_block_of_the_readme_runs_as_a_script(block: Block, tmp_path: Path) -> None:
    assert block.output is not None
    done = run_code(block.code, cwd=tmp_path, env=clean_environment(tmp_path))
    assert (done.returncode, done.stdout) == (0, block.output), done.stderr


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 200


def test_both_readmes_hold_the_same_code() -> None:
    # The texts of the two languages may differ; what they show may not.
    english, chinese = (blocks((ROOT / page).read_text("utf-8")) for page in ("README.md", "README.zh-CN.md"))
    assert [_shape(block.code) for block in english] == [_shape(block.code) for block in chinese]


MAIN = "chat evaluate functions limits map models providers return-types testing tools"


@pytest.mark.parametrize("name", MAIN.split())
def test_the_ten_main_how_tos_and_the_start_switch_between_the_languages(name: str) -> None:
    for path in (Path("docs/how-to") / name, Path("docs/tutorial"), Path("docs/reference/errors"), Path("README")):
        english, chinese = (ROOT / f"{path}{end}" for end in (".md", ".zh-CN.md"))
        assert f"[中文]({chinese.name})" in english.read_text("utf-8").partition("```")[0]
        assert f"[English]({english.name})" in chinese.read_text("utf-8").partition("```")[0]


@pytest.mark.parametrize("page", pages(), ids=str)
def test_a_line_that_is_there_to_be_uncommented_has_its_import(page: Path) -> None:
    for block in blocks((ROOT / page).read_text("utf-8")):
        for name in re.findall(r"^# \w+ = (\w+)\(", block.code, re.MULTILINE):
            assert re.search(rf"^from .* import .*\b{name}\b", block.code, re.MULTILINE), f"line {block.line}: {name}"


TRANSLATED = [page for page in pages() if page.name.endswith(".zh-CN.md") and page.name != "README.zh-CN.md"]


@pytest.mark.parametrize("page", TRANSLATED, ids=str)
def test_a_translated_page_shows_the_same_code(page: Path) -> None:
    english = page.with_name(page.name.replace(".zh-CN", ""))
    assert f"]({page.name})" in (ROOT / english).read_text("utf-8"), "the English page leads to it"
    shown = [[_shape(block.code) for block in blocks((ROOT / each).read_text("utf-8"))] for each in (english, page)]
    assert len(shown[0]) == len(shown[1])
    if page.stem != "assistant.zh-CN":  # speaks the language of its page, and shows what differs
        assert shown[0] == shown[1]


def _shape(code: str) -> str:
    """The code without comments, and without what stands in quotation marks."""
    code = re.sub(r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', '""', code)
    return re.sub(r"\s*#.*", "", code)


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = _without_code((ROOT / page).read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        goal = (ROOT / page).parent / name if name else ROOT / page
        assert goal.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in _anchors(goal.read_text("utf-8")), f"{page} links to {target}"


HOW_TO = [page for page in pages() if "how-to" in page.parts]
STANDS_IN = {"otel-backends.md": "a backend that takes the spans, so that the test need not wait for one"}


@pytest.mark.parametrize("page", HOW_TO, ids=str)
def test_a_how_to_begins_with_a_block_that_runs_as_it_is_shown(page: Path) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert next(iter(blocks(text))).is_run
    before = text[: text.index("```python")]
    assert "<!-- setup" not in before or page.name in STANDS_IN, "its reader does not have what is set up out of sight"


EXTRAS = {
    "frames": r"^import (?:pandas|polars)",
    "mcp": r"^from SimpleLLMFunc\.tools\.mcp",
    "otel": r"^from (?:opentelemetry\.sdk|SimpleLLMFunc\.observability\.setup)",
    "view": r"^from starlette|^from SimpleLLMFunc\.serve\.http",
    "cost": r"\.cost > 0",
}


@pytest.mark.parametrize("page", HOW_TO, ids=str)
def test_a_page_names_the_extra_before_it_needs_it(page: Path) -> None:
    text = (ROOT / page).read_text("utf-8")
    for extra, need in EXTRAS.items():
        if (found := re.search(need, text, re.MULTILINE)) is not None:
            assert f"[{extra}]" in text[: found.start()], (
                f"{page} needs {found.group()} and says how to get it later, or never"
            )


def test_the_start_leads_to_every_how_to() -> None:
    start = (ROOT / "docs/index.md").read_text("utf-8")
    assert [page.name for page in HOW_TO if f"]({page.relative_to('docs').as_posix()})" not in start] == []


def _without_code(text: str) -> str:
    return re.sub(r"^( *)(```+|~~~+)[\s\S]*?^\1\2", "", text, flags=re.MULTILINE)


def _anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.+)$", _without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _modules_with_examples() -> list[str]:
    found = [path for path in (ROOT / "SimpleLLMFunc").rglob("*.py") if ">>>" in path.read_text("utf-8")]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in sorted(found)]


@pytest.mark.parametrize("name", _modules_with_examples() or ["SimpleLLMFunc"])
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), raise_on_error=False).failed == 0


def _literal_blocks() -> list[tuple[str, str]]:
    """Code after ``::`` in the package's docstrings: placeholders keep it from running, not from being Python."""
    found: list[tuple[str, str]] = []
    for path in sorted((ROOT / "SimpleLLMFunc").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            text = ast.get_docstring(node) or ""
            found += [(str(path), code) for code in re.findall(r"::\n\n((?:    .*\n|\n)+)", text + "\n")]
    return [
        (path, textwrap.dedent(code)) for path, code in found if re.match(r"\s*(from|import|@|def|async|with) ", code)
    ]


def test_code_in_docstrings_is_python() -> None:
    found = _literal_blocks()
    assert found, "the contract suite shows how it is used"
    for path, code in found:
        compile(code, path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


# --- the runner itself ---


def _page(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_keep_their_lines_tags_and_outputs() -> None:
    text = "# T\n\n```python\na = 1\n```\n\n1. x\n   ```python no-run\n   if a:\n       b\n   ```\n<!-- setup\nc = 3\n-->\n"
    first, second, third = blocks(text)
    assert (first.code, first.line, first.is_run) == ("a = 1\n", 4, True)
    assert (second.code, second.is_run) == ("if a:\n    b\n", False)
    assert (third.code, third.line) == ("c = 3\n", 13)
    (block,) = blocks("```python\nprint(1)\n```\n\n```text output\n1\n```\n```text\nother\n```\n")
    assert block.output == "1\n"
    (outer,) = blocks("````markdown\n```python\nnot run\n```\n````\n```python\nrun\n```\n")
    assert outer.code == "run\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\n```python\nnope\n```\n", 'page.md", line 4'),
        ("```python\nprint(1)\n```\n```text output\n2\n```\n", "the block printed"),
        ("```python no-run\nbroken(\n```\n", "SyntaxError"),
        ("```python\nimport warnings; warnings.warn('x')\n```\n", "UserWarning"),
        ("```python\nimport socket; socket.create_connection(('192.0.2.1', 9))\n```\n", "reaches for the network"),
        ("```python\nimport asyncio\nawait asyncio.sleep(0)\nnope\n```\n", 'page.md", line 4'),
    ],
)
def test_a_page_that_fails_is_seen(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        run(_page(tmp_path, text), tmp_path)
    assert said in str(caught.value)
