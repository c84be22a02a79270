"""`Tool`, subclasses of it, and `@tool`."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from typing import Any

import pytest

from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.tools import FunctionTool, Tool, ToolContext, as_tool, tool


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first.
    """
    return a + b


@tool(name="web.search", description="Look it up.", timeout=30, confirm=True, untrusted=True)
async def search(query: str) -> str:
    """Not this text."""
    return query.upper()


def facts(made: Tool) -> tuple[Any, ...]:
    return made.name, made.description, made.timeout, made.confirm, made.untrusted


# --- @tool -------------------------------------------------------------------------------------------------


def test_a_decorated_function_stays_the_function():
    assert add(1) == add(a=1, b=2) == 3
    assert add("x", "y") == "xy"  # nothing in between
    assert (add.__name__, add.__doc__.splitlines()[0]) == ("add", "Add two numbers.")
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 2) -> 'int'"
    assert asyncio.run(search("x")) == "X"
    assert pickle.loads(pickle.dumps(add)) is copy.copy(add) is copy.deepcopy(add) is add


def test_a_decorated_function_is_a_tool():
    assert isinstance(add, Tool)
    assert facts(add) == ("add", "Add two numbers.", None, False, False)
    properties = {"a": {"type": "integer", "description": "The first."}, "b": {"type": "integer", "default": 2}}
    parameters = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}
    told = {"name": "add", "description": "Add two numbers.", "parameters": parameters}
    assert add.to_openai_tool() == {"type": "function", "function": told}
    assert repr(add) == "FunctionTool('add')"
    assert facts(search) == ("web.search", "Look it up.", 30, True, True)
    assert search.to_openai_tool()["function"]["name"] == "web_search"


def test_an_empty_description_falls_back_to_the_name():
    @tool
    def bare(): ...

    @tool
    def only_sections(a: int):
        """Args:
        a: It.
        """

    assert bare.description == "bare"
    assert only_sections.description


def test_decorating_what_cannot_be_a_tool_fails_at_once():
    with pytest.raises(ToolDefinitionError, match="parameter a has no type"):

        @tool
        def f(a): ...

    with pytest.raises(ToolDefinitionError, match="cannot be called"):
        tool(3)
    for timeout in (0, -1, "30", True, float("nan")):
        with pytest.raises(ToolDefinitionError, match="timeout must be seconds above 0"):
            tool(timeout=timeout)(lambda: None)
    for recover, said in (
        (lambda a: None, "recover= cannot be called: parameter a has no type"),
        (search, "takes query"),
    ):
        with pytest.raises(ToolDefinitionError, match=said):
            tool(once=True, recover=recover)(lambda: None)


# --- methods -----------------------------------------------------------------------------------------------


class Shop:
    def __init__(self, rate: int) -> None:
        self.rate = rate

    @tool
    def price(self, amount: int, ctx: ToolContext) -> int:
        """Say the price.

        Args:
            amount: How many.
        """
        return amount * self.rate

    @tool(name="shop.close")
    async def close(self) -> int:
        return self.rate

    @tool
    @classmethod
    def outer(cls, a: int) -> str:
        return f"{cls.__name__}{a}"

    @classmethod
    @tool
    def inner(cls, a: int) -> str:
        return f"{cls.__name__}{a}"

    @tool
    @staticmethod
    def still(a: int) -> int:
        return a

    @staticmethod
    @tool
    def quiet(a: int) -> int:
        return a


def test_a_method_binds_to_its_object():
    price = Shop(3).price
    assert isinstance(price, FunctionTool)
    assert list(price.parameters["properties"]) == ["amount"]
    assert price.parameters["properties"]["amount"]["description"] == "How many."
    assert price(2, ToolContext()) == 6
    args, kwargs = price.bind('{"amount": "2"}')
    assert price.func(*args, **kwargs) == 6
    assert Shop(4).price(2, ToolContext()) == 8
    assert str(inspect.signature(price)) == "(amount: 'int', ctx: 'ToolContext') -> 'int'"
    assert pickle.loads(pickle.dumps(price))(2, ToolContext()) == 6
    close = Shop(3).close
    assert (close.name, asyncio.run(close())) == ("shop.close", 3)


@pytest.mark.parametrize("name", ["outer", "inner"])
def test_class_methods(name):
    for bound in (getattr(Shop, name), getattr(Shop(1), name)):
        made = as_tool(bound)
        args, kwargs = made.bind('{"a": 1}')
        assert made.func(*args, **kwargs) == bound(1) == "Shop1"
        assert list(made.parameters["properties"]) == ["a"]


@pytest.mark.parametrize("name", ["still", "quiet"])
def test_static_methods(name):
    for bound in (getattr(Shop, name), getattr(Shop(1), name)):
        assert bound(1) == 1
        assert list(as_tool(bound).parameters["properties"]) == ["a"]


def test_a_method_without_its_object_cannot_stand_in_a_toolkit():
    with pytest.raises(ToolDefinitionError, match=r"it is a method\. Put `thing\.price`"):
        as_tool(Shop.price)
    assert Shop.price(Shop(2), 3, ToolContext()) == 6


def test_plain_methods_and_callables_of_every_kind():
    class Callable1:
        """Double it."""

        def __call__(self, a: int) -> int:
            return 2 * a

    class Callable2:
        def __call__(self, a: int) -> int:
            """Double it twice."""
            return 4 * a

    class Plain:
        def double(self, a: int) -> int:
            """Double the number."""
            return 2 * a

    for made, name, description in (
        (as_tool(Callable1()), "Callable1", "Double it."),
        (as_tool(Callable2()), "Callable2", "Double it twice."),
        (as_tool(Plain().double), "double", "Double the number."),
    ):
        assert (made.name, made.description, made.parameters["required"]) == (name, description, ["a"])


