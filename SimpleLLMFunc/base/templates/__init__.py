"""The two template engines, both safe: named fields, and sandboxed Jinja2; and text from outside in delimited blocks."""
