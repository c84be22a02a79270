import pytest

from SimpleLLMFunc import interface
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.profile import GENERIC
from SimpleLLMFunc.type.completion import ChatCompletion, ChatCompletionChunk
from tests.support.asking import HELLO


class Parrot(LLM_Interface):
    model_name = "parrot"

    async def chat(self, messages, **params):
        return ChatCompletion.from_dict({"choices": [{"message": messages[-1]}]})

    async def chat_stream(self, messages, **params):
        yield ChatCompletionChunk.from_dict({"choices": [{"delta": messages[-1], "finish_reason": "stop"}]})


async def test_two_methods_make_a_provider_and_the_rest_has_defaults():
    parrot = Parrot()
    assert (await parrot.chat(HELLO)).text == "hello"
    assert [piece.text async for piece in parrot.chat_stream(HELLO)] == ["hello"]
    assert (parrot.provider, parrot.profile, parrot.context_window, parrot.base_url) == ("custom", GENERIC, None, None)
    assert parrot.render(HELLO) == {"model": "parrot", "messages": HELLO}
    tool = {"type": "function", "function": {"name": "f"}}
    asked = {"tools": [tool], "response_format": {"type": "text"}, "stream": True, "seed": 1}
    assert parrot.render(HELLO, **asked) == {"model": "parrot", "messages": HELLO, **asked}
    assert (parrot.url(), parrot.is_traced) == ("", False)
    parrot.base_url = "https://h/v1"
    assert parrot.url() == "https://h/v1"
    with pytest.raises(TypeError):
        LLM_Interface()  # without the two methods


def test_the_room_offers_what_it_lists():
    for name in interface._FRONT_DOOR:
        assert getattr(interface, name).__name__ == name
        assert name in dir(interface)
    with pytest.raises(AttributeError):
        _ = interface.Nothing
