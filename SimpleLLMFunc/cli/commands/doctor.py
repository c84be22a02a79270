"""`simplellmfunc doctor`: check the installation and advise; never shows a key."""

from __future__ import annotations

import asyncio
import http.client
import os
import platform
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, get_args
from urllib.request import getproxies_environment

import click

from SimpleLLMFunc.cli.output import State, echo_json, output_encoding, show_rows
from SimpleLLMFunc.config import Settings, clean_key, file_path, read_provider_file
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, counted, cut
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.interface.attempts import HttpModel
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.http import Address
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.local import KNOWN_WEIGHTS, Weights, find_weights
from SimpleLLMFunc.interface.wires import CHAT, check_base_url, endpoint
from SimpleLLMFunc.logger import escape_control, redact, remember_secret
from SimpleLLMFunc.observability.store import TraceReader

_DISTRIBUTION = "SimpleLLMFunc"
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra == ['\"]([^'\"]+)['\"]")
_PLATFORM = re.compile(r"sys_platform == ['\"]([^'\"]+)['\"]")
_FOR_DEVELOPERS = {"dev", "dev-heavy", "all"}
_SECONDS = 10.0
_MAKERS = {
    "OPENAI_API_KEY": "OpenAICompatible",
    "ANTHROPIC_API_KEY": "Anthropic",
    "GOOGLE_API_KEY": "Gemini",
    "GEMINI_API_KEY": "Gemini, where GOOGLE_API_KEY is not set",
}
_KEYS = (*_MAKERS, "TAVILY_API_KEY")
_ADDRESSES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
_SETTINGS = (*_ADDRESSES, "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "SIMPLELLMFUNC_MODEL_DIR")
_MODELS = "local, openai:NAME, anthropic:NAME, gemini:NAME or FILE.json:PROVIDER/NAME"
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class Finding(NamedTuple):
    """The result of one check.

    Attributes:
        state: "ok"; "no": missing, which is allowed; "bad": wrong.
        name: of the check.
        text: the facts.
        next: advice; never empty where the state is "bad".
    """

    state: State
    name: str
    text: str
    next: str = ""


_ok, _no, _bad = (partial(Finding, state) for state in get_args(State))


@click.command(short_help="What is set up, what is not, what to do.")
@click.option("--online", is_flag=True, help="See whether the model's address answers, too; no key is sent.")
@click.option("--call", "calls", is_flag=True, help="Ask the model for one word, too; it costs a fraction of a cent.")
@click.option("--json", "as_data", is_flag=True, help="Print JSON: checks (state, name, text, next) and problems.")
@click.pass_context
def doctor(ctx: click.Context, *, online: bool, calls: bool, as_data: bool) -> None:
    """Look at versions, extras, keys, proxies, certificates and model; never shows a key.

    Nothing leaves this machine without --online or --call. Every problem comes with its next move; the exit code is 1 if
    there is one, else 0.
    """
    found = list(findings(online=online, calls=calls))
    problems = sum(each.state == "bad" for each in found)
    if as_data:
        echo_json({"checks": [each._asdict() for each in found], "problems": problems})
    else:
        show_rows([(each.state, each.name, each.text + (f"  -> {each.next}" if each.next else "")) for each in found])
        if problems:
            click.echo(f"{counted(problems, 'problem')}.", err=True)
    if problems:
        ctx.exit(1)


def findings(*, online: bool = False, calls: bool = False) -> Iterator[Finding]:
    """Yield the results of all checks, without keys.

    Args:
        online: also request the model's address; otherwise nothing leaves this machine.
        calls: also ask the model.
    """
    for name in _KEYS:
        remember_secret(os.environ.get(name, ""))  # another variable may hold the key by mistake
    for each in _all(online=online, calls=calls):
        yield each._replace(text=escape_control(redact(each.text)), next=escape_control(redact(each.next)))


def _all(*, online: bool, calls: bool) -> Iterator[Finding]:
    yield _python()
    yield from _packages()
    for weights in KNOWN_WEIGHTS.values():
        yield _weights(weights)
    for name in _KEYS:
        yield _key(name)
    for name in _SETTINGS:
        if value := os.environ.get(name, "").strip():
            yield _ok(name, Address(value).shown if "://" in value else value)
    settings = Settings.from_environment()
    yield _provider_file(settings)
    llm, model = _model(settings)
    yield model
    yield _traces(settings)
    yield from _network()
    if online:
        yield _endpoint(llm)
    if calls:
        yield _call(llm)


# --- this machine -----------------------------------------------------------------------------------------


def _python() -> Finding:
    text = f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})"
    encoding = output_encoding()
    if encoding.replace("-", "").replace("_", "") != "utf8":
        return _no("Python", f"{text}, writes {encoding}", "set PYTHONUTF8=1, so that every answer can be printed")
    return _ok("Python", text)


