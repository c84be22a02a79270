"""Calls of every kind, and the answers they get: what each of them sends is kept, byte for byte, under `tests/golden`.

A case is an async function that takes an `Asked`: it scripts the answers, makes one call and reads it to its end. The
golden file of its group shows every request that the call made.
"""

from __future__ import annotations

import asyncio
import base64
import enum
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from SimpleLLMFunc import (
    ABSTAIN,
    Audio,
    CachedLLM,
    ChatPair,
    Confident,
    FallbackLLM,
    File,
    ImgPath,
    ImgUrl,
    Message,
    OpenAICompatible,
    Quoted,
    SimpleLLMFuncError,
    Text,
    Tool,
    llm_chat,
    llm_function,
    tool,
    use_llm,
)
from tests.support.functions import every
from tests.support.server import LoopbackServer, completion


@dataclass
class Asked:
    """What a case works with: the server whose answers it scripts, a model there, and a folder for its files."""

    server: LoopbackServer
    folder: Path

    def model(self, **options: Any) -> OpenAICompatible:
        given = {"api_key": "sk-golden-0123456789", "base_url": self.server.base_url, "max_retries": 0}
        return OpenAICompatible("golden-model", **{**given, **options})

    def says(self, value: Any) -> None:
        """Script an answer: a text as it is, anything else as JSON."""
        self.server.reply(value if isinstance(value, str) else json.dumps(value))


Case = Callable[[Asked], Awaitable[Any]]
CASES: dict[str, dict[str, Case]] = {}
"""The cases by group and name, in the order in which they stand here."""


def case(group: str) -> Callable[[Case], Case]:
    def keep(function: Case) -> Case:
        CASES.setdefault(group, {})[function.__name__.replace("_", " ").strip()] = function
        return function

    return keep


# --- what the calls are about -----------------------------------------------------------------------------------------


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Line(BaseModel):
    name: str = Field(description="What was bought.")
    price: Decimal


class Order(BaseModel):
    """An order of a shop."""

    number: Annotated[int, Field(ge=1)]
    lines: list[Line]
    due: date | None = None


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


@dataclass
class Point:
    x: float
    y: float = 0.0


class Span(NamedTuple):
    begin: int
    end: int


class Options(TypedDict):
    verbose: bool
    level: int


class Excerpt(BaseModel):
    quote: Quoted[str]
    why: str


ORDER = {"number": 7, "lines": [{"name": "Tee 茶", "price": 2.5}], "due": "2026-11-23"}


def function(returns: Any, llm: Any, **options: Any) -> Any:
    """Return a decorated function of two parameters that returns `returns`."""

    async def read(text: str, strict: bool = False):
        """Read the {kind} text. Say what is in it.

        Args:
            text: what somebody wrote.
        """

    read.__annotations__["return"] = returns
    return llm_function(llm_interface=llm, **options)(read).with_options(template_params={"kind": "short"})


Answer = Callable[[Asked], None] | Any
"""What the server says next: a script for it, or an answer for `Asked.says`."""


def refuses(message: str = "", status: int = 400) -> Answer:
    return lambda asked: asked.server.reply_status(status, message=message)


def calls(*made: tuple[str, Any], text: str | None = None) -> Answer:
    return lambda asked: asked.server.reply_tool_calls(list(made), text)


def script(asked: Asked, answers: Iterable[Answer]) -> None:
    for answer in answers:
        answer(asked) if callable(answer) else asked.says(answer)


def call(
    returns: Any, *answers: Answer, text: str = "It rains.", view: str = "", profile: str = "", **options: Any
) -> Case:
    """Return the case of one call, or of one view that yields, of a function that returns `returns`."""

    async def run(asked: Asked) -> None:
        script(asked, answers)
        read = function(returns, asked.model(**({"profile": profile} if profile else {})), **options)
        await (every(getattr(read, view)(text)) if view else read(text))

    return run


# --- output modes -----------------------------------------------------------------------------------------------------

