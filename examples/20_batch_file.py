# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""Half the price: a file of requests for a service's batches, and its file of answers read back, with all that may be wrong in it.

Model: none is asked; the file is for `OpenAICompatible`, in the line `llm = …`.
"""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from SimpleLLMFunc import OpenAICompatible, llm_function

# The key would only be needed to send something. With engine="openai-batch" f.map does all of this itself.
llm = OpenAICompatible("gpt-4o-mini", api_key="not-used-here")


class City(BaseModel):
    name: str
    country: str


@llm_function(llm_interface=llm)
def locate(sentence: str) -> City:
    """Name the city that the sentence is about."""
    raise NotImplementedError


def service(requests: list[dict[str, Any]]) -> list[str]:
    """Answer a file of requests as a service does: in any order, and not always well."""
    answers = [
        '{"name": "Paris", "country": "France"}',
        'Sure! {"name": "Uppsala", "country": "Sweden"}',
        '{"name": "Ki',
        None,
    ]
    lines = []
    for request, text in zip(requests, answers, strict=True):
        message = {"role": "assistant", "content": text}
        reason = "length" if text == '{"name": "Ki' else "stop"
        body = {
            "model": request["body"]["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 120, "completion_tokens": 12},
        }
        response: dict[str, Any] = {"status_code": 200, "request_id": "req", "body": body}
        if text is None:
            response = {"status_code": 500, "request_id": "req", "body": {"error": {"message": "try again"}}}
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": response, "error": None}))
    random.shuffle(lines)
    return lines


def main() -> None:
    sentences = ["The Louvre is full.", "The university is old.", "The temples are quiet.", "It rains."]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = locate.to_batch_file(sentences, folder / "requests.jsonl")
        requests = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
        print(f"{files[0].name}: {len(requests)} requests, the first one {requests[0]['custom_id']}")

        (folder / "answers.jsonl").write_text("\n".join(service(requests)), encoding="utf-8")
        report = locate.read_batch_file(folder / "answers.jsonl", rows=sentences)
        for row in report.rows:
            found = row.value if row.error is None else f"{type(row.error).__name__}: {row.error}"
            print(f"{row.row:24} {found}")
        print(report)


if __name__ == "__main__":
    main()
