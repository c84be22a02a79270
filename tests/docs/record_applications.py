"""Record the cassettes of the applications in `examples/`, from answers that a person wrote.

python -m tests.docs.record_applications [FOLDER ...]

The requests are those of the programs. No service was asked: the answers below are what a good model says, with two
mistakes where the example shows what happens then.
"""

import asyncio
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from SimpleLLMFunc import use_llm
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest, tool_calls, use_cassette

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Reply = Callable[[ScriptedRequest], Any]


class Written(ScriptedLLM):
    """A model whose answers were written by a person; a cassette records a class of its own kind."""


def asked(request: ScriptedRequest) -> str:
    return str(next(message["content"] for message in request.messages if message["role"] == "user"))


def by_part(answers: dict[str, Any]) -> Reply:
    """Answer by the first key that is part of the question; a list is answered one by one as it is asked again."""

    def reply(request: ScriptedRequest) -> str:
        found = next(value for part, value in answers.items() if part in asked(request))
        if isinstance(found, list):
            found = found[sum(message["role"] == "assistant" for message in request.messages)]
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return reply


def invoice(*facts: str) -> dict[str, str]:
    return dict(zip(("seller", "number", "day", "currency", "net", "tax", "total"), facts, strict=True))


INVOICES = by_part(
    {
        "Papierhaus": invoice("Papierhaus Bern AG", "2026-0114", "2026-03-03", "CHF", "408.00", "33.05", "441.05"),
        "Nordlys": invoice("Nordlys Hosting ApS", "NH-88213", "2026-03-31", "EUR", "61.50", "15.38", "76.88"),
        "Conti": invoice("Giulia Conti", "17/2026", "2026-03-12", "EUR", "384.00", "84.48", "468.48"),
        "Seat & Table": [
            invoice("Seat & Table Inc.", "50921", "March 18", "USD", "1225.00", "98.00", "1323.00"),
            invoice("Seat & Table Inc.", "50921", "2026-03-18", "USD", "1225.00", "98.00", "1323.00"),
        ],
        "Blank": invoice("Blank & Partner Reinigung", "2026/031", "2026-03-31", "CHF", "720.00", "58.32", "788.32"),
    }
)

QUESTIONS = by_part(
    {
        "dog": [
            {"answer": "Yes, with written consent.", "quotes": ["Dogs and cats need written consent of the landlord"]},
            {
                "answer": "Yes, if the landlord agrees in writing.",
                "quotes": ["Dogs and cats need the written consent of the landlord"],
            },
        ],
        "paint": {
            "answer": "You may paint, but you pay for the white paint when you move out.",
            "quotes": [
                "The tenant may paint the walls.",
                "When moving out, the walls must be white again; the tenant pays for the paint.",
            ],
        },
        "parking": {"answer": "The files do not say.", "quotes": []},
    }
)


def grouped(**parts: str) -> dict[str, str]:
    """Return the answer of each part: ``spam="won, watches"``."""
    return {part: answer for answer, each in parts.items() for part in each.split(", ")}


SORTED = by_part(
    grouped(
        delivery="Where is my parcel, since Monday, in the rain, 1031",
        refund="order 1007, espresso, wrong size",
        spam="YOU HAVE WON, watches",
        other="Ascension, kettle in red, charged me twice, work for you",
    )
)


def mails(request: ScriptedRequest) -> Any:
    if not request.tools:
        return json.dumps(SORTED(request))
    number, francs = (1012, 480) if "espresso" in asked(request) else (1007, 24)
    told = sum(message["role"] == "tool" for message in request.messages)
    if told < 2:
        arguments = {"number": number} | ({"francs": francs} if told else {})
        return tool_calls((("read_order", "refund")[told], arguments))
    return f"We are sorry. The {francs} francs of order {number} are on their way to you."


COMMENTS = by_part(
    {
        part: {"topic": topic, "angry": angry}
        for part, topic, angry in [
            ("boils quickly", "quality", False), ("Three weeks", "delivery", True), ("twelve francs", "price", False),
            ("courier", "delivery", False), ("handle", "quality", True), ("sell tea", "other", False),
            ("Good quality", "quality", False), ("wet", "delivery", True), ("Cheaper", "price", False),
            ("It works", "quality", False),
        ]
    }
)  # fmt: skip

LARGE = grouped(
    now="ceiling, gas, sparks, lift", today="warm water, key, toilet", later="lamp, trumpet, hedge, mouse, noise"
)
SMALL = LARGE | grouped(today="lamp, mouse, sparks, noise", now="key, warm water")


def labels(answers: dict[str, str]) -> Reply:
    return by_part({part: json.dumps(label) for part, label in answers.items()})


def program(folder: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / folder / f"{folder}.py"), run_name="recorded")


@contextmanager
def recorded(cassette: str, reply: Reply, name: str = "written-by-hand") -> Iterator[None]:
    """Record what is asked in the block."""
    path = EXAMPLES / cassette
    path.unlink(missing_ok=True)
    with use_cassette(path, "all") as tape, use_llm(tape.wrap(Written(reply, repeat=True, model_name=name))):
        yield


def pdf_table() -> None:
    main = program("pdf_table")
    with recorded("pdf_table/cassette.json", INVOICES):
        main["table"](EXAMPLES / "pdf_table/invoices", Path("out"))


def ask_files() -> None:
    main = program("ask_files")
    passages = main["passages_of"](EXAMPLES / "ask_files/files")
    with recorded("ask_files/cassette.json", QUESTIONS):
        for question in ("May I keep a dog?", "Who pays if I paint the walls?", "Is there a parking space?"):
            main["answer"](question, main["nearest"](question, passages))


def mail_triage() -> None:
    main = program("mail_triage")
    journal = Path("journal.sqlite")
    with recorded("mail_triage/cassette.json", mails):
        main["triage"](EXAMPLES / "mail_triage/mails", journal)
        (waits,) = main["paused"](journal)
        main["answer"](journal, waits["key"], waits["call_id"], True)
        main["triage"](EXAMPLES / "mail_triage/mails", journal)
        main["evaluate"](main["topic"], EXAMPLES / "mail_triage/cases.jsonl", progress=False)


def nightly_job() -> None:
    main = program("nightly_job")
    with recorded("nightly_job/cassette.json", COMMENTS):
        main["classify"].map(EXAMPLES / "nightly_job/comments.csv", column="comment", progress=False).close()


def compare_models() -> None:
    main = program("compare_models")
    for name, answers in (("small", SMALL), ("large", LARGE)):
        with recorded(f"compare_models/cassette-{name}.json", labels(answers), name):
            main["evaluate"](main["priority"], EXAMPLES / "compare_models/cases.jsonl", progress=False)


def fastapi_service() -> None:
    grade = program("fastapi_service")["grade"]
    with recorded("fastapi_service/cassette.json", by_part({"kettle": '{"stars": 2, "mood": "angry"}'})):
        asyncio.run(grade("Two stars. The lid of this kettle is a joke."))


def main() -> None:
    programs = [pdf_table, ask_files, mail_triage, nightly_job, compare_models, fastapi_service]
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for each in programs:
            if not sys.argv[1:] or each.__name__ in sys.argv[1:]:
                each()


if __name__ == "__main__":
    main()
