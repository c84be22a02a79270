# /// script
# dependencies = ["ray", "SimpleLLMFunc[ray]"]
# ///
"""A map over two workers of which one is killed; a function of a script and its `with_options` in a remote task, by value."""

import os
import re
import signal
import subprocess
import threading
import time

import ray
from pydantic import BaseModel
from scene import answers, asked, check, seen

from SimpleLLMFunc import OpenAICompatible, llm_function
from SimpleLLMFunc.batch import RayEngine


class Note(BaseModel):
    text: str


@llm_function(OpenAICompatible("m"))
def note(about: str) -> Note:
    """Take a note."""


@llm_function(OpenAICompatible("m"))
def shout(word: str) -> str:
    """Shout."""


def kill_one() -> None:
    while len(asked()) < 20:
        time.sleep(0.05)
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    found = [line.split(None, 2) for line in listed.splitlines()[1:]]
    ours = {str(os.getpid())}
    for _ in range(3):  # the node is our child, its workers are the node's
        ours |= {pid for pid, parent, _ in found if parent in ours}
    # A worker that runs an actor is called after it, one without work IDLE; agents keep the node alive.
    workers = [pid for pid, _, what in found if pid in ours and re.match(r"ray::(?!IDLE|\w*Agent)", what)]
    os.kill(int(workers[0]), signal.SIGKILL)
    killed.set()


killed = threading.Event()
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
answers(*['{"text": "hi"}'] * 2)


@ray.remote
def asks(about: str, other: object) -> list[Note]:
    return [note(about), other(about)]


tasks = [asks.remote("a", note.with_options(temperature=0))]
check("remote tasks", ray.get(tasks, timeout=120), [[Note(text="hi")] * 2])
answers(*[{"texts": ["aye"], "delay": 0.1}] * 100)
threading.Thread(target=kill_one, daemon=True).start()
report = shout.map([f"w{n}" for n in range(100)], engine=RayEngine(workers=2), concurrency=4, progress=False)
check("a worker was killed", killed.is_set(), True)
check("answers", (len(report.rows), [row.error for row in report.rows if row.error]), (100, []))
again = len(asked()) - 102
check("asked twice", 0 <= again <= 4, True)
seen(f"100 of 100 rows answered, {again} of them asked again after the kill; both gave the type of the script")
