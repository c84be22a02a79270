"""A quickly made dataclass is like any other, to whoever has one."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass, field

import pytest

from SimpleLLMFunc.base.events import ReplyDelta
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk
from SimpleLLMFunc.type.chunk import ChoiceDelta, ChunkChoice
from SimpleLLMFunc.type.quick import quickly_made
from SimpleLLMFunc.type.usage import CompletionUsage, Usage


@quickly_made
@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Plain:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


def test_it_is_made_as_it_always_was():
    assert dataclasses.astuple(Point(1)) == dataclasses.astuple(Plain(1))
    assert Point(1, tags=["a"], note="n") == Point(x=1, y=2, tags=["a"], note="other")
    assert Point(1).tags is not Point(1).tags
    assert repr(Point(1, note="hidden")) == "Point(x=1, y=2, tags=[])"
    assert dataclasses.replace(Point(1), y=5) == Point(1, 5)
    assert str(inspect.signature(Point)) == str(inspect.signature(Plain))


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, [], "", 5), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_what_does_not_fit_is_a_type_error(args, kwargs):
    with pytest.raises(TypeError):
        Plain(*args, **kwargs)
    with pytest.raises(TypeError, match=r"Point|__init__"):
        Point(*args, **kwargs)


@pytest.mark.parametrize(
    "made",
    [
        Point(1),
        Usage(1, 2),
        CompletionUsage(1, 2, 3),
        ReplyDelta(1, "a"),
        ChatCompletionChunk((ChunkChoice(ChoiceDelta(content="a")),)),
        ChatCompletion.from_dict({"choices": [{"message": {"content": "a"}}]}),
    ],
)
def test_it_is_frozen_and_can_be_copied_and_pickled(made):
    name = dataclasses.fields(made)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(made, name)
    assert copy.deepcopy(made) == copy.copy(made) == made
    assert pickle.loads(pickle.dumps(made)) == made
