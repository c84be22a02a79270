"""A missing extra is said with what is missing and the line that installs it, everywhere in the same words."""

from __future__ import annotations

import asyncio
import functools
import inspect
import io
import re
import sys
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from SimpleLLMFunc import OpenAICompatible, extras, llm_function
from SimpleLLMFunc.assistant.builtin.image import read_text_in_image
from SimpleLLMFunc.assistant.builtin.reading import read_document
from SimpleLLMFunc.assistant.search.tavily_search import TavilySearch
from SimpleLLMFunc.batch.ray.cluster import ray_package
from SimpleLLMFunc.batch.rows.arrow import parquet_package
from SimpleLLMFunc.batch.rows.tables import to_frame
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import check_extra, install_line, load_extra, missing_extra
from SimpleLLMFunc.improve import Gepa
from SimpleLLMFunc.interface.llm_interface import require_prices
from SimpleLLMFunc.interface.local.server import require_llama
from SimpleLLMFunc.interface.spending import cost
from SimpleLLMFunc.observability.otel.setup import setup_tracing
from SimpleLLMFunc.serve.http import http_app
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.tools.mcp.server import require_mcp

ROOT = Path(__file__).parent.parent
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


# --- the helper --------------------------------------------------------------------------------------------


def test_what_is_there_is_loaded():
    check_extra("json", "files", purpose="x")
    assert load_extra("json.decoder", "files", purpose="x").__name__ == "json.decoder"


@pytest.mark.parametrize("use", [check_extra, load_extra])
def test_what_is_missing_names_the_line(use):
    with pytest.raises(
        ConfigError,
        match=f"^reading tea leaves needs `no_such_module`, which is not installed: {re.escape(install_line('tea'))}$",
    ):
        use("no_such_module", "tea", purpose="reading tea leaves")


def test_what_else_can_be_done_stands_behind_the_line():
    with pytest.raises(ConfigError, match=rf"{re.escape(install_line('tea'))}\. Or drink it\.$"):
        load_extra("no_such_module.leaves", "tea", purpose="reading tea leaves", advice="Or drink it.")


