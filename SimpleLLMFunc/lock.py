"""llm.lock: what every decorated function of a package was when its lock was last written.

`lock_of` describes the functions, `write_lock` keeps that in a file for version control, and `check_lock` says what has
changed since: which functions, in what, and which cassettes and evaluations were made with an earlier version.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from SimpleLLMFunc.base.type_resolve import type_identity
from SimpleLLMFunc.batch import replaced_whole
from SimpleLLMFunc.config import file_path, json_of_file
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError
from SimpleLLMFunc.interface.llm_interface import answering_models
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.decorated import CHATS, chat_pipeline_of, is_function, pipeline_of
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.logger import MASK, looks_secret, redact, shown_error

LOCK_FILE: Final = "llm.lock"
"""The name of the file by default, in the working directory."""

_FORMAT: Final = 1
_ANSWERING: Final = {
    "first": ("first",),
    "fallback": ("fallback",),
    "votes": ("votes", "escalate_to"),
    "calibration": ("calibration",),
    "improvement": ("improvement",),
}
_PARTS: Final = ("prompt", "signature", "types", "tools", *_ANSWERING)
_HEADERS: Final = frozenset({"extra_headers", "extra_query", "extra_body"})
_PLACE: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})
_HEAD_BYTES: Final = 256
_MOST_BYTES: Final = 64 * 1024 * 1024

Pipeline: TypeAlias = FunctionPipeline | ChatPipeline


@dataclass(frozen=True, slots=True)
class Locked:
    """One function as the file holds it.

    Attributes:
        version: of all the parts; the one that traces, cassettes and evaluations carry.
        model: the names of the models it was given, best first; none where the environment decides.
        parameters: what goes to the provider with every request, without secrets.
        wire: the protocols of the models; none where all are asked by chat completions.
        parts: a hash of each of prompt, signature, types and tools; of votes, plain code and an improvement where there are any.
    """

    version: str
    model: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    wire: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as the file holds it."""
        held = {name: getattr(self, name) for name in ("version", "model", "wire", "parameters")}
        parts = {name: self.parts[name] for name in _PARTS if name in self.parts}
        return {**{name: value for name, value in held.items() if name != "wire" or value}, "parts": parts}


@dataclass(frozen=True, slots=True)
class Difference:
    """One function that is not what it was.

    Attributes:
        function: ``module:qualname``.
        changed: which of prompt, signature, types, tools, first, fallback, votes, improvement, model, wire and parameters; or
            only "new", or only "gone".
    """

    function: str
    changed: tuple[str, ...]

    def __str__(self) -> str:
        if self.changed in {("new",), ("gone",)}:
            return f"{self.function}: {self.changed[0]}"
        return f"{self.function}: {', '.join(self.changed)} changed"


