"""What may not stand in the source: text that becomes code, unsafe formats, shells, unchecked peers, and a blocked loop.

The tree of every module is searched. What is meant to be there stands in a list below, with its reason; a line of the
list that nothing needs any more is an error too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "SimpleLLMFunc"

# --- what is refused anywhere -----------------------------------------------------------------------------

MODULES = {
    "pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "ruamel", "jsonpickle", "code",
    "codeop", "pty", "telnetlib", "ftplib", "xmlrpc", "imp", "commands", "lxml", "xml", "dbm", "distutils",
}  # fmt: skip
"""Modules that turn bytes into objects, or text into commands; not even imported."""

CALLS = {
    "eval", "exec", "compile", "__import__", "breakpoint", "builtins.eval", "builtins.exec", "builtins.compile",
    "ast.literal_eval", "os.system", "os.popen", "os.execv", "os.execve", "os.execl", "os.execlp", "os.execvp", "os.spawnl", "os.spawnv",
    "os.startfile", "tempfile.mktemp", "hashlib.md5", "hashlib.sha1", "ssl._create_unverified_context", "string.Formatter",
    "types.FunctionType", "types.CodeType", "jinja2.Template", "jinja2.Environment", "jinja2.sandbox.SandboxedEnvironment",
    "jinja2.sandbox.Environment", "numpy.load", "torch.load", "logging.basicConfig", "logging.config.dictConfig",
}  # fmt: skip
"""Functions that make code of text, or leave a check out."""

KEYWORDS = {
    "shell": True,
    "verify": False,
    "ssl": False,
    "verify_ssl": False,
    "check_hostname": False,
    "allow_pickle": True,
}
"""Arguments that must not have this value."""

NAMES = {"CERT_NONE", "PROTOCOL_SSLv3", "PROTOCOL_TLSv1", "OP_NO_TLSv1_3"}
TEXTS = {"0.0.0.0", "::"}

RARE = {
    "importlib.import_module", "pkgutil.resolve_name", "subprocess.run", "subprocess.Popen", "urllib.request.urlopen", "socket.create_server",
    "importlib.util.spec_from_file_location",
}  # fmt: skip
"""Functions that are right in few places, each of them named below."""

# --- what would hold up an event loop ---------------------------------------------------------------------

BLOCKING = {
    "time.sleep", "open", "io.open", "os.open", "os.read", "os.write", "os.fsync", "os.wait", "os.waitpid", "input",
    "sqlite3.connect", "subprocess.run", "subprocess.call", "subprocess.check_output", "subprocess.check_call", "subprocess.Popen", "os.system",
    "socket.create_connection", "socket.getaddrinfo", "socket.gethostbyname", "urllib.request.urlopen", "requests.get", "requests.post",
    "shutil.copy", "shutil.copyfile", "shutil.rmtree", "hashlib.file_digest", "asyncio.run", "run_sync", "select.select", "concurrent.futures.wait",
}  # fmt: skip
METHODS = {
    "read_text", "read_bytes", "write_text", "write_bytes", "executescript", "executemany", "commit", "communicate", "getresponse", "run_until_complete",
    "iterdir", "rglob", "glob",
}  # fmt: skip
"""Methods that block whatever they belong to."""
UNAWAITED = {"result", "join", "acquire", "wait", "get"}
"""Methods that block unless they are asyncio's, and then they are awaited."""

_TABLE = "the template stands in a table of this module"
_PHRASES = "the template stands in the tables of the assistant's phrases"
_DONE = "the task or future is done"
_EXTRA = "the name of an optional library, written in the source"
_CLUSTER = "Ray's own pickle, between the driver and its workers; nothing from outside is read by it"
_SHIPPED = "the user's own function or tool, by the name it has in its module"
_LAZY = "names of our own modules, loaded on first use"

