"""From a type to what a model is told of it: output modes, the strict subset of JSON Schema, an example, words."""

from SimpleLLMFunc.base.schemas.choices import grammar_of, labels_text
from SimpleLLMFunc.base.schemas.descriptions import field_descriptions, with_descriptions
from SimpleLLMFunc.base.schemas.output_mode import ANSWER_TOOL, OutputSpec, choose_output_mode, compile_output
from SimpleLLMFunc.base.schemas.strict_schema import inlined_root
from SimpleLLMFunc.base.schemas.think_first import ThinkFirst
from SimpleLLMFunc.base.schemas.type_description import literal

__all__ = [
    "ANSWER_TOOL", "OutputSpec", "ThinkFirst", "choose_output_mode", "compile_output", "field_descriptions",
    "grammar_of", "inlined_root", "labels_text", "literal", "type_description", "type_example", "type_words",
    "with_descriptions",
]  # fmt: skip
