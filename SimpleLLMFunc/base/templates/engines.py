"""The two template engines for prompts, named fields and Jinja2: safe to render with any template and any values.

Of named fields: only ``{identifier}`` is a field. Every other brace is text: JSON in a docstring is safe, an attribute of a
value cannot be read (``{u.api_key}`` is text too), a format specification is never carried out, and
``{{name}}`` stays as it stands.

For Jinja2 the values are turned into plain data first, so no template reaches an object of Python. What a value holds is
never read as a template, and nothing is HTML-escaped: a prompt is no web page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final

from SimpleLLMFunc.base.templates.plain_data import plain_data
from SimpleLLMFunc.errors import TemplateError, cut
from SimpleLLMFunc.logger import redact

if TYPE_CHECKING:
    from SimpleLLMFunc.base.templates.jinja_sandbox import Compiled

MAX_OUTPUT: Final = 1 << 20
"""Bytes of what is rendered."""

_FIELD = re.compile(r"(?<!\{)\{([^\W\d]\w*)\}")
_CLOSING_TAG = re.compile(r"</([^\W\d][\w.-]*)\s*>")


def fill_fields(template: str, values: Mapping[str, Any], *, name: str = "template") -> str:
    """Return `template` with every field replaced by the text of its value.

    Args:
        template: the text with fields.
        values: a value for every field; more than are used is fine.
        name: what the template is called in the error.

    Raises:
        TemplateError: a field has no value; names the first one.
    """

    def filled(found: re.Match[str]) -> str:
        field = found[1]
        if field not in values:
            known = ", ".join(f"{{{known}}}" for known in values) or "none"
            problem = f"the {name} has a field {{{field}}} that cannot be filled. It can use: {known}."
            raise TemplateError(problem, field=field)
        return str(values[field])

    return _FIELD.sub(filled, template)


def render_template(
    template: str, values: Mapping[str, Any], *, name: str = "template", text: Callable[[str], str] | None = None
) -> str:
    """Return the Jinja2 `template` with `values` filled in.

    White space is treated as Jinja2 does by default. Lists and dicts are written as JSON. Missing is what leads out of
    the data or fills up to any width: `namespace`, `cycler`, `include` and the filters `map`, `attr`, `format`,
    `center`, `indent`; `range` gives at most 1000 numbers.

    Args:
        template: the source; never text of a user.
        values: by name; only those that the template names are looked at.
        name: what the template is called in an error.
        text: applied to every text in the values but those that are `Finished`, such as `guard_tags(template)`.

    Raises:
        TemplateError: it does not parse, names what has no value, does what it may not, or its result is longer
            than 1 MiB.
    """
    from SimpleLLMFunc.base.templates.jinja_sandbox import TemplateSyntaxError, compiled

    ready: Compiled | None = None
    try:
        ready = compiled(template)
        data = {key: plain_data(value, name=key, text=text) for key, value in values.items() if key in ready.names}
        return _written(ready.template.generate(data))
    except TemplateError as error:
        raise TemplateError(f"the {name} cannot be filled: {error}", field=error.field) from error
    except TemplateSyntaxError as error:
        raise TemplateError(f"the {name} does not parse, line {error.lineno}: {error.message}") from error
    except Exception as error:
        raise _failed(error, name, ready, values) from error


def guard_tags(*templates: str) -> Callable[[str], str]:
    """Return a function that keeps a text from opening or closing a tag of the templates, or a chat template's mark.

    Of ``</facts>`` only the first character changes, to ``‹``, and only where a template has a tag `facts`; all other
    text stays as it is, tags of other names too.
    """
    names = {found for template in templates for found in _CLOSING_TAG.findall(template)}
    tags = rf"[<＜](?=[\s/／]*(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w-]))|" if names else ""
    forged = re.compile(rf"{tags}<(?=\|)", re.IGNORECASE)

    def guarded(text: str) -> str:
        return forged.sub("‹", text)

    return guarded


def _written(pieces: Iterator[str]) -> str:
    """Return the pieces as one text, stopping as soon as it is too long."""
    written: list[str] = []
    left = MAX_OUTPUT
    for piece in pieces:
        left -= len(piece.encode("utf-8", "surrogatepass"))
        if left < 0:
            raise TemplateError(f"its result is longer than {MAX_OUTPUT} bytes. Pass less data, or shorten it.")
        written.append(piece)
    return "".join(written)


def _failed(error: Exception, name: str, ready: Compiled | None, values: Mapping[str, Any]) -> TemplateError:
    from SimpleLLMFunc.base.templates.jinja_sandbox import SecurityError, UndefinedError

    where = _line_of(error)
    said = cut(redact(str(error)), 300)
    match error:
        case UndefinedError():
            field = str(getattr(error, "name", ""))
            problem = f"names what is not there{where}: {said}."
            if ready and field in ready.free and field not in values:
                absent = [field, *sorted(ready.free - {*values, field})]
                missing = ", ".join(f"{{{{ {free} }}}}" for free in absent)
                known = ", ".join(map(str, values)) or "none"
                problem = f"names what has no value{where}: {missing}. It can use: {known}."
            return TemplateError(f"the {name} {problem}", field=field)
        case SecurityError():
            return TemplateError(f"the {name} does what a template may not{where}: {said}")
        case RecursionError():
            return TemplateError(f"the {name} calls itself, or nests, too deep{where}.")
        case _:
            kind = "does not compile" if ready is None else "failed"
            return TemplateError(f"the {name} {kind}{where}: {type(error).__name__}: {said}")


def _line_of(error: BaseException) -> str:
    """Return where in the template it happened, as far as it is known."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == "<template>"]
    return f" (line {lines[-1]})" if lines else ""