def test_a_wrapped_function_shows_its_own_signature():
    import functools

    def traced(func):
        @functools.wraps(func)
        def inner(*args, **kwargs):
            return func(*args, **kwargs)

        return inner

    @tool
    @traced
    def f(a: int) -> int:
        """F."""
        return a

    assert f.parameters["required"] == ["a"]
    assert f(3) == 3


# --- subclasses --------------------------------------------------------------------------------------------


class Weather(Tool):
    """Tell the weather."""

    def run(self, city: str, days: int = 1) -> str:
        return f"{city}: {days}"


def test_a_subclass_is_its_run():
    weather = Weather()
    assert (weather.name, weather.description) == ("Weather", "Tell the weather.")
    assert weather.parameters["required"] == ["city"]
    args, kwargs = weather.bind('{"city": "Rome"}')
    assert weather.run(*args, **kwargs) == "Rome: 1"
    assert weather("Rome", days=2) == "Rome: 2"

    class Storm(Weather):
        name = "storm"

    assert facts(Storm()) == ("storm", "Tell the weather.", None, False, False)
    assert Storm().parameters["required"] == ["city"]


def test_a_subclass_says_more_about_itself_and_its_run_goes_first():
    class Named(Tool):
        name = "weather"
        description = "Tell the weather of a city."
        timeout = 5
        confirm = True
        untrusted = True

        async def run(self, city: str) -> str:
            """Run it.

            Args:
                city: Its name.
            """
            return city

    named = Named()
    assert facts(named) == ("weather", "Tell the weather of a city.", 5, True, True)
    assert named.parameters["properties"]["city"]["description"] == "Its name."
    assert Named(name="other", confirm=False).confirm is False
    with pytest.raises(ToolDefinitionError, match="confirm is True or False, not 'no'"):
        Named(confirm="no")  # type: ignore[arg-type]
    assert Named(name="other").name == "other"

    class Both(Tool):
        """About the class."""

        def run(self) -> None:
            """About the work."""

    assert Both().description == "About the work."


def test_a_subclass_that_does_not_call_our_init_is_still_a_tool():
    class Index(Tool):
        def __init__(self, rows: list[str]) -> None:
            self.rows = rows

        def run(self, number: int) -> str:
            """Return a row."""
            return self.rows[number]

    index = Index(["a", "b"])
    assert (index.name, index.description) == ("Index", "Return a row.")
    assert index.bind('{"number": "1"}') == ([], {"number": 1})
    assert index.timeout is None
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        index.nothing_of_that_name  # noqa: B018 - it is asked for


def test_what_an_init_set_by_hand_counts():
    class Remote(Tool):
        def __init__(self, name: str, schema: dict[str, Any]) -> None:
            self.name = name
            self.parameters = schema

        def run(self, **arguments) -> Any:
            return arguments

    remote = Remote("far", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    assert remote.bind('{"a": 1}') == ([], {"a": 1})
    assert remote.to_openai_tool()["function"]["name"] == "far"
    with pytest.raises(Exception, match="integer"):
        remote.bind('{"a": "x"}')

    class Given(Tool):
        parameters = {"type": "object", "properties": {"a": {"type": "integer"}}}

        def run(self, **arguments) -> Any:
            return arguments

    assert Given().bind('{"a": 1}') == ([], {"a": 1})


def test_a_tool_under_another_name():
    again = Tool(func=Shop(3).price, name="cost", timeout=5)
    assert (again.name, again.description, again.timeout) == ("cost", "Say the price.", 5)
    assert list(again.parameters["properties"]) == ["amount"]
    assert Tool(func=search, name="find").bind('{"query": "x"}') == ([], {"query": "x"})
    assert Tool(func=lambda: 3)() == 3


def test_a_timeout_of_the_class_is_checked_too():
    class Odd(Tool):
        timeout = "soon"

        def run(self) -> None: ...

    with pytest.raises(ToolDefinitionError, match="timeout must be seconds above 0"):
        Odd()


def test_nothing_to_call_is_refused():
    with pytest.raises(ToolDefinitionError, match="nothing to call"):
        Tool()
    with pytest.raises(ToolDefinitionError, match="a str cannot be called"):
        Tool(func="search")
    with pytest.raises(ToolDefinitionError, match="name must be a str"):
        Tool(func=print, name=3, parameters={})


# --- as_tool -----------------------------------------------------------------------------------------------


def test_as_tool_takes_what_a_toolkit_may_hold():
    assert as_tool(add) is add

    def plain(a: int) -> int: ...

    assert as_tool(plain).name == "plain"

    class Decorated:
        def as_tool(self, name: str | None = None) -> Tool:
            return add

        def __call__(self) -> None: ...

    assert as_tool(Decorated()) is add
    assert as_tool(lambda: 3).name == "function"


@pytest.mark.parametrize("candidate", [3, "add", None, [add]])
def test_as_tool_refuses_what_cannot_be_called(candidate):
    with pytest.raises(ToolDefinitionError, match="cannot be a tool in the toolkit of f"):
        as_tool(candidate, where="toolkit of f")


def test_as_tool_wants_an_object_and_no_class():
    with pytest.raises(ToolDefinitionError, match=r"it is a class\. Put an object into the toolkit: `Weather\(\)`"):
        as_tool(Weather)


# --- context and retry -------------------------------------------------------------------------------------


def test_a_context_by_itself_swallows_progress():
    ToolContext().emit("half way")
    told = "ToolContext(trace_id='t', func_name='', tool_name='', call_id='', context=3)"
    assert repr(ToolContext("t", context=3)) == told
