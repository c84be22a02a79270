"""The two template engines, both safe: named fields, and sandboxed Jinja2; and text from outside in delimited blocks."""

from SimpleLLMFunc.base.templates.engines import fill_fields, guard_tags, render_template
from SimpleLLMFunc.base.templates.outside_text import enclosed, shortened, without_ids
from SimpleLLMFunc.base.templates.plain_data import Finished

__all__ = ["Finished", "enclosed", "fill_fields", "guard_tags", "render_template", "shortened", "without_ids"]