@dataclass(frozen=True, slots=True)
class LockCheck:
    """The changes since the file was written.

    Attributes:
        differences: by function.
        stale: files made with an earlier version of a function, each with the functions: cassettes and evaluations.
    """

    differences: tuple[Difference, ...] = ()
    stale: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Nothing has changed, and nothing is stale."""
        return not self.differences and not self.stale

    def __str__(self) -> str:
        lines = [str(each) for each in self.differences]
        lines += [f"{path}: stale, made with an earlier {', '.join(names)}" for path, names in self.stale.items()]
        return "\n".join(lines)


# --- what there is now -----------------------------------------------------------------------------------


def lock_of(*modules: ModuleType) -> dict[str, Locked]:
    """Return what every decorated function of the modules is now, by ``module:qualname``; of a package, all of its modules.

    Functions and chats at the top level and in classes count, each where it was written; what `with_options` made of one
    counts by its own name, where it is another one.

    Raises:
        ConfigError: a module of a package cannot be imported, or there is nothing to lock.
    """
    found: dict[str, Locked] = {}
    named = [each for module in modules for part in _modules_of(module) for each in _pipelines_in(part)]
    # Those that are found where they were written come first: the others are made of them.
    for name, pipeline in sorted(named, key=lambda each: each[0] != each[1].metadata.place):
        place, locked = pipeline.metadata.place, _locked(pipeline)
        if found.setdefault(place, locked) != locked:
            found[name] = locked
    if not found:
        names = ", ".join(module.__name__ for module in modules)
        raise ConfigError(f"{names} has no function under @llm_function or @llm_chat. Name the package that has them.")
    return dict(sorted(found.items()))


def _modules_of(module: ModuleType) -> Iterator[ModuleType]:
    yield module
    if not hasattr(module, "__path__"):
        return

    def refuse(name: str) -> None:
        raise ConfigError(f"the package {name!r} cannot be imported. Import it with Python alone to see why.")

    for info in pkgutil.walk_packages(module.__path__, f"{module.__name__}.", onerror=refuse):
        if info.name.rpartition(".")[2] == "__main__":
            continue  # it is a program: importing it runs it
        try:
            yield importlib.import_module(info.name)
        except SimpleLLMFuncError:
            raise
        except Exception as error:
            said = shown_error(error, 300)
            raise ConfigError(
                f"the module {info.name!r} cannot be imported ({said}). Mend it, or lock its siblings by name."
            ) from error


def _pipelines_in(module: ModuleType) -> Iterator[tuple[str, Pipeline]]:
    """Yield the functions of a module, each with the name under which it is found."""
    for owner in _owners(module, module.__name__, set()):
        around = f"{owner.__qualname__}." if isinstance(owner, type) else ""
        for name, each in list(vars(owner).items()):
            value = each.__func__ if isinstance(each, (staticmethod, classmethod)) else each
            if not isinstance(value, CHATS) and not is_function(value):
                continue
            pipeline: Pipeline = chat_pipeline_of(value) if isinstance(value, CHATS) else pipeline_of(value)
            if pipeline.definition.func.__module__ == module.__name__:
                # As it is when it is called: a class is no argument.
                called = pipeline.as_method() if isinstance(each, classmethod) else pipeline
                yield f"{module.__name__}:{around}{name}", called


def _owners(owner: Any, module: str, seen: set[int]) -> Iterator[Any]:
    """Yield a module, and the classes written in it, with those inside of them."""
    seen.add(id(owner))
    yield owner
    for value in list(vars(owner).values()):
        if isinstance(value, type) and value.__module__ == module and id(value) not in seen:
            yield from _owners(value, module, seen)


def _locked(pipeline: Pipeline) -> Locked:
    about, options = pipeline.metadata, pipeline.options
    types = {name: type_identity(hint, as_json=True) for name, hint in pipeline.definition.metadata[1].items()}
    own = pipeline.own_version_parts() if isinstance(pipeline, FunctionPipeline) else {}
    answering = {name: _hash([own[key] for key in keys]) for name, keys in _ANSWERING.items() if keys[0] in own}
    models = answering_models(options.llm_interface) if options.llm_interface is not None else []
    wires = tuple(llm.wire_name for llm in models)
    prompt_parts = _without_answering(pipeline.version_parts)
    parameters: dict[str, Any] = {}
    for llm in reversed(models):
        parameters |= dict(getattr(llm, "api_params", None) or {})
    return Locked(
        version=about.version,
        model=tuple(llm.model_name for llm in models),
        wire=wires if any(name != "chat" for name in wires) else (),
        parameters=_plain(parameters | dict(options.params)),
        parts={
            "prompt": _hash([about.docstring, dict(options.template_params or {}), prompt_parts]),
            "signature": _hash(about.signature),
            # A field that was added to a model is a change of every function that takes or gives one.
            "types": _hash([types, about.output_schema]),
            "tools": _hash(list(about.tools)),
            **answering,
        },
    )


def _without_answering(parts: list[Any]) -> list[Any]:
    """Return what the version holds besides docstring, signature, types and tools, as far as it is in the prompt."""
    others = {key for keys in _ANSWERING.values() for key in keys}
    return [kept for part in parts if (kept := {key: each for key, each in part.items() if key not in others})]


def _plain(value: Any, name: str = "") -> Any:
    """Return JSON data without secrets: of headers and the like, only the names."""
    if isinstance(value, Mapping):
        if name in _HEADERS:
            return {str(key): MASK for key in sorted(value, key=str)}
        return {
            redact(str(key)): _plain(part, str(key))
            for key, part in sorted(value.items(), key=lambda item: str(item[0]))
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item, name) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else _PLACE.sub("", repr(value))
    return MASK if looks_secret(name, text) else redact(text)


def _hash(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.blake2b(_PLACE.sub("", text).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


# --- the file --------------------------------------------------------------------------------------------


def write_lock(path: str | os.PathLike[str], functions: Mapping[str, Locked], targets: Iterable[str] = ()) -> bool:
    """Write the file: stable order, one line for each fact; return whether it changed.

    Args:
        path: of the file.
        functions: as `lock_of` returns them.
        targets: what was locked, as the command line names it; a later check looks there.

    Raises:
        ConfigError: it cannot be written.
    """
    data = {
        "lock": _FORMAT,
        "targets": sorted(targets),
        "functions": {place: functions[place].to_dict() for place in sorted(functions)},
    }
    text = json.dumps(data, ensure_ascii=True, indent=2) + "\n"
    place = file_path(path)
    with suppress(OSError):  # one that cannot be read is told of when it cannot be written
        if place.is_file() and place.read_text(encoding="utf-8", errors="replace") == text:
            return False
    with replaced_whole(place) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return True


def read_lock(path: str | os.PathLike[str]) -> tuple[dict[str, Locked], list[str]]:
    """Return the functions of a file, and the targets it was written for.

    Raises:
        ConfigError: the file is missing, or `write_lock` did not write it.
    """
    with suppress(OSError):  # one that cannot be looked for is told of when it cannot be read
        if not file_path(path).exists():
            raise ConfigError(f"there is no {os.fspath(path)!r}. Write it: simplellmfunc lock PACKAGE")
    data = json_of_file(path, "a lock file")
    try:
        if data["lock"] != _FORMAT:
            raise ConfigError(
                f"{os.fspath(path)!r} has the format {data['lock']!r}; this version of SimpleLLMFunc reads {_FORMAT}. "
                "Update SimpleLLMFunc, or write the file again."
            )
        return TypeAdapter(dict[str, Locked]).validate_python(data["functions"]), list(map(str, data["targets"]))
    except (KeyError, TypeError, ValidationError) as error:
        raise ConfigError(
            f"{os.fspath(path)!r} is not a lock file, or was damaged ({type(error).__name__}: {error}). Write it again: "
            "simplellmfunc lock PACKAGE"
        ) from error


# --- what has changed ------------------------------------------------------------------------------------


def check_lock(
    before: Mapping[str, Locked], now: Mapping[str, Locked], folders: Iterable[str | os.PathLike[str]] = ()
) -> LockCheck:
    """Return what has changed.

    Args:
        before: what was agreed to.
        now: what there is.
        folders: where cassettes and evaluations are looked for, below them too.
    """
    changes = {place: _changed(before.get(place), now.get(place)) for place in sorted(before.keys() | now.keys())}
    differences = [Difference(place, changed) for place, changed in changes.items() if changed]
    return LockCheck(tuple(differences), _stale(before, now, folders))


def _changed(before: Locked | None, now: Locked | None) -> tuple[str, ...]:
    if before is None or now is None:
        return ("new",) if before is None else ("gone",)
    changed = [name for name in _PARTS if before.parts.get(name) != now.parts.get(name)]
    changed += ["model"] if before.model != now.model else []
    changed += ["wire"] if before.wire != now.wire else []
    # As both are read back from the file.
    plain = [json.dumps(each.parameters, sort_keys=True, default=repr) for each in (before, now)]
    changed += ["parameters"] if plain[0] != plain[1] else []
    if before.version != now.version and not changed:
        changed.append("types")  # something that the version knows of, and no part
    return tuple(changed)


def _stale(
    before: Mapping[str, Locked], now: Mapping[str, Locked], folders: Iterable[str | os.PathLike[str]]
) -> dict[str, tuple[str, ...]]:
    stale: dict[str, tuple[str, ...]] = {}
    versions = {each.version for each in now.values()}
    for folder in folders:
        for path in _json_files(Path(folder)):
            # What `with_options` made of a function says that it is the function.
            earlier = [
                function
                for function, version in _made_with(path)
                if version and version not in versions and (function in now or function in before)
            ]
            if earlier:
                stale[path.as_posix()] = tuple(dict.fromkeys(earlier))
    return dict(sorted(stale.items()))


def _json_files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith((".", "venv")))
        yield from (Path(place) / name for name in sorted(names) if name.endswith(".json"))


def _made_with(path: Path) -> list[tuple[str, str]]:
    """Return function and version of each thing in a cassette or a report of an evaluation; nothing of other files."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        is_cassette = re.match(rb'\s*\{\s*"cassette"\s*:', head) is not None
        is_report = re.match(rb'\s*\{\s*"kind"\s*:\s*"[^"]*evaluation', head) is not None
        if not (is_cassette or is_report) or path.stat().st_size > _MOST_BYTES:
            return []
        data = json.loads(path.read_text(encoding="utf-8"))
        made = data["exchanges"] if is_cassette else [data]
        return [(str(each.get("function", "")), str(each.get("version", ""))) for each in made]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []  # the reader of that file reports what is wrong with it