for name, returns, answer in (
    ("text", str, "rain"), ("nothing", None, ""), ("int", int, {"value": 3}), ("float", float, {"value": 0.5}),
    ("bool", bool, {"value": True}), ("decimal", Decimal, {"value": 1.5}), ("date", date, {"value": "2026-11-23"}),
    ("timedelta", timedelta, {"value": "PT5M"}), ("enum", Mood, {"value": "good"}),
    ("literal", Literal["a", "b", 3], {"value": "a"}), ("optional", int | None, {"value": None}),
    ("list", list[str], {"value": ["a"]}), ("tuple", tuple[int, str], {"value": [1, "a"]}),
    ("set", set[int], {"value": [1]}), ("dict", dict[str, int], {"a": 1}), ("model", Order, ORDER),
    ("list of models", list[Line], {"value": ORDER["lines"]}), ("recursive model", Tree, {"name": "a", "children": []}),
    ("tagged union", Pet, {"kind": "cat", "lives": 9}), ("dataclass", Point, {"x": 1.0, "y": 2.0}),
    ("named tuple", Span, [1, 2]), ("typed dict", Options, {"verbose": True, "level": 1}), ("any", Any, {"value": 1}),
    ("quotes", Excerpt, {"quote": "rains", "why": "so"}),
):  # fmt: skip
    CASES.setdefault("types", {})[name] = call(returns, answer, text="It rains — 下雨.", profile="openai")

for mode in ("native", "tool", "prompt"):
    for name, returns, answer in (
        ("int", int, 3 if mode == "prompt" else {"value": 3}),
        ("model", Order, ORDER),
        ("iterator items", list[Line], ORDER["lines"] if mode == "prompt" else {"value": ORDER["lines"]}),
    ):
        said, text = (calls(("answer", answer)), "It rains.") if mode == "tool" else (answer, "It rains — 下雨.")
        case_of_mode = call(returns, said, text=text, profile="openai", output_mode=mode)
        CASES.setdefault("modes", {})[f"{mode}, {name}"] = case_of_mode

CASES["modes"] |= {
    "auto without a profile": call(Order, ORDER, profile="generic"),
    "down the ladder after refusals": call(
        Order, refuses("response_format json_schema is not supported"), refuses("tools are not supported"), ORDER,
        profile="openai"),
    "asked again with what did not fit": call(Order, {"number": 0, "lines": "none"}, ORDER, profile="openai"),
    "asked again in prompt mode": call(Order, "I would rather not.", ORDER, output_mode="prompt"),
    "asked again after nothing": call(str, "", "rain"),
    "own templates": call(
        int, "3", output_mode="prompt", user_prompt_template="With:\n{parameters}",
        system_prompt_template="Do this: {function_description}\n{parameters_description}\n{return_type_description}"),
}  # fmt: skip


# --- parameters -------------------------------------------------------------------------------------------------------


@case("parameters")
async def of_the_decorator_and_the_model(asked: Asked) -> None:
    asked.says("rain")
    llm = asked.model(api_params={"temperature": 1.0, "seed": 1, "extra_headers": {"X-Team": "weather"}})
    options = {"temperature": 0.2, "top_p": 0.9, "stop": ["END"], "extra_body": {"own": {"a": [1, None]}}}
    await function(str, llm, **options)("It rains.")


@case("parameters")
async def token_limits_by_profile(asked: Asked) -> None:
    for profile in ("openai", "generic", "deepseek"):
        asked.says("rain")
        await function(str, asked.model(profile=profile), max_tokens=20)("It rains.")


@case("parameters")
async def changed_with_options(asked: Asked) -> None:
    asked.says("rain")
    plain = function(str, None, temperature=0.2)
    await plain.with_options(llm_interface=asked.model(), temperature=None, seed=5)("It rains.")


@case("parameters")
async def the_model_around_the_call(asked: Asked) -> None:
    asked.says("rain")
    with use_llm(asked.model()):
        await function(str, None)("It rains.", strict=True, _template_params={"kind": "long"})


@case("parameters")
async def arguments_of_many_kinds(asked: Asked) -> None:
    @llm_function(llm_interface=asked.model())
    def many(
        a: int,
        b: float,
        c: Mood,
        d: Order,
        e: list[Any],
        f: dict[str, Any],
        g: Point,
        h: date,
        i: None = None,
        *rest: str,
        j: bool = True,
        **more: Any,
    ) -> str:
        """Take all of it."""

    asked.says("rain")
    plain, shaped = (1, 0.5, Mood.GOOD), (Order.model_validate(ORDER), [1, "zwei", {"drei": [3]}])
    others = ({"k": date(2026, 1, 2)}, Point(1, 2), date(2026, 11, 23), None, "x", "y")
    await as_async(many)(*plain, *shaped, *others, j=False, more_of_it='{braces} and "quotes"')


