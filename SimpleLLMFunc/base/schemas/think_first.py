"""A typed answer whose reasons are asked for before it, in a field of their own."""

from __future__ import annotations

from typing import Any

from pydantic import Field, create_model

from SimpleLLMFunc.base.parsing import OutputMode, Parsed, RepairLevel
from SimpleLLMFunc.base.schemas.output_mode import OutputSpec, compile_output


class ThinkFirst(OutputSpec):
    """A return type that goes over the wire as ``{"reasons": "…", "value": …}``; what is read is the value.

    Args:
        inner: the return type.
        has_examples: examples are shown. They have no reasons, so an answer like theirs is one too.

    Attributes:
        asked_type: what the model is asked for.
    """

    thinks = True

    def __init__(self, inner: OutputSpec, *, has_examples: bool = False) -> None:
        reasons: Any = (str, Field(description="why it is so, step by step"))
        self.asked_type: Any = create_model("Reasoned", reasons=reasons, value=(inner.return_type, ...))
        given: Any = (str, "") if has_examples else reasons
        read = compile_output(create_model('{"reasons", "value"}', reasons=given, value=(inner.return_type, ...)))
        self._read = OutputSpec(inner.return_type, read.adapter, read.schema)  # an error names the function's own type
        super().__init__(inner.return_type, inner.adapter, compile_output(self.asked_type).schema, inner.quotes)
        self.is_text = self.is_none = False
        self.labels = {}

    def parse(self, text: str, repair: RepairLevel = "coerce", *, mode: OutputMode | None = None) -> Parsed[Any]:
        """Read the value in `text`, with the reasons that stand before it."""
        parsed = self._read.parse(text, repair, mode=mode)
        return Parsed(parsed.value.value, parsed.repairs, parsed.value.reasons.strip())