ALLOWED: dict[tuple[str, str, str], str] = {
    ("__init__.py", "__getattr__", "importlib.import_module"): _LAZY,
    ("interface/__init__.py", "__getattr__", "importlib.import_module"): _LAZY,
    ("cli/main.py", "_Program.get_command", "importlib.import_module"): _LAZY,
    ("extras.py", "load_extra", "importlib.import_module"): _EXTRA,
    ("base/run/result.py", "Shown._repr_html_", "pkgutil.resolve_name"): "a function of `display`, named in the class",
    ("base/run/result.py", "Shown.__rich__", "pkgutil.resolve_name"): "the same",
    ("base/run/result.py", "_display", "pkgutil.resolve_name"): "the same",
    ("base/run/sinks.py", "_Defaults._ask", "pkgutil.resolve_name"): "our own default sinks: two names, written there",
    ("llm_decorator/improving.py", "improved", "pkgutil.resolve_name"): "a function of `improve`, a room above",
    ("batch/rows/tables.py", "_installed", "importlib.import_module"): _EXTRA,
    ("batch/progress.py", "progress_view", "importlib.import_module"): _EXTRA,
    ("tools/mcp/server.py", "HttpServer._client", "importlib.import_module"): _EXTRA,
    ("cli/load.py", "load_module", "importlib.import_module"): "the user's own module, named on the command line",
    (
        "cli/load.py",
        "_load_file",
        "importlib.util.spec_from_file_location",
    ): "the user's own file, named on the command line",
    ("cli/commands/doctor.py", "_endpoint", "urllib.request.urlopen"): "only when asked to, without the key",
    ("interface/local/weights.py", "_run", "subprocess.Popen"): "pip, with our arguments and no shell",
    ("viewer/responses.py", "Lines.__call__", ".result()"): _DONE,
    ("batch/ray/cluster.py", "shipped", "importlib.import_module"): _CLUSTER,
    ("batch/ray/cluster.py", "unpacked", "importlib.import_module"): _CLUSTER,
    ("llm_decorator/mapped.py", "pipeline_of_name", "pkgutil.resolve_name"): _SHIPPED,
    ("utils.py", "found_by", "pkgutil.resolve_name"): _SHIPPED,
    ("utils.py", "pickled_by_value", "importlib.import_module"): _EXTRA,
    ("runtime/listening.py", "listening", "socket.create_server"): "on the loopback address, or for callers with keys",
    ("serve/http_api.py", "Api.call", ".result()"): _DONE,
    ("serve/http_about.py", "<module>", "import jinja2.Template"): "the page is a file of ours, and only it is one",
    ("serve/http_about.py", "<module>", "jinja2.Template"): "the same",
    ("lock.py", "_modules_of", "importlib.import_module"): "the modules of the user's own package",
    ("testing/__init__.py", "__getattr__", "importlib.import_module"): _LAZY,
    ("testing/schema_values.py", "text_matching", "importlib.import_module"): _EXTRA,
    ("base/templates/jinja_sandbox.py", "<module>", "import jinja2.Template"): "for its type",
    ("viewer/exports.py", "<module>", "import jinja2.Template"): "for its type",
    ("viewer/exports.py", "_template", "jinja2.Environment"): "the generated test is a file of ours",
    ("testing/contract.py", "<module>", "import pickle"): "it loads what it has just made",
    ("base/schemas/strict_schema.py", "StrictSchema._told", "a computed template .format()"): _TABLE,
    ("base/schemas/type_description.py", "Describer._bounds", "a computed template .format()"): _TABLE,
    ("interface/attempts/rate_limits.py", "_told", "a computed template .format()"): _TABLE,
    ("cli/output.py", "show_rows", "a computed format specification"): "the width of our own column",
    ("assistant/builtin/ids.py", "frequency_number", "a computed format specification"): "a constant number of digits",
    ("assistant/builtin/document.py", "_each", ".result()"): _DONE,
    ("base/tool_call.py", "process_tool_calls", ".result()"): _DONE,
    ("interface/http/session.py", "_Request.write_bytes", ".write_bytes()"): "aiohttp's, and awaited",
    ("tools/mcp/connection.py", "McpConnection._call", ".result()"): _DONE,
}
"""(file, function, what was found): why it is right there."""