@case("parameters")
async def a_method(asked: Asked) -> None:
    class Shop:
        @llm_function(llm_interface=asked.model(profile="openai"))
        async def name(self, text: str) -> list[str]:
            """Name the goods."""

    asked.says({"value": ["tea"]})
    await Shop().name("tea and rice")


@case("parameters")
async def examples_in_each_mode(asked: Asked) -> None:
    examples = [(("Sunny.",), {"name": "sun", "price": 1}), ({"text": "Snow", "strict": True}, Line(name="s", price=2))]
    for mode in ("native", "prompt"):
        asked.says(ORDER["lines"][0])
        await function(Line, asked.model(profile="openai"), output_mode=mode, examples=examples)("It rains.")
    asked.server.reply_tool_calls([("answer", ORDER["lines"][0])])
    await function(Line, asked.model(profile="openai"), output_mode="tool", examples=examples)("It rains.")


NEAR = [((f"Text number {number} about {what}",), what) for number, what in enumerate(("sun", "rain", "snow"))]
CASES["parameters"]["the nearest examples"] = call(
    str, "rain", text="It rains: rain, rain.", examples=NEAR, max_examples=1
)


def as_async(sync: Any) -> Any:
    """Return a sync function as one that can be awaited: it waits for the bridge, and so in a thread."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(sync, *args, **kwargs)

    return call


# --- tools ------------------------------------------------------------------------------------------------------------


@tool
def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Tell the weather.

    Args:
        city: where.
        days: how many days ahead.
    """
    if city == "nowhere":
        raise ValueError("there is no such city")
    return {"city": city, "days": days, "weather": "rain"}


@tool(name="look.up", description="Look something up.", untrusted=True)
async def look_up(what: str, kinds: list[Literal["web", "book"]] | None = None) -> str:
    return f"{what}: see {', '.join(kinds or ['nothing'])}"


GIVEN = Tool(
    func=lambda **given: given,
    name="given",
    description="With a schema.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
)


PARIS, OPENAI = ("weather", {"city": "Paris"}), {"text": "Paris?", "profile": "openai"}
CASES["tools"] = {
    "one round and text": call(
        str, calls(PARIS, ("weather", {"city": "nowhere"}), text="Let me see."), "rain", text="Paris?",
        toolkit=[weather, look_up, GIVEN]),
    "two rounds and a typed value": call(
        Order, calls(("weather", {"city": "Paris", "days": "2"})),
        calls(("look_up", {"what": "tea", "kinds": ["web"]})), ORDER, toolkit=[weather, look_up], **OPENAI),
    "strict schemas": call(str, "rain", toolkit=[weather, look_up, GIVEN], **OPENAI),
    "arguments that do not fit and a tool that is not there": call(
        str, calls(("weather", {"city": 5, "days": "many"}), ("wether", {}), ("weather", "{broken")), "rain",
        text="Paris?", toolkit=[weather]),
    "the last turn offers none": call(
        str, calls(PARIS), "rain", text="Paris?", toolkit=[weather], max_tool_calls=1, tool_choice="auto"),
    "the answer is a tool too": call(
        int, calls(PARIS), calls(("answer", {"value": 3})), toolkit=[weather], output_mode="tool", **OPENAI),
}  # fmt: skip


@case("tools")
async def json_actions(asked: Asked) -> None:
    for profile in ("openai", "generic"):
        asked.says({"tool": "weather", "arguments": {"city": "Paris"}})
        asked.says({"answer": ORDER})
        await function(Order, asked.model(profile=profile), toolkit=[weather], tools="json")("Paris?")


CASES["tools"]["json actions after a refusal"] = call(
    str,
    refuses("tools are not supported by this model"),
    {"tool": "weather", "arguments": {"city": "Paris"}},
    {"answer": "rain"},
    text="Paris?",
    toolkit=[weather],
)


@case("tools")
async def a_function_as_a_tool(asked: Asked) -> None:
    inner = function(int, asked.model(profile="openai"))
    asked.server.reply_tool_calls([("read", {"text": "one two"})])
    asked.says({"value": 2})
    asked.says("two")
    await function(str, asked.model(), toolkit=[inner.as_tool()])("How many?")


