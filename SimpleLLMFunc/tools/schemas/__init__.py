"""From a Python callable to the JSON Schema that a model reads, and from the model's arguments back to a call.

`callable_schema` reads signatures and docstrings; `given_schema` takes a schema as it was written, which `check` and `bounds`
look through first; `strict` makes the form that some services enforce.
"""