ALLOWED_FILES: dict[tuple[str, str], str] = {
    ("assistant/builtin/document.py", "a computed template .format()"): _PHRASES,
    ("assistant/builtin/image.py", "a computed template .format()"): _PHRASES,
    ("assistant/builtin/weather.py", "a computed template .format()"): _PHRASES,
}
"""(file, what was found): why it is right in the whole file."""

REACHED: dict[tuple[str, str, str], str] = {
    ("tools/schemas/check.py", "SchemaValidation.__init__", ".result()"): "work that is counted and ends",
    ("tools/mcp/server.py", "StdioServer._read", "os.read"): "a pipe that does not block",
}
"""What a coroutine reaches through ordinary functions: why it does not hold up the loop."""


@dataclass
class Found:
    """One place in one module."""

    file: str
    function: str
    what: str
    line: int

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.function, self.what

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}: {self.what}"


@dataclass
class Module:
    """One module, and what its names stand for."""

    path: Path
    tree: ast.Module = field(init=False)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.path.read_text("utf-8"))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    self.names[each.asname or each.name.partition(".")[0]] = (
                        each.name if each.asname else each.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module:
                for each in node.names:
                    self.names[each.asname or each.name] = f"{node.module}.{each.name}"

    @property
    def file(self) -> str:
        return self.path.relative_to(PACKAGE).as_posix()

    def dotted(self, node: ast.expr) -> str:
        """The whole name of what is called, as far as it can be told."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every function with its qualified name, the module itself as the empty one."""
    yield prefix or "<module>", tree
    for node in ast.iter_child_nodes(tree) if not isinstance(tree, FUNCTION | ast.ClassDef) else tree.body:
        yield from _below(node, prefix)


def _below(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, FUNCTION):
        name = f"{prefix}.{node.name}".strip(".")
        yield name, node
        for child in node.body:
            yield from _below(child, name)
    elif isinstance(node, ast.ClassDef):
        for child in node.body:
            yield from _below(child, f"{prefix}.{node.name}".strip("."))
    elif not isinstance(node, ast.expr):
        for child in ast.iter_child_nodes(node):
            yield from _below(child, prefix)


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of the functions inside it: these run when they are called."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, FUNCTION | ast.Lambda):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


# --- searching --------------------------------------------------------------------------------------------


def unsafe(module: Module) -> Iterator[Found]:
    """What may not stand anywhere."""
    for function, tree in functions(module.tree):
        for node in own_nodes(tree):
            for what in _unsafe(node, module):
                yield Found(module.file, function, what, getattr(node, "lineno", 0))


def _unsafe(node: ast.AST, module: Module) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (f"import {each.name}" for each in node.names if each.name.partition(".")[0] in MODULES)
    elif isinstance(node, ast.ImportFrom):
        if (node.module or "").partition(".")[0] in MODULES:
            yield f"import {node.module}"
        whole = [f"{node.module}.{each.name}" for each in node.names]
        yield from (f"import {name}" for name in whole if name in CALLS - {"jinja2.Environment"})
    elif isinstance(node, ast.Call):
        name = module.dotted(node.func)
        if name in CALLS or name in RARE:
            yield name
        for keyword in node.keywords:
            if (
                keyword.arg in KEYWORDS
                and isinstance(keyword.value, ast.Constant)
                and keyword.value.value is KEYWORDS[keyword.arg]
            ):
                yield f"{keyword.arg}={keyword.value.value}"
        is_template = isinstance(node.func, ast.Attribute) and node.func.attr in {"format", "format_map"}
        if is_template and not _is_constant_text(node.func.value):
            yield f"a computed template .{node.func.attr}()"
        if (
            name.endswith("Validator")
            and name.startswith("jsonschema")
            and "registry" not in {each.arg for each in node.keywords}
        ):
            yield f"{name} without a registry"
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in TEXTS:
        yield f"the address {node.value!r}"
    elif isinstance(node, ast.FormattedValue):
        parts = getattr(node.format_spec, "values", ())
        yield from ("a computed format specification" for part in parts if isinstance(part, ast.FormattedValue))


def _is_constant_text(node: ast.expr) -> bool:
    """Whether a template is written in the source: a text, or a constant of the module, which is in capitals."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id.isupper() or node.id in {"self", "super"}  # a formatter's own method
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def blocking(module: Module) -> Iterator[Found]:
    """What would hold up the loop, in the body of a coroutine."""
    for function, tree in functions(module.tree):
        if isinstance(tree, ast.AsyncFunctionDef):
            for node, what in blocking_calls(tree, module):
                yield Found(module.file, function, what, node.lineno)


def blocking_calls(function: ast.AST, module: Module) -> Iterator[tuple[ast.Call, str]]:
    nodes = list(own_nodes(function))
    awaited = {id(node.value) for node in nodes if isinstance(node, ast.Await)}
    # What is handed on, to `create_task` or `wait`, is awaited there.
    awaited |= {id(part) for node in nodes if isinstance(node, ast.Call) for part in ast.walk(node) if part is not node}
    later = {node.value.id for node in nodes if isinstance(node, ast.Await) and isinstance(node.value, ast.Name)}
    later |= {
        part.id
        for node in nodes
        if isinstance(node, ast.Await)
        for part in ast.walk(node)
        if isinstance(part, ast.Name)
    }
    awaited |= {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and {ast.unparse(each) for each in node.targets} & later
    }
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = module.dotted(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in BLOCKING or name.rpartition(".")[2] in {"run_sync"} or method in METHODS:
            yield node, name or f".{method}()"
        elif method in UNAWAITED and id(node) not in awaited and _may_block(method, node):
            yield node, f".{method}()"


def _may_block(method: str, node: ast.Call) -> bool:
    if method in {"join", "get", "result"}:  # a text's takes its pieces, a dict's the key, our own something else
        return not node.args and (
            method != "get" or "queue" in ast.unparse(node.func).lower()
        )  # a variable's waits for nothing
    return True


@cache
def modules_read() -> list[Module]:
    return [Module(path) for path in sorted((ROOT / "SimpleLLMFunc").rglob("*.py"))]


def is_allowed(found: Found) -> bool:
    return found.key in ALLOWED or (found.file, found.what) in ALLOWED_FILES


@cache
def all_found() -> list[Found]:
    return [each for module in modules_read() for search in (unsafe, blocking) for each in search(module)]


# --- what coroutines reach --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A function of the package."""

    module: Module = field(compare=False, hash=False)
    package_name: str
    name: str
    tree: ast.AST = field(compare=False, hash=False)

    def callees(self, places: dict[str, Place]) -> Iterator[Place]:
        """The functions of the package that this one calls, as far as names tell."""
        own_class = self.name.rpartition(".")[0]
        for node in own_nodes(self.tree):
            called = self.module.dotted(node.func) if isinstance(node, ast.Call) else ""
            if not called:
                continue
            names = [called, f"{self.package_name}.{called}", f"{self.package_name}.{self.name}.{called}"]
            if called.startswith(("self.", "cls.")):
                names.append(f"{self.package_name}.{own_class}.{called.partition('.')[2]}")
            found = (places.get(each) or places.get(f"{each}.__init__") for each in names)
            yield from (place for place in [next(filter(None, found), None)] if place)


def all_places() -> dict[str, Place]:
    places = {}
    for module in modules_read():
        package_name = f"SimpleLLMFunc.{module.file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")
        for name, tree in functions(module.tree):
            if name != "<module>":
                places[f"{package_name}.{name}"] = Place(module, package_name, name, tree)
    # A room gives out what its modules hold, and others know it by the room's name.
    for module in modules_read():
        if module.path.name == "__init__.py":
            room = ".".join(module.path.parent.relative_to(PACKAGE.parent).parts)
            for name, home in module.names.items():
                below = [path for path in places if path == home or path.startswith(f"{home}.")]
                places |= {f"{room}.{name}{path.removeprefix(home)}": places[path] for path in below}
    return places


