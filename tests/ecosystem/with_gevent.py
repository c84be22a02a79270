# /// script
# dependencies = ["gevent"]
# ///
"""`monkey.patch_all()` before the import; 20 greenlets call a function, one streams."""

from gevent import monkey

monkey.patch_all()

import itertools

import gevent
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
        gevent.sleep(0.001)


ticking = gevent.spawn(others)
jobs = [gevent.spawn(shout, f"word {number}") for number in range(20)]
gevent.joinall(jobs, timeout=60, raise_error=True)
check("what they said", all("word" in job.value for job in jobs), True)
check("streamed", "again" in "".join(gevent.spawn(lambda: list(shout.stream("again"))).get(timeout=20)), True)
check("requests", len(asked()), 21)
had = next(turns)
check("others had their turns", had > 9, True)
seen(f"21 answers from 21 requests; another greenlet had {had} turns meanwhile")
