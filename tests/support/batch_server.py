"""A loopback service with files and batches, which answers what is in them and misbehaves where it is told to."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.connections import Recorded
from tests.support.server import Answer, LoopbackServer, completion, error_answer, json_answer
from tests.support.services import responses_reply

ENDED = {"completed", "failed", "expired", "cancelled"}


@dataclass
class Outcome:
    """What becomes of one batch.

    Attributes:
        status: at the end.
        answered: so many of its lines are, the first ones; None for all.
        line_errors: status and message by the place of a line.
        texts: answers by the place of a line, instead of what the server answers.
        missing: places of lines that stand in no file.
        garbage: what else stands among the answers.
        errors: of the batch itself.
        polls: looks at it until it ends.
    """

    status: str = "completed"
    answered: int | None = None
    line_errors: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    texts: Mapping[int, str | dict[str, Any]] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    garbage: tuple[bytes, ...] = ()
    errors: tuple[dict[str, Any], ...] = ()
    polls: int = 1


class BatchServer(LoopbackServer):
    """The service.

    Attributes:
        answer_to: gives the text for the body of a request, in a batch or live.
        files: contents by id.
        batches: as the service shows them, by id, in the order they were made.
        paid: the user message of every request that was answered, in a batch or live.
        live: bodies of the requests that came one by one.
        outcomes: of the batches to come; those without one are completed.
    """

    def __init__(self, answer_to: Callable[[dict[str, Any]], Any] | None = None) -> None:
        super().__init__(self._route)
        self.answer_to = answer_to or question
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.paid: list[str] = []
        self.live: list[dict[str, Any]] = []
        self.outcomes: deque[Outcome] = deque()
        self._numbers = itertools.count()
        self._ending: dict[str, Outcome] = {}
        self._troubles: list[tuple[str, Answer, bool]] = []

    def trouble(self, what: str, answer: Answer, *, after: bool = False) -> None:
        """Answer the next request of this kind (``"POST /files"``) so; with `after`, although it is carried out."""
        self._troubles.append((what, answer, after))

    @property
    def lines(self) -> int:
        """Requests in all batches that were made."""
        return sum(len(self._requests(batch)) for batch in self.batches.values())

    def _route(self, request: Recorded) -> Answer:
        place = urlsplit(request.path)
        path = place.path.removeprefix("/v1")
        for trouble in self._troubles:
            what, answer, after = trouble
            method, _, start = what.partition(" ")
            if request.method == method and path.startswith(start):
                self._troubles.remove(trouble)
                if after:
                    self._carried_out(request, path, parse_qs(place.query))
                return answer
        return self._carried_out(request, path, parse_qs(place.query))

    def _carried_out(self, request: Recorded, path: str, query: Mapping[str, list[str]]) -> Answer:
        match request.method, path.strip("/").split("/"):
            case "POST", ["files"]:
                return self._upload(request)
            case "GET", ["files", name, "content"] if name in self.files:
                data = self.files[name]
                return Answer(headers={"content-type": "application/octet-stream"}, pieces=[data[:7], data[7:]])
            case "DELETE", ["files", name] if name in self.files:
                del self.files[name]
                return json_answer({"id": name, "object": "file", "deleted": True})
            case "POST", ["batches"]:
                return self._create(request.body)
            case "GET", ["batches"]:
                return self._list(query)
            case "GET", ["batches", name] if name in self.batches:
                self._advance(name)
                return json_answer(self.batches[name])
            case "POST", ["chat", "completions"]:
                self.live.append(request.body)
                self.paid.append(question(request.body))
                return json_answer(reply_to(self.answer_to(request.body), request.body))
        return error_answer(404, f"there is no {path}")

    def _upload(self, request: Recorded) -> Answer:
        found = re.search(r'boundary="?([^";]+)', request.headers["content-type"])
        assert found, "multipart"
        fields: dict[str, bytes] = {}
        for part in request.raw.split(f"--{found[1]}".encode())[1:-1]:
            head, _, body = part.partition(b"\r\n\r\n")
            name = re.search(rb'name="([^"]+)"', head)
            assert name, head
            fields[name[1].decode()] = body.removesuffix(b"\r\n")
        assert fields["purpose"] == b"batch"
        file_id = f"file-{next(self._numbers)}"
        self.files[file_id] = fields["file"]
        return json_answer({"id": file_id, "object": "file", "purpose": "batch", "bytes": len(fields["file"])})

    def _create(self, body: Any) -> Answer:
        if body["input_file_id"] not in self.files:
            return error_answer(400, "no such file")
        urls = {
            json.loads(line).get("url", body["endpoint"]) for line in self.files[body["input_file_id"]].splitlines()
        }
        assert urls == {body["endpoint"]} <= {"/v1/chat/completions", "/v1/responses"}
        batch = {
            "id": f"batch_{len(self.batches)}", "object": "batch", "endpoint": body["endpoint"],
            "completion_window": body["completion_window"], "input_file_id": body["input_file_id"],
            "status": "validating", "created_at": 1, "metadata": body.get("metadata"), "output_file_id": None,
            "error_file_id": None, "errors": None,
        }  # fmt: skip
        self.batches[batch["id"]] = batch
        self._ending[batch["id"]] = self.outcomes.popleft() if self.outcomes else Outcome()
        return json_answer(batch)

    def _list(self, query: Mapping[str, list[str]]) -> Answer:
        newest = list(reversed(self.batches.values()))
        after = query.get("after", [""])[0]
        names = [batch["id"] for batch in newest]
        start = names.index(after) + 1 if after else 0
        page = newest[start : start + 2]  # small, so that pages are turned
        return json_answer({"object": "list", "data": page, "has_more": start + 2 < len(newest)})

    def _requests(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]

    def _advance(self, name: str) -> None:
        batch, outcome = self.batches[name], self._ending[name]
        if batch["status"] in ENDED:
            return
        outcome.polls -= 1
        batch["status"] = "in_progress"
        if outcome.polls >= 0:
            return
        batch["status"] = outcome.status
        if outcome.errors:
            batch["errors"] = {"object": "list", "data": list(outcome.errors)}
        if outcome.status == "failed":
            return
        good, bad = self._answers(self._requests(batch), outcome)
        batch["request_counts"] = {"total": len(good) + len(bad), "completed": len(good), "failed": len(bad)}
        for field_name, lines in (("output_file_id", [*good, *outcome.garbage]), ("error_file_id", bad)):
            if lines:
                random.Random(name).shuffle(lines)
                batch[field_name] = f"file-{next(self._numbers)}"
                self.files[batch[field_name]] = b"\n".join(lines) + b"\n"

    def _answers(self, requests: list[dict[str, Any]], outcome: Outcome) -> tuple[list[bytes], list[bytes]]:
        good: list[bytes] = []
        bad: list[bytes] = []
        for place, request in enumerate(requests):
            line: dict[str, Any] = {"id": f"batch_req_{place}", "custom_id": request["custom_id"], "error": None}
            if outcome.answered is not None and place >= outcome.answered:
                line |= {"response": None, "error": {"code": f"batch_{outcome.status}", "message": "not in time"}}
                bad.append(json.dumps(line).encode())
            elif place in outcome.missing:
                continue
            elif place in outcome.line_errors:
                status, message = outcome.line_errors[place]
                body: Any = {"error": {"message": message, "type": None, "code": None}}
                line["response"] = {"status_code": status, "request_id": f"req_{place}", "body": body}
                bad.append(json.dumps(line).encode())
            else:
                self.paid.append(question(request["body"]))
                text = outcome.texts.get(place)
                body = reply_to(self.answer_to(request["body"]) if text is None else text, request["body"])
                line["response"] = {"status_code": 200, "request_id": f"req_{place}", "body": body}
                good.append(json.dumps(line).encode())
        return good, bad


def question(body: Mapping[str, Any]) -> str:
    """The last message of a request, without what the prompt puts around the argument."""
    said = (body.get("messages") or body["input"])[-1]["content"]
    return str(said if isinstance(said, str) else said[-1]["text"]).rpartition(": ")[2]


def reply_to(answer: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    """A whole reply: a text becomes one."""
    if isinstance(answer, dict):
        return answer
    if "input" in body:
        said = {"number": 0, "texts": [answer], "calls": [], "thinking": "hm", "opaque": False}
        return {**responses_reply(said), "model": body["model"]}
    return completion(answer, model=body["model"])
