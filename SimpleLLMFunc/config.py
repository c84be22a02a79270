"""Settings from the environment and from a provider file, read once and passed on; and what to say when they lack."""

from __future__ import annotations

import errno
import ipaddress
import json
import locale
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from SimpleLLMFunc.errors import ConfigError, cut, did_you_mean
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.utils import refuse_constant

MODEL_FORMS = (
    "openai:gpt-5-mini, anthropic:claude-sonnet-5-5, gemini:gemini-3.8-flash, local, provider.json:openai/gpt-5-mini"
)
"""The forms of SIMPLELLMFUNC_MODEL."""


# --- the environment ---------------------------------------------------------------------------------------


def _variable(name: str, *, is_secret: bool = False) -> Any:
    return field(default=None, repr=not is_secret, metadata={"variable": name})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the environment; None for a variable that is not set, or blank.

    The address is in no repr: it may hold a password.
    """

    openai_base_url: str | None = _variable("OPENAI_BASE_URL", is_secret=True)
    openai_organization: str | None = _variable("OPENAI_ORG_ID")
    openai_project: str | None = _variable("OPENAI_PROJECT_ID")
    model: str | None = _variable("SIMPLELLMFUNC_MODEL")
    model_dir: str | None = _variable("SIMPLELLMFUNC_MODEL_DIR")
    trace: str | None = _variable("SIMPLELLMFUNC_TRACE")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read `environ`, by default the process's own, as it stands now."""
        environ = os.environ if environ is None else environ
        return cls(*(environ.get(each.metadata["variable"], "").strip() or None for each in fields(cls)))


def file_path(path: Any, what: str = "path") -> Path:
    """Return the path of a file that a user gave; "~" is the home folder, as in a shell.

    Args:
        path: as it was given.
        what: the user's word for it, for the error.

    Raises:
        ConfigError: it is no path, no file can have this name, or it begins with "~name/" and there is no such user.
    """
    place = ""
    with suppress(TypeError, ValueError, OSError):
        place = os.path.expanduser(path)  # noqa: PTH111 - "~$a.csv" is a name too
        found = Path(place)
        # File systems have names of at most 255 bytes, on Windows characters; "/" is no file.
        fits = all(len(part if os.name == "nt" else os.fsencode(part)) < 256 for part in found.parts)
        if place.strip("/") and fits and b"\0" not in os.fsencode(place) and (place[0] != "~" or found.parent.is_dir()):
            # Path drops "./", and the next door would take "~name" for a home folder.
            return found.absolute() if place[0] != "~" and str(found)[0] == "~" else found
    hint = ' "~name" is the home folder of a user, and there is no user of this name.' if place[:1] == "~" else ""
    shown = cut(repr(str(path) if isinstance(path, Path) else path), 200)
    raise ConfigError(f"{what} is the path of a file, not {shown}.{hint}")


def real_path(path: Any, what: str = "path") -> Path:
    """Return where a file lies that a user gave: absolute, and what a link leads to; of links in a circle, one of them.

    Raises:
        ConfigError: as `file_path`.
    """
    return Path(os.path.realpath(file_path(path, what)))  # Path.resolve() raises RuntimeError for a circle


def file_to_write(path: str | os.PathLike[str]) -> Path:
    """Return the path if a file can be written there, as far as its folder tells.

    Raises:
        ConfigError: the folder is missing, or it is no regular file.
    """
    place = file_path(path)
    try:
        if place.exists() and not place.is_file():  # a file would replace a device or a pipe
            raise ConfigError(f"{str(place)!r} is a folder, a device or a pipe. Give the path of a file.")
        if not place.absolute().parent.is_dir():
            raise ConfigError(f"there is no folder {str(place.parent)!r}. Make it first.")
    except OSError as error:
        raise ConfigError(f"{str(place)!r} cannot be written: {error.strerror}.") from error
    return place


