"""From a Python callable to the JSON Schema that a model reads, and from the model's arguments back to a call.

`callable_schema` reads signatures and docstrings; `check` takes a schema as it was written, which `bounds` looks through
first; `strict` makes the form that some services enforce.
"""

from SimpleLLMFunc.tools.schemas.annotations import EnumSchema, docstring_of, name_of, own_description, underlying
from SimpleLLMFunc.tools.schemas.bounds import check_bounds, pattern_matches
from SimpleLLMFunc.tools.schemas.callable_schema import ArgumentsError, BoundArguments, SignatureParameters
from SimpleLLMFunc.tools.schemas.check import MAX_NESTING, ExtraTypes, SchemaParameters, SchemaValidation
from SimpleLLMFunc.tools.schemas.docstring import Documentation, read_docstring, taken_apart
from SimpleLLMFunc.tools.schemas.strict import STRICT_FORMATS, strict_parameters

__all__ = [
    "MAX_NESTING", "STRICT_FORMATS", "ArgumentsError", "BoundArguments", "Documentation", "EnumSchema",
    "ExtraTypes", "SchemaParameters", "SchemaValidation", "SignatureParameters", "check_bounds", "docstring_of",
    "name_of", "own_description", "pattern_matches", "read_docstring", "strict_parameters", "taken_apart", "underlying",
]  # fmt: skip
