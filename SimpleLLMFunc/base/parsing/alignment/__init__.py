"""From a JSON value to a value of the wanted type, step by step, each with a receipt; never a guess between two readings.

`base/parsing` uses the modules by their names, the other rooms the names below.
"""

from SimpleLLMFunc.base.parsing.alignment.align import Aligner
from SimpleLLMFunc.base.parsing.alignment.alignment import Fit
from SimpleLLMFunc.base.parsing.alignment.scalars import MONTHS
from SimpleLLMFunc.base.parsing.alignment.shape import (
    AnyShape,
    ChoiceShape,
    LeafKind,
    LeafShape,
    ListShape,
    MappingShape,
    Shape,
    UnionShape,
    folded_key,
)

__all__ = [
    "MONTHS", "Aligner", "AnyShape", "ChoiceShape", "Fit", "LeafKind", "LeafShape", "ListShape", "MappingShape",
    "Shape", "UnionShape", "align", "alignment", "folded_key", "scalar_coercion", "shape", "shape_builder",
]  # fmt: skip
