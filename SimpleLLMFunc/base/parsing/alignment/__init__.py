"""From a JSON value to a value of the wanted type, step by step, each with a receipt; never a guess between two readings."""

from __future__ import annotations

from SimpleLLMFunc.base.parsing.alignment.align import Aligner
from SimpleLLMFunc.base.parsing.alignment.alignment import Alignment, Fit, Misfit, violations_of
from SimpleLLMFunc.base.parsing.alignment.bare_lists import adjacent_candidates, bare_items
from SimpleLLMFunc.base.parsing.alignment.scalar_coercion import digit_truth
from SimpleLLMFunc.base.parsing.alignment.scalars import MONTHS
from SimpleLLMFunc.base.parsing.alignment.shape import (
    AnyShape,
    Check,
    ChoiceShape,
    FieldShape,
    LeafKind,
    LeafShape,
    ListShape,
    MappingShape,
    ObjectShape,
    OpaqueShape,
    Ref,
    Shape,
    TaggedShape,
    UnionShape,
    choices_of,
    resolved,
)
from SimpleLLMFunc.base.parsing.alignment.shape_builder import holds_hooks, shape_of

__all__ = [
    "MONTHS", "Aligner", "Alignment", "AnyShape", "Check", "ChoiceShape", "FieldShape", "Fit", "LeafKind",
    "LeafShape", "ListShape", "MappingShape", "Misfit", "ObjectShape", "OpaqueShape", "Ref", "Shape",
    "TaggedShape", "UnionShape", "adjacent_candidates", "bare_items", "choices_of", "digit_truth", "holds_hooks",
    "resolved", "shape_of", "violations_of",
]  # fmt: skip
