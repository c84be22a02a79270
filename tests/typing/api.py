"""What a type checker sees: checked by mypy --strict and pyright, never run.

The lines marked `# wrong` must be refused by both; the tests in test_typing.py see to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from typing_extensions import assert_type

from SimpleLLMFunc import (
    Audio,
    ChatPair,
    File,
    ImgPath,
    LocalModel,
    Message,
    OpenAICompatible,
    Preview,
    ReActEvent,
    Result,
    Tool,
    budget,
    fill,
    llm_chat,
    llm_function,
    tool,
    use_llm,
)
from SimpleLLMFunc.batch import MapReport, MapRow, MapRows, RayEngine
from SimpleLLMFunc.batch.ray.cluster import RayActor
from SimpleLLMFunc.llm_decorator.answering import Agreement
from SimpleLLMFunc.tools import ToolContext, ToolRegistry
from SimpleLLMFunc.type.markers import ABSTAIN, Abstention, Confident, Quoted

llm = OpenAICompatible("gpt-4o-mini", api_key="not a key")


class Grade(BaseModel):
    score: int
    why: str


@tool
def search(query: str, limit: int = 3) -> list[str]:
    return [query] * limit


@tool(name="find", timeout=3, untrusted=True)
async def find(query: str, ctx: ToolContext[dict[str, str]]) -> list[str]:
    assert_type(ctx.context, dict[str, str])
    return [query]


@tool
def bare(ctx: ToolContext) -> None:
    ctx.emit("half way")


class Weather(Tool):
    name = "weather"
    timeout = 5.0

    def run(self, city: str, days: int = 1) -> str:
        return city * days


class Remote(Tool):
    async def run(self, *, path: str) -> bytes:
        return path.encode()


class Shop:
    @tool
    def price(self, amount: int) -> float:
        return amount * 1.5

    @tool(name="shop.close")
    async def close(self, *, hard: bool) -> str:
        return str(hard)


@llm_function(llm_interface=llm, toolkit=[search, find], temperature=0.2, thinking="low")
def grade(essay: str, *, strict: bool = False) -> Grade:
    raise NotImplementedError


@llm_function(llm)
async def agrade(essay: str, *, strict: bool = False) -> Grade:
    return fill()


def first_grade(essay: str) -> Grade | Literal[Abstention.ABSTAIN]:
    return Grade(score=0, why="empty") if not essay else ABSTAIN


class Finding(BaseModel):
    quote: Quoted[str]


@llm_function(llm, votes=3, min_agreement=0.7, vote_on=["score"], escalate_to=llm)
async def sure(essay: str) -> Confident[Grade]:
    raise NotImplementedError


@llm_function(llm, examples=[(("good",), Grade(score=5, why="good"))], max_examples=4)
def findings(report: str) -> list[Finding]:
    return fill()


@llm_function(llm, first=first_grade, fallback=first_grade, sample=0.05)
def coded(essay: str) -> Grade:
    return fill()


@llm_function
def shout(text: str) -> str:
    raise NotImplementedError


@llm_function
async def maybe(text: str) -> int | None:
    raise NotImplementedError


@llm_function()
def ideas(topic: str, count: int = 3) -> Iterator[Grade]:
    raise NotImplementedError


@llm_function()
async def aideas(topic: str) -> AsyncIterator[Grade]:
    raise NotImplementedError


@llm_function()
def dideas(topic: str) -> AsyncIterator[Grade]:
    raise NotImplementedError


@llm_chat(llm_interface=llm, toolkit=[search], stream=True)
async def chat(history: list[Message], message: str, picture: ImgPath | None = None) -> AsyncIterator[ChatPair]:
    raise NotImplementedError


@llm_chat
def talk(history: list[Message], message: str) -> Iterator[ChatPair]:
    return fill()


class Teacher:
    @llm_function(llm)
    def grade(self, essay: str) -> Grade:
        raise NotImplementedError

    @llm_function(llm)
    async def agrade(self, essay: str, strict: bool = False) -> Grade:
        raise NotImplementedError

    @llm_function(llm)
    def each(self, essay: str) -> Iterator[int]:
        raise NotImplementedError

    @llm_function(llm)
    async def aeach(self, essay: str) -> AsyncIterator[int]:
        raise NotImplementedError

    @llm_chat(llm)
    async def chat(self, history: list[Message], message: str) -> AsyncIterator[ChatPair]:
        raise NotImplementedError

    @llm_chat(llm)
    def talk(self, history: list[Message], message: str) -> Iterator[ChatPair]:
        raise NotImplementedError


def beyond_the_shape() -> None:
    finding = findings("x")[0]
    assert_type(finding.quote.start, int)
    assert_type(finding.quote.argument, str)
    text: str = finding.quote
    assert_type(coded(text), Grade)
    assert_type([File("a.pdf", root="in").path, Audio("a.wav", root="in").path], list[Path])
    assert_type(coded.agreement, Agreement)
    assert_type(coded.agreement.rate, float | None)
    assert_type(coded.call("x").source, Literal["model", "first", "fallback"])
    assert_type(coded.with_options(first=None, sample=0.5)("x"), Grade)


async def confident_views() -> None:
    confident = await sure("x")
    assert_type(confident, Confident[Grade])
    assert_type(confident.value, Grade)
    assert_type(confident.agreement, dict[str, float])
    assert_type(confident.votes, tuple[Grade, ...])
    assert_type(confident.value_or(None), Grade | None)
    assert_type(await sure.call("x"), Result[Confident[Grade]])
    assert_type(await sure.map(["x"]), MapReport[Confident[Grade]])
    assert_type(Quoted[str], type[Quoted[str]])


def sync_views() -> None:
    assert_type(grade("x", strict=True), Grade)
    assert_type(grade.call("x"), Result[Grade])
    assert_type(grade.call("x").value, Grade)
    assert_type(grade.stream("x"), Iterator[Grade])
    assert_type(grade.events("x"), Iterator[ReActEvent])
    assert_type(grade.preview("x"), Preview)
    assert_type(grade.as_tool(), Tool)
    assert_type(grade.with_options(temperature=1.0, template_params={"a": 1})("x"), Grade)
    assert_type(shout("x"), str)
    assert_type(ideas("x", count=2), Iterator[Grade])
    assert_type(ideas.call("x"), Result[list[Grade]])
    assert_type(ideas.stream("x"), Iterator[Grade])
    assert_type(search("x", limit=2), list[str])
    assert_type(grade.map(["x", ("y", True), {"essay": "z"}]), MapReport[Grade])
    assert_type(grade.map("rows.csv", concurrency=20, checkpoint="run.sqlite", on_error="raise"), MapReport[Grade])
    assert_type(grade.map(["x"], concurrency="auto", budget=0.5, retry_errors=True).rows[0].value, Grade)
    assert_type(grade.map(["x"], budget={"tokens": 5}, progress=print).rows[1:3], MapRows[Grade])
    assert_type(grade.map(["x"], budget=budget(usd=1)).cost, float | None)
    assert_type(ideas.map(["x"]), MapReport[list[Grade]])
    assert_type(grade.map(["x"], engine="ray"), MapReport[Grade])
    assert_type(grade.map(["x"], engine=RayEngine(workers=2, cpus=0.5)), MapReport[Grade])
    assert_type(grade.to_batch_file(["x"], "out.jsonl", on_error="skip"), list[Path])
    assert_type(grade.read_batch_file("in.jsonl", rows=["x"], checkpoint="run.sqlite"), MapReport[Grade])
    assert_type(ideas.read_batch_file(["1.jsonl", Path("2.jsonl")]), MapReport[list[Grade]])
    assert_type(grade.as_ray_actor(columns={"comment": "essay"}, concurrency=5), type[RayActor])

    teacher = Teacher()
    assert_type(teacher.grade("x"), Grade)
    assert_type(teacher.grade.call("x"), Result[Grade])
    assert_type(teacher.grade.preview("x"), Preview)
    assert_type(teacher.grade.with_options(max_reasks=0)("x"), Grade)
    assert_type(teacher.grade.map(["x"]), MapReport[Grade])
    assert_type(teacher.each("x"), Iterator[int])

    history: list[Message] = []
    for text, history in talk(history, "hello"):
        assert_type(text, str)
        assert_type(history, list[Message])
    for text, history in teacher.talk(history, "hello"):
        assert_type(text, str)
    with use_llm(LocalModel()) as local:
        assert_type(local, LocalModel)
        assert_type(shout.with_options(llm_interface=llm)("x"), str)


async def async_views() -> None:
    assert_type(await agrade("x", strict=True), Grade)
    coroutine: Coroutine[Any, Any, Grade] = agrade("x")
    assert_type(await coroutine, Grade)
    assert_type(await agrade.call("x"), Result[Grade])
    assert_type(agrade.preview("x"), Preview)
    assert_type(await maybe("x"), int | None)
    async for grown in agrade.stream("x"):
        assert_type(grown, Grade)
    async for event in agrade.events("x"):
        takes_event(event)
    async for item in aideas("x"):
        assert_type(item, Grade)
    async for item in dideas("x"):
        assert_type(item, Grade)
    assert_type(await aideas.call("x"), Result[list[Grade]])
    report = await agrade.map(numbers(), deadline=60)
    assert_type(report, MapReport[Grade])
    for row in report.rows:
        assert_type(row, MapRow[Grade])
        assert_type(row.value, Grade)
        assert_type(row.error, Exception | None)
    assert_type(await maybe.map(["x"]), MapReport[int | None])
    assert_type(await aideas.map(["x"]), MapReport[list[Grade]])
    assert_type(await agrade.to_batch_file(["x"], "out.jsonl"), list[Path])
    assert_type(await agrade.read_batch_file("in.jsonl", on_error="raise"), MapReport[Grade])
    assert_type(agrade.as_ray_actor(), type[RayActor])
    assert_type(await find("x", ToolContext(context={"a": "b"})), list[str])

    teacher = Teacher()
    assert_type(await teacher.agrade("x", strict=True), Grade)
    assert_type(await teacher.agrade.call("x"), Result[Grade])
    assert_type(await teacher.agrade.map(["x"]), MapReport[Grade])
    async for number in teacher.aeach("x"):
        assert_type(number, int)
    history: list[Message] = []
    async for text, history in chat(history, "hello", picture=None):
        assert_type(text, str)
        assert_type(history, list[Message])
    async for text, history in teacher.chat(history, "hello"):
        assert_type(text, str)


async def tools() -> None:
    assert_type(Weather().run("Rome", days=2), str)
    assert_type(await Remote().run(path="a"), bytes)
    shop = Shop()
    assert_type(shop.price(3), float)
    assert_type(await shop.close(hard=True), str)
    toolkit: list[Tool | Callable[..., Any]] = [
        search,
        find,
        bare,
        Weather(),
        Remote(),
        shop.price,
        shop.close,
        numbers,
    ]
    registry = ToolRegistry(*toolkit)
    assert_type(registry.names(), list[str])
    assert_type(await registry.invoke("search", query="x"), Any)
    assert_type(Tool(func=numbers, name="p", description="d", parameters={"type": "object"}), Tool)


def takes_event(event: ReActEvent) -> None: ...


async def numbers() -> AsyncIterator[int]:
    yield 1
