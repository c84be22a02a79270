"""Fill a slot: the known values, the schema to ask for, and the valid values of an answer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from SimpleLLMFunc.base.parsing import Repair
from SimpleLLMFunc.calls.slot.places import copied
from SimpleLLMFunc.calls.slot.pointer import ABSENT, DataPath, in_order, index_of, pointer_path, pointer_text, value_at
from SimpleLLMFunc.calls.slot.processor import Converted, SlotProcessor
from SimpleLLMFunc.errors import CallError

Steps: TypeAlias = tuple[str, ...]


class Filling:
    """The data of one slot: the given values and those found in answers.

    What is filled stays: an answer adds to it, and replaces nothing. A value that does not fit its schema is not
    filled.

    Args:
        schema: of the whole data.
        processor: of the same schema.
        given: what is known, by plain key or JSON Pointer. A wrong value in it is asked for again, also where the
            field could be left out.

    Attributes:
        remaining: schema of the missing values, keyed by JSON Pointer; empty if the data is complete.
        receipts: what was converted, as ``(path, what was done)``.
        dropped: what was left out, as ``(pointer, why)``.

    Raises:
        CallError: a pointer in `given` makes no sense.
    """

    def __init__(self, schema: Mapping[str, Any], processor: SlotProcessor, given: Mapping[str, Any]) -> None:
        self.receipts: list[Repair] = []
        self.dropped: list[Repair] = []
        self.remaining: dict[str, Any] = {}
        self._schema = schema
        self._processor = processor
        self._data: dict[str, Any] = self._noted(processor.convert(given))
        self._wrong: dict[Steps, Any] = dict(self._taken_out())
        if self._wrong.pop((), None) is not None:
            self.dropped.append(("", "the data does not fit the schema as a whole"))
        self._check()

    @property
    def data(self) -> dict[str, Any]:
        """What is filled. A missing item in the middle of a list is null, so that those after it keep their index."""
        data: dict[str, Any] = copied(self._data)
        for steps in sorted(self._asked, key=in_order, reverse=True):
            holder = value_at(data, steps[:-1])
            if isinstance(holder, list) and index_of(steps[-1]) == len(holder) - 1 and holder[-1] is None:
                holder.pop()
                if not holder and isinstance(value_at(data, steps[:-2]), dict):
                    _take_out(data, steps[:-1])
        return data

    def processed(self) -> dict[str, Any]:
        """Return what is filled as a tool takes it: words about time as dates and times."""
        return self._processor.process_json(self.data)

    def wanted(self) -> dict[str, Any]:
        """Return the schema of an answer: the missing values, and optional fields without a value."""
        optional: dict[DataPath, Any] = {steps: self._schema["properties"][steps[0]] for steps in self._optional}
        return self._processor.check_json(self._probe(), also=optional) if self.remaining else {}

    def take(self, answer: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Take what counts of an answer: valid values of fields that had none.

        Returns:
            Pointer and value of each answer that does not fit.
        """
        asked, before = self._asked, copied(self._data)
        found = self._answered(self._unwrapped(answer), self._data)
        for steps in sorted([*asked, *self._optional], key=in_order):
            if (value := value_at(found, steps)) is not ABSENT:
                _put(self._data, steps, copied(value))
                self._wrong = {at: each for at, each in self._wrong.items() if at[: len(steps)] != steps}
        unfit: list[tuple[str, Any]] = []
        for steps, value in self._taken_out():
            if not steps:
                self._data = before
                self.dropped.append(("", "with the answer the data would not fit the schema as a whole"))
                break
            if not any(steps[: len(place)] == place for place in asked):
                self.dropped.append((pointer_text(steps), "the value does not fit the schema"))
                continue
            unfit.append((pointer_text(steps), value))
            if isinstance(value_at(self._data, steps[:-1]), list):
                # a list would pass as complete without the item
                self._wrong[steps] = value
        self._check()
        return unfit

    def _unwrapped(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the object in ``{"parameters": {…}}``, under any key that can be no field of the schema."""
        fields = self._schema.get("properties")
        if len(answer) == 1 and fields and not self._schema.get("additionalProperties"):
            ((name, inside),) = answer.items()
            if isinstance(inside, Mapping) and name not in fields and not name.startswith("/"):
                self.receipts.append(("", f"unwrapped from {name!r}"))
                return inside
        return answer

    @property
    def _optional(self) -> list[Steps]:
        """The fields that are neither filled nor missing."""
        present = {steps[0] for steps in self._asked if steps} | self._data.keys()
        return [(name,) for name in self._schema.get("properties", {}) if name not in present]

    @property
    def _asked(self) -> set[Steps]:
        return {pointer_path(pointer) for pointer in self.remaining.get("properties", {})}

    def _answered(self, values: Mapping[str, Any], onto: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data with an answer laid over it; a key that makes no sense is left out."""
        try:
            found = self._processor.convert(values, onto=onto)
        except CallError as error:
            if len(values) == 1:
                self.dropped.append((next(iter(values)), error.message))
                return dict(onto)
            for key, value in values.items():
                onto = self._answered({key: value}, onto)
            return dict(onto)
        # null is how a model says that it does not know
        unknown = {place for key, value in values.items() if value is None for place in (key, f"/{key}")}
        return self._noted(found, unknown)

    def _noted(self, found: Converted, unknown: Collection[str] = ()) -> dict[str, Any]:
        self.receipts += found.receipts
        self.dropped += [drop for drop in found.dropped if drop[0] not in unknown]
        return found.data

    def _taken_out(self) -> Iterator[tuple[Steps, Any]]:
        """Take the values that do not fit out of the data; yield them with their places."""
        while True:
            remaining = self._processor.check_json(self._data)
            # a value that is not required is one of several alternatives, and may be right
            places = [pointer_path(pointer) for pointer in remaining.get("required", ())]
            wrong = [steps for steps in places if _has_value(self._data, steps)]
            if not wrong:
                return
            for steps in wrong:
                yield steps, _take_out(self._data, steps)

    def _probe(self) -> dict[str, Any]:
        """Return what is filled and what is wrong: all that is to be checked."""
        probe: dict[str, Any] = copied(self._data)
        for steps, value in self._wrong.items():
            if not _has_value(probe, steps):
                _put(probe, steps, value)
        return probe

    def _check(self) -> None:
        self.remaining = self._processor.check_json(self._probe())


def _has_value(data: Any, steps: Steps) -> bool:
    """Tell whether there is a value; a null in a list only holds a place, and an empty object is no value."""
    if not steps:
        return bool(data)
    value = value_at(data, steps)
    return value is not ABSENT and (value is not None or isinstance(value_at(data, steps[:-1]), dict))


def _take_out(data: Any, steps: Steps) -> Any:
    if not steps:
        value = copied(data)
        data.clear()
        return value
    holder, value = value_at(data, steps[:-1]), value_at(data, steps)
    if isinstance(holder, dict):
        holder.pop(steps[-1], None)
    else:
        holder[int(steps[-1])] = None
    return value


def _put(data: Any, steps: Steps, value: Any) -> None:
    """Set the value where there is something to hold it; else it is missing with its holder."""
    if not steps:
        data |= value
        return
    holder = value_at(data, steps[:-1])
    index = index_of(steps[-1])
    if isinstance(holder, dict):
        holder[steps[-1]] = value
    elif isinstance(holder, list) and index is not None:
        holder += [None] * (index + 1 - len(holder))
        holder[index] = value