def _packages() -> Iterator[Finding]:
    yield _package(_DISTRIBUTION)
    extras: defaultdict[str, list[str]] = defaultdict(list)
    requirements: list[str] = []
    with suppress(metadata.PackageNotFoundError):  # run from a copy of the sources that was never installed
        requirements = metadata.requires(_DISTRIBUTION) or []
    for line in requirements:
        name, extra, platform_only = _REQUIREMENT.match(line), _EXTRA.search(line), _PLATFORM.search(line)
        if name is None or (platform_only and platform_only[1] != sys.platform):
            continue
        if extra is None:
            yield _package(name[0])
        elif extra[1] not in _FOR_DEVELOPERS:
            extras[extra[1]].append(name[0])
    for extra_name, names in extras.items():
        title, versions = f"extra {extra_name}", {name: _version(name) for name in names}
        if missing := [name for name, version in versions.items() if version is None]:
            yield _no(title, f"{', '.join(missing)} not installed", install_line(extra_name))
        else:
            yield _ok(title, ", ".join(f"{name} {version}" for name, version in versions.items()))


def _package(name: str) -> Finding:
    version = _version(name)
    line = install_line() if name == _DISTRIBUTION else f"pip install {name}"
    return _bad(name, "not installed", line) if version is None else _ok(name, version)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _weights(weights: Weights) -> Finding:
    title, pull = f"weights {weights.name}", f"simplellmfunc model pull {weights.name}"
    try:
        found = find_weights(weights)
    except ConfigError as error:
        return _bad(title, str(error), f"make the file readable, or delete it and run {pull}")
    if found is not None:
        return _ok(title, f"{found}, checksum right")
    if (path := weights.path()).exists():
        return _bad(title, f"{path} is damaged", pull)
    return _no(title, "not here; fetched at first use", pull)


# --- what is set up ---------------------------------------------------------------------------------------


def _key(name: str) -> Finding:
    value = os.environ.get(name, "").strip()
    if not value:
        advice = f"set it to the key of your provider, for {_MAKERS[name]}" if name in _MAKERS else ""
        return _no(name, "not set", advice)
    try:
        clean_key(value, name)
    except ConfigError as error:
        return _bad(name, str(error), "copy the key again, without line breaks and quotation marks")
    if value[0] in "\"'":
        return _bad(name, "set, with quotation marks around it", "set it without them")
    return _ok(name, f"set (***, {len(value)} characters)")


def _provider_file(settings: Settings) -> Finding:
    name = "provider file"
    named, colon, _ = (settings.model or "").partition(".json:")
    path = Path(os.path.expanduser(f"{named}.json" if colon else "provider.json"))  # noqa: PTH111 - as `file_path` has it
    if not colon and not path.is_file():
        return _no(name, "SIMPLELLMFUNC_MODEL names none, and there is no provider.json here")
    where = str(path.absolute())
    try:
        providers = read_provider_file(path)
    except FileNotFoundError:
        return _bad(name, f"{where} is not there", "correct SIMPLELLMFUNC_MODEL, or write the file")
    except (ConfigError, OSError) as error:
        return _bad(name, str(error), f"correct {where}")
    entries = [entry for each in providers.values() for entry in each]
    keys = [key for entry in entries for key in entry.api_keys]
    for key in keys:
        remember_secret(key)
    counts = (counted(len(providers), "provider"), counted(len(entries), "model"), counted(len(keys), "key"))
    text = f"{where}: {', '.join(counts)} (***)"
    if os.name == "posix" and keys and path.stat().st_mode & 0o044:
        return _no(name, f"{text}; others may read it", f"chmod 600 {where}")
    return _ok(name, text)


