"""The page at the root of the server: the functions and how to call them, in plain HTML."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping
from html import escape
from typing import Any, Final

from SimpleLLMFunc.base.type_resolve import generate_example_object, get_detailed_type_description
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.serve.offer import Offer

PAGE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
"""The browser may load nothing for it."""

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-top: 1px solid #8886; padding-top: 1rem; }
pre { background: #8882; padding: .75rem; border-radius: .4rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, monospace; font-size: .9rem; }
td, th { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; }
"""


def page_of(offers: Mapping[str, Offer], title: str, address: str, *, needs_key: bool) -> str:
    """Return the page.

    Args:
        offers: by name; empty for a visitor without a key, who reads only how to call.
        title: what the service is called.
        address: of the server, with a slash at its end.
        needs_key: callers send one.
    """
    key = "<p>Callers send their key: <code>Authorization: Bearer KEY</code>.</p>" if needs_key else ""
    if offers:
        head = f"<p>{counted(len(offers), 'function')} over HTTP; <a href='openapi.json'>openapi.json</a> describes them.</p>"
    else:
        path = f"{address}functions/NAME"
        head = f"<p>What is offered is shown to callers with a key.</p>{_command(path, {}, needs_key=True)}"
    parts = [_function(offer, f"{address}functions/{offer.name}", needs_key=needs_key) for offer in offers.values()]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>{key}{head}\n"
        f"{''.join(parts)}</body></html>\n"
    )


def _function(offer: Offer, address: str, *, needs_key: bool) -> str:
    definition = offer.pipeline.definition
    given = offer.tool.parameters.get("properties", {})
    parameters = {name: each for name, each in definition.signature.parameters.items() if name in given}
    example = {
        name: generate_example_object(definition.hints.get(name, Any))
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_described(parameter, definition.hints.get(name, Any), given[name]))}</td></tr>"
        for name, parameter in parameters.items()
    )
    return (
        f"<h2>{escape(offer.name)}</h2><p>{escape(offer.tool.description)}</p>"
        f"<table>{rows}<tr><th>answer</th><td>{escape(get_detailed_type_description(offer.spec.return_type))}</td></tr></table>"
        f"{_command(address, example, needs_key=needs_key)}"
        f"<p>As it grows: the same to <code>{escape(address)}/stream</code>.</p>\n"
    )


def _described(parameter: inspect.Parameter, hint: Any, schema: Mapping[str, Any]) -> str:
    about = f"; {schema['description']}" if schema.get("description") else ""
    default = json.dumps(schema.get("default", parameter.default), ensure_ascii=False, default=repr)
    given = "" if parameter.default is inspect.Parameter.empty else f"; {default} if not given"
    return f"{get_detailed_type_description(hint)}{about}{given}"


def _command(address: str, arguments: Mapping[str, Any], *, needs_key: bool) -> str:
    key = " -H 'Authorization: Bearer KEY'" if needs_key else ""
    body = shlex.quote(json.dumps(arguments, ensure_ascii=False))
    command = f"curl {shlex.quote(address)}{key} \\\n  -H 'Content-Type: application/json' -d {body}"
    return f"<pre>{escape(command)}</pre>"
