"""What `simplellmfunc doctor` looks at; it never shows a key."""

from __future__ import annotations

import http.client
import platform
import re
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata

from SimpleLLMFunc.cli.show import Row
from SimpleLLMFunc.config import Settings
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.request import check_base_url, endpoint
from SimpleLLMFunc.interface.secret_parts import Address
from SimpleLLMFunc.interface.weights import KNOWN_WEIGHTS, Weights, find_weights
from SimpleLLMFunc.logger.redact import redact, remember_secret

__all__ = ["findings"]

_DISTRIBUTION = "SimpleLLMFunc"
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra == ['\"]([^'\"]+)['\"]")
_FOR_DEVELOPERS = {"dev", "all"}
_SECONDS = 10.0


def findings(*, online: bool = False) -> Iterator[Row]:
    """Yield what there is to say about Python, packages, weights, model and key.

    Args:
        online: also see whether the model's address answers; otherwise nothing leaves this machine.
    """
    yield "ok", "Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})"
    yield from _packages()
    for weights in KNOWN_WEIGHTS.values():
        yield _weights(weights)
    settings = Settings.from_environment()
    has_key = settings.openai_api_key is not None
    remember_secret(settings.openai_api_key or "")  # it may stand in the wrong variable as well
    yield "ok" if has_key else "no", "OPENAI_API_KEY", "set" if has_key else "not set"
    llm: LLM_Interface | None = None
    try:
        llm = resolve_llm(None)
    except ConfigError as error:
        if settings.model is not None:
            yield "bad", "model", str(error)
        else:
            yield "no", "model", "none by default: SIMPLELLMFUNC_MODEL is not set. A function asks the one it is given."
    else:
        said = f"{llm.model_name} ({llm.provider}), because SIMPLELLMFUNC_MODEL is {settings.model!r}"
        yield "ok", "model", redact(said)
    if online:
        yield _endpoint(llm)


def _packages() -> Iterator[Row]:
    yield _package(_DISTRIBUTION, _DISTRIBUTION)
    extras: defaultdict[str, list[str]] = defaultdict(list)
    for line in _requirements():
        name = _REQUIREMENT.match(line)
        extra = _EXTRA.search(line)
        if name is None:
            continue
        if extra is None:
            yield _package(name.group(), name.group())
        elif extra.group(1) not in _FOR_DEVELOPERS:
            extras[extra.group(1)].append(name.group())
    for extra_name, names in extras.items():
        missing = [name for name in names if _version(name) is None]
        if missing:
            line = f'pip install "{_DISTRIBUTION}[{extra_name}]"'
            yield "no", f"extra {extra_name}", f"{', '.join(missing)} not installed: {line}"
        else:
            yield "ok", f"extra {extra_name}", ", ".join(f"{name} {_version(name)}" for name in names)


def _requirements() -> list[str]:
    try:
        return metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []  # run from a copy of the sources that was never installed


def _package(title: str, name: str) -> Row:
    version = _version(name)
    return ("bad", title, "not installed") if version is None else ("ok", title, version)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _weights(weights: Weights) -> Row:
    title = f"weights {weights.name}"
    try:
        found = find_weights(weights)
    except ConfigError as error:
        return "bad", title, str(error)
    if found is not None:
        return "ok", title, f"{found}, checksum right"
    path = weights.path()
    if path.exists():
        return "bad", title, f"{path} is damaged; fetch it again: simplellmfunc model pull"
    return "no", title, "not here; fetched at first use, or by: simplellmfunc model pull"


def _endpoint(llm: LLM_Interface | None) -> Row:
    address = llm.base_url if llm is not None else Settings.from_environment().openai_base_url
    if address is None:
        where = "the model is inside this process" if llm is not None else "no model and no OPENAI_BASE_URL"
        return "no", "address", f"none to try: {where}"
    try:
        address = Address(check_base_url(address)).shown
    except ConfigError as error:
        return "bad", "address", f"{redact(address)} is not an http address that can be used: {error}"
    shown = redact(address)
    try:
        # Without the key: whether it is right costs nothing to find out by a call, and is not asked here.
        with urllib.request.urlopen(endpoint(address, "/models"), timeout=_SECONDS) as reply:  # noqa: S310 - checked above
            status = reply.status
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return "bad", "address", f"{shown} cannot be reached: {redact(str(error))}"
    return "ok", "address", f"{shown} answers (status {status})"