@pytest.fixture
def broken(tmp_path, monkeypatch) -> Callable[[str], None]:
    def write(code: str) -> None:
        (tmp_path / "broken_module_of_a_test.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)

    return write


def test_what_a_library_needs_itself_is_named_where_that_is_missing(broken):
    broken("import no_such_module_at_all")
    check_extra("broken_module_of_a_test", "tea", purpose="x")
    with pytest.raises(ConfigError, match=r"^x needs `no_such_module_at_all`, which is not installed: pip") as caught:
        load_extra("broken_module_of_a_test", "tea", purpose="x")
    assert isinstance(caught.value.__cause__, ImportError)


def test_a_library_that_breaks_while_it_loads_says_why(broken):
    broken("raise ImportError('libtea.so.1: cannot open shared object file')")
    with pytest.raises(
        ConfigError, match=r"^x needs `broken_module_of_a_test`, which cannot be loaded \(libtea\.so\.1: .* file\): pip"
    ):
        load_extra("broken_module_of_a_test", "tea", purpose="x")


def test_an_error_that_names_nothing_falls_back_to_the_library():
    error = missing_extra("tea.leaves", "tea", purpose="x", error=ModuleNotFoundError("gone"))
    assert str(error) == f"x needs `tea`, which is not installed: {install_line('tea')}"


# --- all extras --------------------------------------------------------------------------------------------


@llm_function
async def greet(name: str) -> str:
    """Greet."""


def word_file() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("word/document.xml", "x")
    return file.getvalue()


@dataclass(frozen=True)
class Place:
    """Where the user is told that a library is missing."""

    blocked: tuple[str, ...]
    use: Callable[[], Any]
    shown: str = ""


PLACES = {
    "genai-prices": Place(
        ("genai_prices",), lambda: require_prices(OpenAICompatible("gpt-4o", api_key="sk-x")), "genai-prices"
    ),
    "pypdf": Place(("pypdf",), lambda: read_document("a.pdf", b"%PDF-1.4")),
    "python-docx": Place(("docx",), lambda: read_document("a.docx", word_file())),
    "pyarrow": Place(("pyarrow",), lambda: parquet_package("x")),
    "pandas": Place(
        ("pandas", "polars"),
        lambda: to_frame(SimpleNamespace(return_type=str, rows=[])),
        "pandas or polars, and neither",
    ),
    "xllamacpp": Place(("xllamacpp",), require_llama),
    "gepa": Place(
        ("gepa",), lambda: Gepa(ScriptedLLM("x")).propose(SimpleNamespace(), seed=0, options=SimpleNamespace())
    ),
    "mcp": Place(("mcp",), require_mcp),
    "rapidocr": Place(("rapidocr",), lambda: read_text_in_image(b"")),
    "onnxruntime": Place(("onnxruntime",), lambda: read_text_in_image(b"")),
    "opentelemetry-sdk": Place(("opentelemetry.sdk.trace",), setup_tracing),
    "opentelemetry-exporter-otlp-proto-http": Place(
        ("opentelemetry.exporter.otlp.proto.http.trace_exporter",), setup_tracing
    ),
    "ray": Place(("ray",), ray_package),
    "tavily-python": Place(("tavily",), lambda: TavilySearch("tvly-x")),
    "starlette": Place(("starlette.applications",), lambda: http_app(greet)),
    "uvicorn": Place(("uvicorn",), lambda: http_app(greet)),
}
"""By the name under which the library is installed."""

NONE_NEEDED = {
    "pretty": "without rich and tqdm the same is shown as plain text",
    "all": "a list of the others",
    "dev": "for those who work on the library",
    "dev-heavy": "the same",
}
"""Extras that nobody is told to install."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_is_asked_for_where_one_of_its_libraries_is_missing(extra, monkeypatch):
    if extra in NONE_NEEDED:
        assert not re.search(rf'"{extra}", purpose=|install_line\("{extra}"\)', source_of_all())
        return
    for requirement in EXTRAS[extra]:
        name = re.match(r"[\w-]+", requirement)
        assert name is not None
        place = PLACES[name.group()]
        with monkeypatch.context() as patch:
            patch.setattr(cost, "_genai_prices", functools.cache(cost._genai_prices.__wrapped__))
            # Whether the others are installed here or not.
            patch.setattr(extras, "find_spec", lambda wanted, gone=place.blocked: None if wanted in gone else object())
            for module in place.blocked:
                patch.setitem(sys.modules, module, None)
            with pytest.raises(ConfigError) as told:
                result = place.use()
                if inspect.isawaitable(result):
                    asyncio.run(result)
        text = str(told.value)
        assert install_line(extra) in text
        assert (place.shown or f"`{place.blocked[0]}`, which is not installed") in text


def source_of_all() -> str:
    return "".join(path.read_text("utf-8") for path in sorted((ROOT / "SimpleLLMFunc").rglob("*.py")))


def test_no_one_is_sent_to_the_index_for_another_package_of_that_name():
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    texts += (ROOT / "SimpleLLMFunc").rglob("*.py")
    wrong = re.compile(r"pip install [^\n]*SimpleLLMFunc(?![^\n\"']* @ )")
    told = {path.relative_to(ROOT).as_posix(): wrong.findall(path.read_text("utf-8")) for path in texts}
    assert {path: lines for path, lines in told.items() if lines} == {}


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_first_screen_tells_of_the_other_package(readme):
    screen = "\n".join((ROOT / readme).read_text("utf-8").split("\n")[:40])
    assert "0.4.2" in screen
    assert "pip install ." in screen


# --- as it was installed -----------------------------------------------------------------------------------

METADATA = """\
Metadata-Version: 2.4
Name: SimpleLLMFunc
Version: 1.1.0
Requires-Dist: click>=8.2
Requires-Dist: tzdata>=2024.1; sys_platform == "win32"
Provides-Extra: frames
Requires-Dist: pandas>=2.2.2; extra == "frames"
Requires-Dist: pyarrow>=16.1; (python_version >= "3.11") and extra == 'frames'
"""


@pytest.fixture
def package(tmp_path) -> Path:
    """The directory of the library in a directory of packages, with what pip notes beside it."""
    found = tmp_path / "site-packages" / "SimpleLLMFunc"
    found.mkdir(parents=True)
    noted = tmp_path / "site-packages" / "simplellmfunc-1.1.0.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text(METADATA)
    return found


def test_a_checkout_is_installed_again_from_where_it_lies(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "SimpleLLMFunc").mkdir()
    assert install_line("frames", tmp_path / "SimpleLLMFunc") == f'pip install -e "{tmp_path}[frames]"'
    assert install_line("", tmp_path / "SimpleLLMFunc") == f'pip install -e "{tmp_path}"'
    assert install_line("frames") == f'pip install -e "{ROOT}[frames]"'


def test_otherwise_the_packages_are_named(package):
    assert install_line("frames", package) == 'pip install "pandas>=2.2.2" "pyarrow>=16.1"'
    assert install_line("", package) == 'pip install "click>=8.2" "tzdata>=2024.1"'


def test_a_copy_of_the_package_alone_is_told_without_a_wrong_line(tmp_path):
    assert install_line("frames", tmp_path / "SimpleLLMFunc") == "SimpleLLMFunc[frames], from where this one came"
