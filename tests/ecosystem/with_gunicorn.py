# /// script
# dependencies = ["gunicorn[gevent]"]
# ///
"""`gunicorn -k gevent`, with and without `--preload`; a WSGI application calls a function in 20 requests at once."""

import concurrent.futures
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from scene import asked, check, seen

Path("shop.py").write_text('''
from SimpleLLMFunc import OpenAICompatible, llm_function

@llm_function(OpenAICompatible("m"))
def shout(word: str) -> str:
    """Shout."""

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
    return [shout(environ["QUERY_STRING"]).encode()]
''')


def served(*more: str) -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-m gunicorn -k gevent -w 1 -b 127.0.0.1:{port}"
    command = [sys.executable, *options.split(), *more, "shop:app"]
    with subprocess.Popen(command) as server:
        try:

            def ask(number: int) -> bool:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/?word-{number}", timeout=30) as reply:
                    return f"word-{number}" in reply.read().decode()

            for _ in range(100):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.1)
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                return sum(pool.map(ask, range(20)))
        finally:
            server.terminate()
            check("exit code", server.wait(20), 0)


check("right answers", served(), 20)
check("right answers with --preload", served("--preload"), 20)
check("requests", len(asked()), 40)
seen("40 right answers from 40 requests; the workers end at SIGTERM")
