# /// script
# dependencies = ["celery", "gevent", "eventlet"]
# ///
"""`celery -P gevent`, `-P eventlet` and `-P prefork`; ten tasks call a function, one fails; results and errors go through JSON."""

import subprocess
import sys
from pathlib import Path

from scene import answers, asked, check, seen

Path("tasks.py").write_text(
    '''
from celery import Celery
from SimpleLLMFunc import OpenAICompatible, llm_function

app = Celery("shop", broker="filesystem://", backend="file:///%(place)s/results")
app.conf.broker_transport_options = {
    "data_folder_in": "%(place)s/queue", "data_folder_out": "%(place)s/queue", "control_folder": "%(place)s/control",
}

@llm_function(OpenAICompatible("m", max_retries=0))
def shout(word: str) -> str:
    """Shout."""

@app.task
def say(word):
    return shout(word)
'''
    % {"place": Path.cwd()}
)
for name in ("results", "queue", "control"):
    Path(name).mkdir()
sys.path.insert(0, ".")

from tasks import say

from SimpleLLMFunc import BadRequest


def tried(pool: str) -> None:
    before = len(asked())
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-P", pool, "-c", "4", "-l", "WARNING"]
    with subprocess.Popen(command) as worker:
        try:
            jobs = [say.delay(f"word {number}") for number in range(10)]
            check("right answers", [f"word {n}" in job.get(timeout=60) for n, job in enumerate(jobs)], [True] * 10)
            answers({"status": 400, "body": {"error": {"message": "no such model", "code": "model_not_found"}}})
            job = say.delay("a failure")
            error = job.get(timeout=60, propagate=False)
            check("the error's type", type(error), BadRequest)
            check("its text", ("no such model" in str(error), error.status), (True, 400))
            check("requests", len(asked()) - before, 11)
        finally:
            worker.terminate()
            check("exit code", worker.wait(30), 0)


for pool in ("gevent", "eventlet", "prefork"):
    tried(pool)
seen("30 right answers; the error arrives as BadRequest with its text and .status 400")