def json_of_file(path: str | os.PathLike[str], what: str) -> Any:
    """Return the data of a JSON file that we wrote; `what` it should be is said in the error.

    Raises:
        ConfigError: there is no such file, or it is no JSON.
    """
    place = file_path(path)
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{str(place)!r} cannot be read as {what} ({error}).") from error


def clean_key(value: object, where: str) -> str:
    """Return the key without the blanks and line ends that copying leaves around it.

    Raises:
        ConfigError: it is no text, empty, or holds characters that no HTTP header may hold; names `where`, never the key.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{where}: a key is a text, not {type(value).__name__}.")
    key = value.strip()
    if not key:
        raise ConfigError(f"{where}: the key is empty.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"{where}: the key holds blanks, control characters or letters outside of ASCII, which no HTTP header may "
            "hold. Copy it again."
        )
    return key


def http_address(text: object) -> SplitResult | None:
    """Return the parts of an http or https address with a host; None for all else."""
    try:
        parts = urlsplit(text.strip()) if isinstance(text, str) else None
        fits = parts is not None and parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if fits else None


def is_local_address(base_url: str | None) -> bool:
    """Return whether `base_url` leads to this machine or its private network, where services mostly take no key."""
    try:
        host = urlsplit(base_url or "").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and "." not in host  # a name without a dot is resolved in this network only
    return address.is_loopback or address.is_private


# --- what to say when nothing is set up --------------------------------------------------------------------


def speaks_chinese() -> bool:
    """Return whether messages are to speak Chinese: as ``SIMPLELLMFUNC_LANG`` says, else as the locale does."""
    variables = ("SIMPLELLMFUNC_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    said = next((value for name in variables if (value := os.environ.get(name, "").strip())), None)
    return (said or locale.getlocale()[0] or "").lower().startswith(("zh", "chinese"))


def missing_model_message() -> str:
    """Return what a user reads whose function has no model: what was looked at, the line to write, the offline way."""
    if speaks_chinese():
        return (
            "没有可用的模型。已经查找过：调用处外层的 `with use_llm(llm):`、函数自己的 llm_interface（助手和 Call 的 llm）、环境变量 SIMPLELLMFUNC_MODEL，"
            '都没有给出模型。请写 @llm_function(llm_interface=OpenAICompatible("gpt-5-mini")) 并设置 OPENAI_API_KEY，'
            f"或设置 SIMPLELLMFUNC_MODEL=openai:gpt-5-mini。没有密钥时：先 {install_line('local')}，再用 "
            "llm_interface=LocalModel() 或 SIMPLELLMFUNC_MODEL=local，命令行上用 --model local；第一次调用会下载权重（93 MB），只下载一次。"
        )
    return (
        "No model to ask. Looked at: `with use_llm(llm):` around the call, the function's own llm_interface (the llm of an "
        "assistant or a Call), and the environment variable SIMPLELLMFUNC_MODEL; none of them names one. Write "
        '@llm_function(llm_interface=OpenAICompatible("gpt-5-mini")) with OPENAI_API_KEY set, or set '
        "SIMPLELLMFUNC_MODEL=openai:gpt-5-mini. Without a key: llm_interface=LocalModel(), or "
        "SIMPLELLMFUNC_MODEL=local, or --model local on the command line, after "
        f"{install_line('local')}; the first call downloads its weights (93 MB), once."
    )


def missing_key_message(
    model_name: str, base_url: str | None = None, variables: Sequence[str] = ("OPENAI_API_KEY",)
) -> str:
    """Return what a user reads whose model has no key: what was looked at, the line to write, the offline way.

    `base_url` is shown as it is: give it without a login and a query.
    """
    names, made = ", ".join(variables), _MADE_BY.get(variables[0], "OpenAICompatible")
    address = base_url or ""
    if speaks_chinese():
        return (
            f"模型 {model_name}{f'（{address}）' if address else ''} 没有密钥。已经查找过：api_key、api_key_pool、环境变量 "
            f'{names}，都是空的。请写 {made}("{model_name}", api_key=…)，或设置 {variables[0]}。'
            f"没有密钥时：先 {install_line('local')}，再用 LocalModel() 或 SIMPLELLMFUNC_MODEL=local；"
            "第一次调用会下载权重（93 MB），只下载一次。"
        )
    return (
        f"No key for {model_name}{f' at {address}' if address else ''}. Looked at: api_key, api_key_pool, and the "
        f'environment variable {" or ".join(variables)}; all of them are empty. Write {made}("{model_name}", '
        f"api_key=…), or set {variables[0]}. Without a key: LocalModel(), or SIMPLELLMFUNC_MODEL=local, "
        f"after {install_line('local')}; the first call downloads its weights (93 MB), once."
    )


_MADE_BY = {"ANTHROPIC_API_KEY": "Anthropic", "GOOGLE_API_KEY": "Gemini"}


# --- the provider file -------------------------------------------------------------------------------------


class ProviderEntry(BaseModel):
    """One model of one provider, as `ServiceModel` takes it; `api_keys` are ready to use.

    They are in no repr, nor is what may hold a secret as well: the address and the headers among `api_params`.
    """

    model_config = ConfigDict(
        defer_build=True,  # few programs have a provider file, and all of them import this
        extra="forbid",
        frozen=True,
        strict=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    model_name: Annotated[str, Field(min_length=1)]
    api_keys: Annotated[list[str], Field(repr=False)] = []
    base_url: Annotated[str | None, Field(repr=False)] = None
    max_retries: Annotated[int, Field(ge=0, le=100)] = 2
    retry_delay: Annotated[float, Field(ge=0, le=3600)] = 0.5
    rate_limit_capacity: Annotated[float, Field(gt=0)] | None = None
    rate_limit_refill_rate: Annotated[float, Field(gt=0)] | None = None
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    tokens_per_minute: Annotated[float, Field(gt=0)] | None = None
    context_window: Annotated[int, Field(gt=0)] | None = None
    api_params: Annotated[dict[str, Any], Field(repr=False)] = {}
    wire: Literal["chat", "responses", "messages", "gemini"] | None = None


def read_provider_file(
    path: str | os.PathLike[str], environ: Mapping[str, str] | None = None
) -> dict[str, list[ProviderEntry]]:
    """Read ``{provider: [{model_name, api_keys, base_url, …}]}`` and return its entries by provider, in their order.

    ``${NAME}`` in a key is replaced by that variable of `environ`, by default the process's own. `api_keys` may be
    missing or empty only where `base_url` is local.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: anything else that is wrong with it; names provider, entry and field, never a key.
    """
    file = os.fspath(path)
    data, problem = _parse(_read_text(file_path(path)), file), None
    providers: dict[str, list[ProviderEntry]] = {}
    try:
        providers = TypeAdapter(dict[str, list[ProviderEntry]]).validate_python(data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if problem is not None:  # outside of the except block: the error of pydantic holds what was read, keys included
        raise ConfigError(f"{place_in_file(file, problem['loc'])}: {_problem(**problem)}")
    environ = os.environ if environ is None else environ
    return {name: _checked_provider(file, name, entries, environ) for name, entries in providers.items()}


def _read_text(path: Path) -> str:
    problem, is_missing = "this is not a file", False
    try:
        if path.is_file():
            return path.read_bytes().decode("utf-8-sig")
        is_missing = not path.exists()
    except OSError as error:
        problem = str(error)
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 (byte {error.start})"
    if is_missing:
        raise FileNotFoundError(errno.ENOENT, "there is no such provider file", os.fspath(path))
    # Outside of the except block: the error of the decoder holds the whole file, keys included.
    raise ConfigError(f"{path}: the provider file cannot be read: {problem}.")


def _parse(text: str, file: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        problem = str(error)
    # Outside of the except block: the error of the parser holds the whole file, keys included.
    raise ConfigError(f"{file}: this is not JSON: {problem}. Correct the file at that place.")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{_shown(twice, 'name')} stands twice in one object")
    return result


def place_in_file(file: str, place: Sequence[int | str]) -> str:
    """Name a place in the file: provider, entry, field and item, as far as it goes."""
    named = [
        f"{kind} {part + 1}" if isinstance(part, int) else _shown(part, kind)
        for kind, part in zip(("provider", "entry", "field", "item"), place, strict=False)
    ]
    return f"{file}: {', '.join(named)}" if named else file


def _problem(type: str, msg: str, loc: tuple[int | str, ...], **_: Any) -> str:  # noqa: A002 - pydantic's words
    if type == "extra_forbidden":
        known = ProviderEntry.model_fields
        return f"there is no such field.{did_you_mean(str(loc[2]), known)} Known: {', '.join(known)}."
    return (
        "it is missing." if type == "missing" else f"{msg}. The file holds {{provider: [{{model_name, api_keys, …}}]}}."
    )


def _checked_provider(
    file: str, provider: str, entries: list[ProviderEntry], environ: Mapping[str, str]
) -> list[ProviderEntry]:
    names = [entry.model_name for entry in entries]
    for number, name in enumerate(names):
        if (first := names.index(name)) < number:
            where = place_in_file(file, (provider, number, "model_name"))
            raise ConfigError(f"{where}: {name!r} is in entry {first + 1} already. Put all its keys into one entry.")
    return [_checked(file, (provider, number), entry, environ) for number, entry in enumerate(entries)]


_ADDRESS_IN = {"messages": "ANTHROPIC_BASE_URL", "gemini": "GOOGLE_GEMINI_BASE_URL"}
"""The variables of the wires that are not OpenAI's, for entries without an address."""


