"""Attributes of a model, a request and a tool, under the names of `Attribute`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from SimpleLLMFunc.base.metadata import RunMetadata
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.observability.otel.semconv import Attribute
from SimpleLLMFunc.utils import is_number

_IN_PROCESS = frozenset({"local", "scripted", "batch"})
"""Providers whose models run in this process, or read an answer that is already here."""


def known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None and value != ""}


def address(llm: LLM_Interface) -> dict[str, Any]:
    """Return host and port of a model; empty where it has no address."""
    if not llm.base_url:
        return {}
    parts = urlsplit(llm.base_url)
    try:
        port = parts.port
    except ValueError:
        port = None
    port = port or {"https": 443, "http": 80}.get(parts.scheme)
    return known({Attribute.SERVER_ADDRESS: parts.hostname, Attribute.SERVER_PORT: port})


def is_in_process(llm: LLM_Interface) -> bool:
    """Say whether a model runs in this process: then its span is not a client span."""
    if llm.members:
        return all(map(is_in_process, llm.members))
    return llm.base_url is None and llm.provider in _IN_PROCESS


def request_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request that the conventions name; values of another type are left out."""
    numbers = {
        Attribute.REQUEST_TEMPERATURE: params.get("temperature"),
        Attribute.REQUEST_TOP_P: params.get("top_p"),
        Attribute.REQUEST_MAX_TOKENS: params.get("max_tokens", params.get("max_completion_tokens")),
        Attribute.REQUEST_SEED: params.get("seed"),
    }
    told: dict[str, Any] = {name: value for name, value in numbers.items() if is_number(value)}
    stop = params.get("stop")
    stops = [stop] if isinstance(stop, str) else stop
    if isinstance(stops, (list, tuple)) and stops:
        told[Attribute.REQUEST_STOP] = list(map(str, stops))
    return told


def described(about: RunMetadata, name: str) -> str:
    """Return the description of a tool that the model reads."""
    functions = (tool.get("function") or {} for tool in about.function.tools)
    return next((str(each.get("description") or "") for each in functions if each.get("name") == name), "")
