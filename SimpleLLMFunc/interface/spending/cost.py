"""What a Usage costs in USD, told by the `genai-prices` package (extra `cost`), whose prices are in its wheel.

A price is looked up by the provider and by the model that the reply names, else the one that was asked for. None
means unknown: the extra is missing, or the model is in no list.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import starmap
from typing import Any

from SimpleLLMFunc.config import is_local_address
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.logger import push_warning, shown_error
from SimpleLLMFunc.runtime import importing
from SimpleLLMFunc.type import Usage

_SAME = "anthropic azure deepseek fireworks groq mistral openai openrouter together"
_OTHER = {"gemini": "google", "moonshot": "moonshotai", "xai": "x-ai", "zhipu": "zhipuai"}
_THEIR_NAMES = {name: name for name in _SAME.split()} | _OTHER
"""Our names of providers, and those of the price list."""

_FREE = frozenset({"local", "ollama"})
"""Providers that compute on the user's own machine."""

_NOT_LISTED = frozenset({"qwen", "siliconflow", "volcengine"})
"""Known services without prices in the list; the maker's price of a model is not theirs."""

_CLOSED_WEIGHTS = ("chatgpt", "claude", "gemini", "gpt-", "grok", "o1", "o3", "o4")
_OPEN_WEIGHTS = ("gpt-oss",)


def price_of(usage: Usage, model: str, provider: str = "", base_url: str | None = None) -> float | None:
    """Return what `usage` costs in USD, None when that is not known.

    Behind an address that is in no list (a gateway, a double) a model counts what its maker takes. On this machine
    and its network, only models with closed weights count so.

    The first call imports the prices, for about 0.3 s; `load_prices` does so off the event loop.

    Args:
        usage: cached tokens and those written into the cache count by their own prices, reasoning tokens as output.
        model: as the service calls it.
        provider: our name of who serves it.
        base_url: where it is reached.
    """
    if provider in _FREE and not model.endswith("cloud"):  # Ollama passes its models named -cloud on
        return 0.0
    if not _may_be_listed(model, provider, base_url) or _genai_prices() is None:
        return None
    try:
        return _calculated(usage, model, provider, base_url)
    except (LookupError, ValueError, ArithmeticError):
        return None


def _may_be_listed(model: str, provider: str, base_url: str | None) -> bool:
    """Whether a look into the list is worth its import, which takes 0.3 s and 3 MB."""
    # "scripted" is the name that doubles have by default.
    if not model or model == "scripted" or provider in _NOT_LISTED or provider in _FREE:
        return False
    if provider in _THEIR_NAMES or not is_local_address(base_url):
        return True
    name = model.lower().rpartition("/")[2]
    return name.startswith(_CLOSED_WEIGHTS) and not name.startswith(_OPEN_WEIGHTS)


def _calculated(usage: Usage, model: str, provider: str, base_url: str | None) -> float:
    """Return the price that the package calculates; a LookupError where its list has none."""
    prices = _genai_prices()
    # Some services count wrongly, and the package refuses counts that do not add up.
    read, written = max(usage.input_tokens, 0), max(usage.output_tokens, 0)
    cached = min(max(usage.cached_tokens, 0), read)
    spent = prices.Usage(
        input_tokens=read,
        cache_read_tokens=cached,
        cache_write_tokens=min(max(usage.cache_write_tokens, 0), read - cached),
        output_tokens=written,
        output_reasoning_tokens=min(max(usage.reasoning_tokens, 0), written),
    )

    def price(name: str, **where: str | None) -> float:
        return float(prices.calc_price(spent, name, **where).total_price)

    if provider in _THEIR_NAMES:
        return price(model, provider_id=_THEIR_NAMES[provider])
    if base_url is not None and not is_local_address(base_url):
        with suppress(LookupError):  # an address that the list does not know
            return price(model, provider_api_url=base_url)
    maker, slash, name = model.partition("/")
    return price(name, provider_id=maker) if slash else price(model)  # openai/gpt-4o, as gateways call it


@cache
def _genai_prices() -> Any:
    """Return the package, None where it is not installed."""
    try:
        import genai_prices

        with suppress(LookupError):  # the first question loads its data
            genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gpt-4o", provider_id="openai")
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - a broken package must not break the call that it would price
        push_warning(f"genai-prices cannot be used, so no cost is known: {shown_error(error)}")
        return None
    return genai_prices


async def import_prices(models: Iterable[tuple[str, str, str | None]]) -> None:
    """Import the prices in a worker thread, unless they are there, or none of the models is listed.

    Args:
        models: of each the name, the provider and the address.
    """
    if not _genai_prices.cache_info().currsize and any(starmap(_may_be_listed, models)):
        await importing(_genai_prices)


def unpriced(names: str) -> ConfigError:
    """Return the error for a limit in USD on models whose prices are not known."""
    way_out = (
        f"Install genai-prices, which may know it: {install_line('cost')}. Or limit"
        if _genai_prices() is None
        else "The installed genai-prices does not list it. Update that, or limit"
    )
    return ConfigError(
        f"budget(usd=…) cannot be kept: the price of {names} is not known. {way_out} tokens instead: budget(tokens=…)."
    )