def _checked(file: str, place: tuple[str, int], entry: ProviderEntry, environ: Mapping[str, str]) -> ProviderEntry:
    if entry.base_url is not None and http_address(entry.base_url) is None:
        where = place_in_file(file, (*place, "base_url"))
        raise ConfigError(f"{where}: this is not an address. It must look like https://host/v1.")
    address = entry.base_url or environ.get(_ADDRESS_IN.get(entry.wire or "", "OPENAI_BASE_URL"))
    if not entry.api_keys and not is_local_address(address):
        where = place_in_file(file, (*place, "api_keys"))
        raise ConfigError(f"{where}: there is no key. Give at least one, or ${{ENV_NAME}}.")
    if (entry.rate_limit_capacity is None) != (entry.rate_limit_refill_rate is None):
        lacking = "rate_limit_capacity" if entry.rate_limit_capacity is None else "rate_limit_refill_rate"
        where = place_in_file(file, (*place, lacking))
        raise ConfigError(f"{where}: it is missing. Capacity and refill rate only make sense together.")
    keys = []
    for number, key in enumerate(entry.api_keys):
        where = place_in_file(file, (*place, "api_keys", number))
        keys.append(clean_key(_filled(where, key, environ), where))
    return entry.model_copy(update={"api_keys": keys})


_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _filled(where: str, key: str, environ: Mapping[str, str]) -> str:
    if "${" in _PLACEHOLDER.sub("", key):
        raise ConfigError(f"{where}: a variable is written ${{NAME}}, with letters, digits and underscores.")
    for name in _PLACEHOLDER.findall(key):
        if not environ.get(name, "").strip():
            raise ConfigError(f"{where}: the environment variable {name} is not set. Set it, or write the key itself.")
    return _PLACEHOLDER.sub(lambda found: environ[found[1]].strip(), key)


_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}")
"""Long, and of letters and digits: no name, but perhaps a key."""


def _shown(name: str, kind: str) -> str:
    """Return how a name from the file is shown: one that is no plain word may be a misplaced key, and is not shown."""
    plain = re.fullmatch(r"[\w .-]{1,40}", name) and not re.match(r"(sk|pk|rk)[-_]", name) and not _RANDOM.search(name)
    return f"{kind} {name!r}" if plain else f"a {kind} that is no plain name"
