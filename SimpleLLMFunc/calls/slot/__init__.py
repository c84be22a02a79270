"""The Slot Call of note 000: the parameters of a tool, filled in."""

from SimpleLLMFunc.calls.slot.processor import SlotProcessor
from SimpleLLMFunc.calls.slot.schema import SlotInput, SlotOutput
from SimpleLLMFunc.calls.slot.slot import Slot, fill_slots

__all__ = ["Slot", "SlotInput", "SlotOutput", "SlotProcessor", "fill_slots", "places", "time_words"]