@case("tools")
async def refused_by_nobody_and_cut(asked: Asked) -> None:
    def wipe(path: str) -> str:
        """Wipe it."""
        return "done"

    def long() -> str:
        """Tell a lot."""
        return "rain " * 40

    asked.server.reply_tool_calls([("wipe", {"path": "/"}), ("long", {})])
    asked.says("done")
    toolkit = [Tool(func=wipe, confirm=True), long]
    await function(str, asked.model(), toolkit=toolkit, max_result_chars=50)("Wipe it.")


@case("tools")
async def a_picture_as_a_result(asked: Asked) -> None:
    def look() -> Any:
        """Look."""
        return "a cat", ImgUrl("https://example.org/cat.png", detail="low")

    asked.server.reply_tool_calls([("look", {})])
    asked.says("a cat")
    await function(str, asked.model(), toolkit=[look])("What is there?")


# --- chats ------------------------------------------------------------------------------------------------------------


def chat(llm: Any, **options: Any) -> Any:
    @llm_chat(llm_interface=llm, **options)
    async def guide(
        history: list[Message] | None, message: str, mood: str | None = None, about: Any = None
    ) -> AsyncIterator[ChatPair]:
        """You are a guide to {place}."""

    return guide.with_options(template_params={"place": "Paris"})


HISTORY: list[Any] = [
    {"role": "system", "content": "left out"}, {"role": "user", "content": "message: hello"},
    {"role": "assistant", "content": "hello", "reasoning_content": "a greeting"},
]  # fmt: skip


def talk(
    *answers: Answer, history: Any = (), message: str = "hello", about: Any = None, profile: str = "", **options: Any
) -> Case:
    """Return the case of one message in a chat."""

    async def run(asked: Asked) -> None:
        script(asked, answers)
        llm = asked.model(**({"profile": profile} if profile else {}))
        await every(chat(llm, **options)(list(history), message, about=about))

    return run


CASES["chats"] = {"the first message": talk("hello")}


@case("chats")
async def two_turns(asked: Asked) -> None:
    asked.says("hello")
    asked.says("bye")
    guide = chat(asked.model())
    history = (await every(guide([], "hello", mood="kind")))[-1][1]
    await every(guide(history, "bye"))


CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}
TOOLS: list[Any] = [
    {"role": "user", "content": "Paris?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    {"role": "tool", "tool_call_id": "call_9", "content": "lost"}, {"role": "assistant", "content": "rain"},
]  # fmt: skip
ROME = calls(("weather", {"city": "Rome"}))
CASES["chats"] |= {
    "a history from elsewhere": talk("hello", history=HISTORY, message="again", about=Order.model_validate(ORDER)),
    "reasoning goes back where it must": talk("hello", history=HISTORY, message="again", profile="deepseek"),
    "a history with tools": talk(ROME, "sun", history=TOOLS, message="and Rome?", toolkit=[weather]),
}


@case("chats")
async def a_history_that_does_not_fit(asked: Asked) -> None:
    history: list[Any] = []
    for number in range(40):
        history += [{"role": "user", "content": f"{number} " * 30}, {"role": "assistant", "content": "so " * 30}]
    asked.says("hello")
    await every(chat(asked.model(context_window=900))(history, "again"))
    asked.says("hello")
    await every(chat(asked.model(context_window=900), compact=lambda given: given[-2:])(history, "again"))


@case("chats")
async def a_sync_chat(asked: Asked) -> None:
    @llm_chat(llm_interface=asked.model())
    def guide(history: list[Message], message: str) -> Iterator[ChatPair]:
        """You are a guide."""

    asked.says("hello")
    await as_async(lambda: list(guide([], "hello")))()


# --- pictures, sounds, files ------------------------------------------------------------------------------------------


# Of one red point; stored, not packed: other versions of zlib pack otherwise.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAAD0lEQVR4AQEEAPv/AP8AAAMBAQCNHeWCAAAAAElFTkSuQmCC"
)


@case("images")
async def by_address(asked: Asked) -> None:
    @llm_function(llm_interface=asked.model())
    async def see(picture: ImgUrl, question: str, more: list[ImgUrl] | None = None) -> str:
        """Answer."""

    asked.says("a cat")
    address = "https://example.org/cat.png?size=2"
    await see(ImgUrl(address), "what?", more=[ImgUrl(address, detail="high"), ImgUrl(address, detail="auto")])