@cache
def reached() -> list[Found]:
    """What blocks in ordinary functions that a coroutine calls, or that these call."""
    places = all_places()
    waiting = [place for place in places.values() if isinstance(place.tree, ast.AsyncFunctionDef)]
    seen = set(waiting)
    found = []
    while waiting:
        for place in waiting.pop().callees(places):
            if place not in seen and not isinstance(place.tree, ast.AsyncFunctionDef):
                seen.add(place)
                waiting.append(place)
                blocks = blocking_calls(place.tree, place.module)
                found += [Found(place.module.file, place.name, what, node.lineno) for node, what in blocks]
    return found


def test_attack_03_nothing_makes_code_of_text_or_blocks_the_loop():
    found = [each for each in all_found() if not is_allowed(each)]
    assert not found, "\n".join(map(str, found))


def test_no_coroutine_reaches_what_blocks():
    found = [each for each in reached() if each.key not in REACHED]
    assert not found, "\n".join(map(str, found))


def test_what_is_allowed_is_needed():
    found = all_found()
    assert not ALLOWED.keys() - {each.key for each in found}
    assert not ALLOWED_FILES.keys() - {(each.file, each.what) for each in found}
    assert not REACHED.keys() - {each.key for each in reached()}


BAD = {
    "eval(x)": "eval", "exec('1')": "exec", "import pickle": "import pickle", "from pickle import loads": "import pickle",
    "import yaml\nyaml.load(x)": "import yaml", "import os as o\no.system(x)": "os.system", "from os import popen\npopen(x)": "os.popen",
    "import ast\nast.literal_eval(x)": "ast.literal_eval", "__import__(x)": "__import__", "run(x, shell=True)": "shell=True",
    "template.format(x)": "a computed template .format()", "f'{x:{y}}'": "a computed format specification", "get(u, verify=False)": "verify=False",
    "import tempfile\ntempfile.mktemp()": "tempfile.mktemp", "import hashlib\nhashlib.md5(x)": "hashlib.md5", "import ssl\nssl.CERT_NONE": "CERT_NONE",
    "import jinja2\njinja2.Template(x)": "jinja2.Template", "bind('0.0.0.0')": "the address '0.0.0.0'",
    "import jsonschema\njsonschema.Draft7Validator(x)": "jsonschema.Draft7Validator without a registry",
    "async def f():\n    import time\n    time.sleep(1)": "time.sleep", "async def f():\n    open(x)": "open",
    "async def f():\n    path.read_text()": "path.read_text", "async def f():\n    thread.join()": ".join()", "async def f():\n    future.result()": ".result()",
    "async def f():\n    with x:\n        event.wait(3)": ".wait()", "async def f():\n    [run_sync(g()) for _ in x]": "run_sync",
    "async def f():\n    work_queue.get()": ".get()", "async def f():\n    import subprocess\n    subprocess.run(x)": "subprocess.run",
}  # fmt: skip


@pytest.mark.parametrize("source", BAD)
def test_what_is_searched_for_is_found(source, tmp_path, monkeypatch):
    path = tmp_path / "bad.py"
    path.write_text(source)
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    module = Module(path)
    assert BAD[source] in {each.what for search in (unsafe, blocking) for each in search(module)}


def test_what_is_fine_is_left(tmp_path, monkeypatch):
    path = tmp_path / "good.py"
    path.write_text(
        "import re, asyncio\nre.compile('x')\n'{}'.format(1)\nTABLE['a'].format(1)\nf'{x:>9}'\n"
        "async def f():\n    await event.wait()\n    waiting = q.get()\n    await waiting\n    ', '.join(x)\n    d.get('a')\n"
        "    await asyncio.wait({event.wait()})\n    def g():\n        open('x')\n    await asyncio.to_thread(g)\n    VARIABLE.get()\n"
    )
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    module = Module(path)
    assert [each for search in (unsafe, blocking) for each in search(module)] == []
