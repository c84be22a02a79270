"""The page at the root of the server: the functions and how to call them, in plain HTML: ``page.html`` next to this file."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from jinja2 import Template

from SimpleLLMFunc.base.type_resolve import generate_example_object, get_detailed_type_description
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.serve.offer import Offer

PAGE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
"""The browser may load nothing for it."""

_PAGE: Final = Template(files("SimpleLLMFunc.serve").joinpath("page.html").read_text("utf-8"), autoescape=True)


def page_of(offers: Mapping[str, Offer], title: str, address: str, *, needs_key: bool) -> str:
    """Return the page.

    Args:
        offers: by name; empty for a visitor without a key, who reads only how to call.
        title: what the service is called.
        address: of the server, with a slash at its end.
        needs_key: callers send one.
    """
    page: str = _PAGE.render(
        title=title,
        needs_key=needs_key,
        count=counted(len(offers), "function"),
        example=_command(f"{address}functions/NAME", {}, needs_key=True),
        functions=[_facts(offer, f"{address}functions/{offer.name}", needs_key=needs_key) for offer in offers.values()],
    )
    return page


def _facts(offer: Offer, address: str, *, needs_key: bool) -> dict[str, Any]:
    """Return what the page says of a function."""
    definition = offer.pipeline.definition
    given = offer.tool.parameters.get("properties", {})
    parameters = {name: each for name, each in definition.signature.parameters.items() if name in given}
    hints = {name: definition.hints.get(name, Any) for name in parameters}
    example = {
        name: generate_example_object(hints[name])
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    return {
        "name": offer.name,
        "address": address,
        "description": offer.tool.description,
        "parameters": {name: _described(each, hints[name], given[name]) for name, each in parameters.items()},
        "answer": get_detailed_type_description(offer.spec.return_type),
        "command": _command(address, example, needs_key=needs_key),
    }


def _described(parameter: inspect.Parameter, hint: Any, schema: Mapping[str, Any]) -> str:
    about = f"; {schema['description']}" if schema.get("description") else ""
    default = json.dumps(schema.get("default", parameter.default), ensure_ascii=False, default=repr)
    given = "" if parameter.default is inspect.Parameter.empty else f"; {default} if not given"
    return f"{get_detailed_type_description(hint)}{about}{given}"


def _command(address: str, arguments: Mapping[str, Any], *, needs_key: bool) -> str:
    key = " -H 'Authorization: Bearer KEY'" if needs_key else ""
    body = shlex.quote(json.dumps(arguments, ensure_ascii=False))
    return f"curl {shlex.quote(address)}{key} \\\n  -H 'Content-Type: application/json' -d {body}"