@case("images")
async def from_a_file_and_typed(asked: Asked) -> None:
    @llm_function(llm_interface=asked.model(profile="openai"))
    async def see(question: str, picture: ImgPath) -> Line:
        """Answer."""

    path = asked.folder / "point.png"
    path.write_bytes(PNG)
    asked.says(ORDER["lines"][0])
    await see("what?", ImgPath(path, detail="low"))


@case("images")
async def sound_file_and_text(asked: Asked) -> None:
    @llm_function(llm_interface=asked.model())
    async def hear(sound: Audio, paper: File, note: Text) -> str:
        """Answer."""

    wave = asked.folder / "a.wav"
    wave.write_bytes(b"RIFF$\0\0\0WAVEfmt " + bytes(24))
    paper = asked.folder / "a.pdf"
    paper.write_bytes(b"%PDF-1.4\n%%EOF\n")
    asked.says("a bell")
    await hear(Audio(wave), File(paper), Text("mind the gap"))


CASES["images"]["in a chat"] = talk("a cat", message="what?", about=ImgUrl("https://example.org/cat.png"))


# --- streams ----------------------------------------------------------------------------------------------------------


CASES["streams"] = {
    "text in pieces": call(str, "rain and wind", view="stream"),
    "growing values": call(Order, ORDER, view="stream", profile="openai"),
}


@case("streams")
async def items(asked: Asked) -> None:
    @llm_function(llm_interface=asked.model(profile="openai"))
    def lines(text: str) -> AsyncIterator[Line]:
        """List the lines."""

    asked.says({"value": ORDER["lines"]})
    await every(lines("tea"))
    asked.says({"value": ORDER["lines"]})
    await lines.call("tea")


CASES["streams"] |= {
    "events with a tool": call(str, calls(PARIS), "rain", text="Paris?", view="events", toolkit=[weather]),
    "a chat in pieces": talk("hello there", stream=True),
    "a chat in raw chunks": talk("hello there", profile="generic", stream=True, return_mode="raw"),
    "usage is not asked for where it is not known": call(str, "rain", view="stream", profile="ollama"),
}


@case("streams")
async def a_sync_stream(asked: Asked) -> None:
    @llm_function(llm_interface=asked.model())
    def tell(text: str) -> Iterator[int]:
        """Count."""

    asked.says([1, 2])
    await as_async(lambda: list(tell("1 2")))()


# --- several requests for one answer ----------------------------------------------------------------------------------


@case("around")
async def votes(asked: Asked) -> None:
    asked.server.handler = lambda _: json.dumps({"value": 3})
    await function(Confident[int], asked.model(profile="openai"), votes=3, seed=7)("It rains.")


@case("around")
async def a_second_model(asked: Asked) -> None:
    asked.server.reply_status(503)
    asked.says("rain")
    first = asked.model()
    second = OpenAICompatible("second-model", api_key="sk-golden-2222222222", base_url=asked.server.base_url)
    await function(str, FallbackLLM(first, second))("It rains.")


@case("around")
async def a_cache(asked: Asked) -> None:
    asked.says("rain")
    cached = function(str, CachedLLM(asked.model(), asked.folder / "cache.sqlite"))
    assert await cached("It rains.") == await cached("It rains.")


@case("around")
async def plain_code_first(asked: Asked) -> None:
    def guess(text: str, strict: bool = False):
        return "sun" if "sun" in text else ABSTAIN

    asked.says("rain")
    guessed = function(str, asked.model(), first=guess)
    assert (await guessed("The sun."), await guessed("It rains.")) == ("sun", "rain")


@case("around")
async def rows_of_a_map(asked: Asked) -> None:
    asked.server.handler = lambda _: json.dumps({"value": 3})
    rows = ["one", ("two", True), {"text": "three"}]
    await function(int, asked.model(profile="openai")).map(rows, concurrency=1)


@case("around")
async def a_try_again(asked: Asked) -> None:
    asked.server.reply_status(500)
    asked.says("rain")
    await function(str, asked.model(max_retries=1, retry_delay=0.001))("It rains.")


@case("around")
async def an_error(asked: Asked) -> None:
    asked.server.reply_json(completion(None, finish_reason="content_filter"))
    try:
        await function(str, asked.model())("It rains.")
    except SimpleLLMFuncError:
        return
    raise AssertionError("a blocked answer is an error")
