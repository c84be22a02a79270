"""The prompts of the Calls: Jinja2 templates in files, one for each language."""

from __future__ import annotations

from importlib.resources import files

from SimpleLLMFunc.calls.call_data import LanguageType


def prompt_files(package: str, name: str) -> dict[LanguageType, str]:
    """Return the template `name` of a Call by language, from ``<name>.<language>.jinja`` in its package."""
    return {
        language: files(package).joinpath(f"{name}.{language}.jinja").read_text("utf-8").removesuffix("\n")
        for language in LanguageType
    }
