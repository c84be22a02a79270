"""The kinds of decorated objects, and what of a module is for others."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from SimpleLLMFunc import Audio, File, ImgPath, ImgUrl
from SimpleLLMFunc.llm_decorator import decorated
from SimpleLLMFunc.llm_decorator.decorated import CHATS, FUNCTIONS, STREAMS, is_offered, takes_a_file


def test_every_kind_is_a_function_or_a_chat():
    there = {
        thing for name, thing in vars(decorated).items() if re.fullmatch("(Async)?LLM(Function|Stream|Chat)", name)
    }
    assert len(there) == 6
    assert {*FUNCTIONS, *CHATS} == there
    assert set(STREAMS) < set(FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "home", "listed", "offered"),
    [
        ("grade", "shop", None, True),
        ("grade", "shop.inner", None, True),
        ("grade", "shopping", None, False),
        ("grade", "elsewhere", None, False),
        ("_grade", "shop", None, False),
        ("grade", "elsewhere", ["grade"], True),
        ("_grade", "shop", ["_grade"], True),
        ("grade", "shop", ["other"], False),
    ],
)
def test_a_module_offers_what_it_lists_else_what_is_public_and_its_own(name, home, listed, offered):
    module = ModuleType("shop")
    if listed is not None:
        module.__all__ = listed
    assert is_offered(module, name, home) is offered


@pytest.mark.parametrize(
    ("hint", "takes"),
    [
        (ImgPath, True),
        (list[Audio], True),
        (dict[str, File | None], True),
        (ImgUrl, False),
        (str, False),
        (list, False),
    ],
    ids=str,
)
def test_what_takes_the_path_of_a_file(hint, takes):
    assert takes_a_file(hint) is takes
