# /// script
# dependencies = ["eventlet"]
# ///
"""`monkey_patch()` before the import; 20 green threads call a function, one streams."""

import eventlet

eventlet.monkey_patch()

import itertools

from scene import answers, asked, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function


@llm_function(OpenAICompatible("m"))
def shout(word: str) -> str:
    """Shout."""


answers({"texts": ["word 0"], "delay": 0.5})
turns = itertools.count()


def others() -> None:
    while True:
        next(turns)
        eventlet.sleep(0.001)


ticking = eventlet.spawn(others)
with eventlet.Timeout(60):
    said = list(eventlet.GreenPool().imap(shout, [f"word {number}" for number in range(20)]))
    check("what they said", all("word" in text for text in said), True)
    check("streamed", "again" in "".join(eventlet.spawn(lambda: list(shout.stream("again"))).wait()), True)
check("requests", len(asked()), 21)
had = next(turns)
check("others had their turns", had > 9, True)
ticking.kill()
seen(f"21 answers from 21 requests; another green thread had {had} turns meanwhile")
