"""What the scripts of this folder use: the service that is asked, and the line that says what was seen.

The service runs outside of the script's process, so that a script may patch, mock or record all it has. `make ecosystem`
starts it, and names it in OPENAI_BASE_URL. It speaks chat completions and Responses, and answers with the text of the
last message, unless `answers` has said what comes next.
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any, NoReturn


def answers(*replies: Any) -> None:
    """Say what the next requests are answered with.

    A text; or a dict with `texts`, `calls` (pairs of a tool's name and its arguments), `thinking` and `delay` (seconds); or a dict with
    `status`, `headers` and `body`, which goes out as it is.
    """
    _ask("answers", json.dumps(replies).encode())


def asked() -> list[dict[str, Any]]:
    """Return the requests so far: `path`, `headers`, `body`."""
    return _ask("asked")


def _ask(what: str, body: bytes | None = None) -> Any:
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with straight.open(f"{os.environ['OPENAI_BASE_URL']}/{what}", body, timeout=20) as reply:
        return json.load(reply)


def check(what: str, found: object, wanted: object) -> None:
    """End the script where something is not as it should be; kept apart from `assert`, which tools rewrite or drop."""
    if found != wanted:
        raise SystemExit(f"{what}: {found!r}, and should be {wanted!r}")


def seen(text: str) -> None:
    """Say what was seen; the last words of a script."""
    print(json.dumps({"seen": text}), flush=True)


def skip(why: str) -> NoReturn:
    """End the script because the machine lacks something that no package brings, such as a compiler."""
    print(json.dumps({"skipped": why}), flush=True)
    raise SystemExit(0)