def _model(settings: Settings) -> tuple[LLM_Interface | None, Finding]:
    try:
        llm = resolve_llm(None)
    except ConfigError as error:
        if settings.model is not None:
            return None, _bad("model", str(error), f"set SIMPLELLMFUNC_MODEL to {_MODELS}")
        text = "none by default: SIMPLELLMFUNC_MODEL is not set. A function asks the one it is given."
        return None, _no("model", text)
    if isinstance(llm, HttpModel):
        try:
            llm._keys.key()  # noqa: SLF001 - as its calls do
        except ConfigError as error:
            return llm, _bad("model", str(error), f"set {llm._keys.variable}")  # noqa: SLF001 - see above
    return llm, _ok("model", f"{llm.model_name} ({llm.provider}), because SIMPLELLMFUNC_MODEL is {settings.model!r}")


def _traces(settings: Settings) -> Finding:
    if settings.trace is None:
        return _no("traces", "SIMPLELLMFUNC_TRACE is not set: runs are kept nowhere")
    try:
        path = file_path(settings.trace)
        if not path.exists():
            return _ok("traces", f"{path.absolute()}, made when a function runs")
        count = TraceReader(path).count(most=1_000_000)
    except ConfigError as error:
        return _bad("traces", str(error), "set SIMPLELLMFUNC_TRACE to another path")
    return _ok("traces", f"{path.absolute()}: {counted(count, 'run')}, {path.stat().st_size / 1e6:.1f} MB")


# --- the network ------------------------------------------------------------------------------------------


def _network() -> Iterator[Finding]:
    proxies = {name: value for name, value in getproxies_environment().items() if value}
    if not proxies:
        yield _ok("proxy", "none in HTTP_PROXY, HTTPS_PROXY, ALL_PROXY")
    for scheme, address in proxies.items():
        name, shown = f"proxy {scheme}", address if scheme == "no" else Address(address).shown
        if scheme == "no" or address.partition("://")[0].lower() in {"http", "https", address.lower()}:
            yield _ok(name, shown)
        else:
            advice = f"unset {scheme.upper()}_PROXY, or name another"
            yield _bad(name, f"{shown}: only http and https proxies are supported", advice)
    named = {name: value for name in _CERTIFICATES if (value := os.environ.get(name, ""))}
    if not named:
        yield _ok("certificates", f"those of this system, {ssl.OPENSSL_VERSION}")
    for name, value in named.items():
        yield _trust(name, Path(value))


def _trust(name: str, path: Path) -> Finding:
    if not (path.is_file() if name.endswith("FILE") else path.is_dir()):
        return _bad(name, f"{path} is not there", f"unset {name}, or name the certificates of your network")
    try:
        if path.is_file():
            ssl.create_default_context(cafile=path)
    except (ssl.SSLError, OSError) as error:
        return _bad(name, f"{path} holds no certificates: {error}", f"unset {name}, or name a PEM file")
    return _ok(name, str(path))


def _endpoint(llm: LLM_Interface | None) -> Finding:
    name = "address"
    address = llm.base_url if llm is not None else Settings.from_environment().openai_base_url
    if address is None:
        where = "the model is inside this process" if llm is not None else "no model and no OPENAI_BASE_URL"
        return _no(name, f"none to try: {where}")
    try:
        address = Address(check_base_url(address)).shown
    except ConfigError as error:
        return _bad(name, f"{address} is not an http address that can be used: {error}", "write https://host/v1")
    wire = llm.wire if isinstance(llm, HttpModel) else CHAT
    try:
        # Without the key, which --call checks.
        with urllib.request.urlopen(endpoint(address, wire.models_path), timeout=_SECONDS) as reply:  # noqa: S310 - checked above
            status = reply.status
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        advice = "look at the address, HTTPS_PROXY and SSL_CERT_FILE, and whether the service runs there"
        return _bad(name, f"{address} cannot be reached: {error}", advice)
    return _ok(name, f"{address} answers (status {status})")


def _call(llm: LLM_Interface | None) -> Finding:
    if llm is None:
        return _bad("call", "there is no model to ask", f"set SIMPLELLMFUNC_MODEL to {_MODELS}")
    started = time.monotonic()
    asked = llm.chat([{"role": "user", "content": "Answer with the one word: ready"}], max_tokens=20, deadline=120.0)
    try:
        reply = asyncio.run(asked)
    except SimpleLLMFuncError as error:
        advice = "the text says what to do; --online looks at the address"
        return _bad("call", f"{type(error).__name__}: {error}", advice)
    said, tokens = cut(reply.text.strip(), 60), 0 if reply.usage is None else reply.usage.total_tokens
    return _ok("call", f"{llm.model_name} answered {said!r} in {time.monotonic() - started:.1f} s, {tokens} tokens")
