"""From the text of a model to a value, or to the reasons why not: finding JSON, reading it tolerantly, growing values, quotes."""

from SimpleLLMFunc.base.parsing.answer import AnswerReader
from SimpleLLMFunc.base.parsing.json_growth import Frame, JsonGrowth
from SimpleLLMFunc.base.parsing.json_node import Num, decode_strictly, is_same_value, plain_value
from SimpleLLMFunc.base.parsing.json_text import find_json
from SimpleLLMFunc.base.parsing.parsed import OutputMode, Parsed, Repair, RepairLevel
from SimpleLLMFunc.base.parsing.partial import ItemReader, PartialReader, is_equal
from SimpleLLMFunc.base.parsing.quotes import QuoteCheck
from SimpleLLMFunc.base.parsing.reasoning import without_reasoning
from SimpleLLMFunc.base.parsing.tool_arguments import is_certain, mended_arguments

__all__ = [
    "AnswerReader", "Frame", "ItemReader", "JsonGrowth", "Num", "OutputMode", "Parsed", "PartialReader",
    "QuoteCheck", "Repair", "RepairLevel", "alignment", "decode_strictly", "find_json", "is_certain", "is_equal",
    "is_same_value", "mended_arguments", "plain_value", "without_reasoning",
]  # fmt: skip
