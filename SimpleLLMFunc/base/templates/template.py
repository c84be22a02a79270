"""The two template engines, both safe: named fields, and sandboxed Jinja2 (`base/templates/jinja.py`).

Of named fields: only ``{identifier}`` is a field. Every other brace is text: JSON in a docstring is safe, an attribute of a
value cannot be read (``{u.api_key}`` is text too), a format specification is never carried out, and
``{{name}}`` stays as it stands. What a value holds is never looked at for fields again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from SimpleLLMFunc.errors import TemplateError

_FIELD = re.compile(r"(?<!\{)\{([^\W\d]\w*)\}")


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
