"""What the server says of its functions: a page in plain HTML, ``page.html``, and the OpenAPI document, ``openapi.json``.

Both are made from the signatures; the files next to this one are their fixed parts.

Source: OpenAPI Specification 3.1, whose schemas are JSON Schema 2020-12.
"""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from jinja2 import Template

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.base.type_resolve import generate_example_object, get_detailed_type_description
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.serve.http_responses import MEDIA_TYPE, STATUSES
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


def openapi_document(
    offers: Mapping[str, Offer], *, title: str, needs_key: bool, shows_waiting: bool = False
) -> dict[str, Any]:
    """Return the OpenAPI document.

    Args:
        offers: by name.
        title: of the service.
        needs_key: callers have keys.
        shows_waiting: callers answer at ``/waiting`` what waits in a journal.
    """
    fixed: dict[str, Any] = json.loads(files("SimpleLLMFunc.serve").joinpath("openapi.json").read_text("utf-8"))
    document: dict[str, Any] = fixed["document"]
    document["info"] = {"title": title, "version": __version__}
    paths, schemas = document["paths"], document["components"]["schemas"]
    problem = {MEDIA_TYPE: {"schema": _ref("Problem")}}
    problems = {str(status): {"description": told, "content": problem} for status, told in STATUSES.items()}
    for name, offer in offers.items():
        schemas[f"{name}_arguments"] = _moved(offer.tool.parameters, f"{name}_arguments", schemas)
        value = _moved(offer.value_schema, f"{name}_value", schemas)
        schemas[f"{name}_result"] = {**fixed["result"], "properties": fixed["result"]["properties"] | {"value": value}}
        summary, _, description = offer.tool.description.strip().partition("\n")
        body = {"required": True, "content": {"application/json": {"schema": _ref(f"{name}_arguments")}}}
        told = {"summary": summary, "description": description.strip(), "requestBody": body}
        content = {"application/json": {"schema": _ref(f"{name}_result")}}
        whole = {"description": "What the function returned.", "content": content}
        for path, operation, answer in ((name, name, whole), (f"{name}/stream", f"{name}_stream", fixed["stream"])):
            responses = {"200": answer, **problems}
            paths[f"/functions/{path}"] = {"post": {"operationId": operation, **told, "responses": responses}}
    if shows_waiting:
        paths["/waiting"] = fixed["waiting"]
    if needs_key:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _moved(schema: Mapping[str, Any], prefix: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its definitions moved into `schemas`, since references start at the document's root."""
    definitions = schema.get("$defs", {})
    text = json.dumps({**schema, "$defs": definitions})
    names = {name: f"{prefix}_{number}" for number, name in enumerate(definitions)}
    for name, own in names.items():
        reference = "#/$defs/" + name.replace("~", "~0").replace("/", "~1")
        text = text.replace(json.dumps(reference), json.dumps(f"#/components/schemas/{own}"))
    whole: dict[str, Any] = json.loads(text)
    schemas.update({names[name]: definition for name, definition in whole.pop("$defs").items()})
    return whole
