"""The default prompt texts of `@llm_function`."""

from __future__ import annotations

from collections.abc import Sequence

_ONLY = "Give only the return value, without explanation."
_HEAD = """\
You carry out the function described below. You get its arguments and give back what it returns.

Function:
{function_description}

Parameters:
{parameters_description}

"""

PLAIN_SYSTEM_PROMPT_TEMPLATE = _HEAD + _ONLY
"""Used where the provider itself holds the answer to its schema, and for plain text."""

SHORT_SYSTEM_PROMPT_TEMPLATE = """\
{function_description}

Parameters:
{parameters_description}

Give only the return value."""
"""Used instead of the plain one where the provider's profile says so: for small models."""

SHORT_FIELDS_PROMPT_TEMPLATE = """\
{function_description}

Fields:
{return_type_description}

Give only the return value."""
"""Used for a record where the provider's profile says so. The fields are in the last field: a small model sees the schema
of its answer only as it writes."""

CHOICE_SYSTEM_PROMPT_TEMPLATE = _HEAD + "{return_type_description}"
"""Used for a choice between labels, which fill the last field."""

SHORT_CHOICE_PROMPT_TEMPLATE = """\
{function_description}
{return_type_description}"""
"""Used instead of the one above where the provider's profile says so: for small models."""

DEFAULT_SYSTEM_PROMPT_TEMPLATE = (
    f"{_HEAD}Return value:\n{{return_type_description}}\n\n{_ONLY} Where it is described as JSON, answer with that JSON alone: "
    "no code fence, no text around it."
)
"""Used in prompt mode; fields as in the decorator's `system_prompt_template`."""

DEFAULT_USER_PROMPT_TEMPLATE = """\
Arguments:
{parameters}"""
"""The field is that of the decorator's `user_prompt_template`."""

SHORT_USER_PROMPT_TEMPLATE = "{parameters}"
"""Used instead where the provider's profile says so; a heading and marks of a list cost small models right answers."""


def quotes_line(quotes: Sequence[str]) -> str:
    """Return what the model is told of the texts that it has to copy, or ""."""
    if not quotes:
        return ""
    what = "The return value" if list(quotes) == [""] else ", ".join(path or "the return value" for path in quotes)
    return f"{what}: copied from the arguments word for word, nothing left out, changed or added."
