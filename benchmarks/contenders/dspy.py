"""dspy's `Predict` with its own prompts and form of answers, and without its cache."""

from __future__ import annotations

from typing import Any, ClassVar

import dspy

from benchmarks.contenders._order import Order
from benchmarks.contenders._worker import MODEL, SYSTEM, TURNS, serve


class Answer(dspy.Signature):  # type: ignore[misc]
    __doc__ = SYSTEM

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


class Read(dspy.Signature):  # type: ignore[misc]
    __doc__ = SYSTEM

    question: str = dspy.InputField()
    order: Order = dspy.OutputField()


class Talk(dspy.Signature):  # type: ignore[misc]
    __doc__ = SYSTEM

    history: dspy.History = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


HISTORY = dspy.History(
    messages=[
        {"question": asked["content"], "answer": answered["content"]}
        for asked, answered in zip(TURNS[1:-1:2], TURNS[2:-1:2], strict=True)
    ]
)


class Client:
    lacks: ClassVar = {
        "tool": "its agents take three answers in a form of their own for it",
        "stream": "streams through listeners on its own form of answers",
    }

    def __init__(self, url: str) -> None:
        self._lm = dspy.LM(f"openai/{MODEL}", api_base=url, api_key="sk-bench", cache=False)
        self._answer: Any = dspy.Predict(Answer)
        self._read: Any = dspy.Predict(Read)
        self._talk: Any = dspy.Predict(Talk)

    async def plain(self, text: str) -> str:
        return (await self._answer.acall(question=text, lm=self._lm)).answer

    async def typed(self, text: str) -> Order:
        return (await self._read.acall(question=text, lm=self._lm)).order

    async def history(self, _: str) -> str:
        return (await self._talk.acall(history=HISTORY, question=TURNS[-1]["content"], lm=self._lm)).answer

    def sync(self, text: str) -> str:
        return self._answer(question=text, lm=self._lm).answer


if __name__ == "__main__":
    serve(Client)
