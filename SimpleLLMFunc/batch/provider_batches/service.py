"""The endpoints that a batch needs: files and batches, through the model's `.client`.

The rules are those of a chat: tries and pauses as `retry` decides them, nothing leaves where real calls are forbidden,
a budget counts every request, and what the openai package raises comes out as ours.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from SimpleLLMFunc.errors import BadReply, BadRequest, UsageError
from SimpleLLMFunc.interface.attempts import HttpModel, check_real_call_allowed, now, retried
from SimpleLLMFunc.interface.http import failure_of_exception
from SimpleLLMFunc.interface.http.openai_client import warm_up_clients
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import charge_fetch, charge_try, current_deadline
from SimpleLLMFunc.interface.wires import Received, failure_of, read_error
from SimpleLLMFunc.logger import redact_head
from SimpleLLMFunc.runtime import import_module, in_thread
from SimpleLLMFunc.type import count, mapping, mappings, text_or_none

T = TypeVar("T")

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_LISTED = 100
"""Batches on a page of the list."""

_PAGES = 5

TAG = "simplellmfunc"
"""In the metadata of a batch: its maker finds it by this."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch as the service sees it.

    Attributes:
        status: "validating", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled".
        files: ids of the files that hold answers and errors.
        problem: why it failed, as the service says.
        codes: of its errors.
        total, done: requests in it, and those that have ended.
    """

    id: str
    status: str
    files: tuple[str, ...] = ()
    problem: str = ""
    codes: frozenset[str] = frozenset()
    total: int = 0
    done: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in _ENDED

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> BatchState:
        """Read the service's object; missing fields keep their defaults."""
        counts = data.get("request_counts")
        problems = mappings(mapping(data.get("errors")).get("data"))
        names = (text_or_none(data.get("output_file_id")), text_or_none(data.get("error_file_id")))
        return cls(
            id=str(data.get("id") or ""),
            status=str(data.get("status") or ""),
            files=tuple(name for name in names if name),
            problem=redact_head("; ".join(_told(each) for each in problems[:3]), 500),
            codes=frozenset(str(each["code"]) for each in problems if each.get("code")),
            total=count(counts, "total"),
            done=count(counts, "completed") + count(counts, "failed"),
        )


def _told(problem: Mapping[str, Any]) -> str:
    line = problem.get("line")
    return f"{problem.get('message') or problem.get('code')}{f' (line {line})' if line is not None else ''}"


class BatchService:
    """Files and batches of the service behind a model, to be used inside ``async with service.opened()``.

    Args:
        llm: the model; its key, address, tries and timeouts count here too.

    Attributes:
        address: where the batches are.

    Raises:
        UsageError: the model has no address.
    """

    def __init__(self, llm: LLM_Interface) -> None:
        lent = llm.lent_client() if isinstance(llm, HttpModel) else None
        if lent is None or not isinstance(llm, HttpModel):
            raise UsageError(
                f"a service runs batches, and {type(llm).__name__} is not asked over HTTP. Give the function an "
                'OpenAICompatible, or leave out engine="openai-batch".'
            )
        self._llm = llm
        self.address = str(llm.base_url)
        self._client: Any = None
        self._lent = lent

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None, None]:
        """Hold a client of the service, for all other methods."""
        await import_module("openai.resources.files")  # a client loads it when it is first asked for it, on the loop
        await warm_up_clients()
        async with self._lent as self._client:
            yield

    async def upload(self, path: Path, name: str) -> str:
        """Upload a file of requests, and return its id.

        Raises:
            ProviderError: the service failed or refused.
        """

        async def send(client: Any) -> Any:
            file = await in_thread(lambda: path.open("rb"))
            try:
                return await client.files.create(file=(name, file, "application/jsonl"), purpose="batch")
            finally:
                await in_thread(file.close)

        return self._text(getattr(await self._tried(send), "id", None), "the uploaded file has no id")

    async def create(self, file_id: str, endpoint: str, tag: str) -> BatchState:
        """Begin a batch; `tag` finds it again.

        Raises:
            ProviderError: the service failed or refused.
        """
        body = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": "24h", "metadata": {TAG: tag}}
        begun = False

        async def begin(client: Any) -> Any:
            nonlocal begun
            # A try that failed may have arrived: what it began is not begun, and paid, a second time.
            if begun and (found := await self._listed(client, tag)) is not None:
                return found
            begun = True
            return await client.post("/batches", cast_to=object, body=body)

        return self._state(await self._tried(begin))

    async def retrieve(self, batch_id: str) -> BatchState:
        """Return how far a batch is.

        Raises:
            BadRequest: the service does not know it.
            ProviderError: the service failed or refused.
        """
        place = f"/batches/{quote(batch_id, safe='')}"
        return self._state(await self._tried(lambda client: client.get(place, cast_to=object), charge_fetch))

    async def find(self, tag: str) -> BatchState | None:
        """Return the batch that was begun with `tag`, None if the latest batches do not have it.

        Raises:
            ProviderError: the service failed or refused.
        """
        found = await self._tried(lambda client: self._listed(client, tag), charge_fetch)
        return None if found is None else self._state(found)

    async def _listed(self, client: Any, tag: str) -> Mapping[str, Any] | None:
        after: dict[str, str] = {}
        for _ in range(_PAGES):
            query = urlencode({"limit": _LISTED, **after})
            page = await client.get(f"/batches?{query}", cast_to=object)
            batches = mappings(mapping(page).get("data"))
            for each in batches:
                if mapping(each.get("metadata")).get(TAG) == tag:
                    return each
            if not batches or not page.get("has_more"):
                break
            after = {"after": str(batches[-1].get("id"))}
        return None

    async def download(self, file_id: str, path: Path) -> None:
        """Write the content of a file to `path`, as it comes.

        Raises:
            ProviderError: the service failed or refused.
        """

        async def fetch(client: Any) -> None:
            async with client.files.with_streaming_response.content(file_id) as response:
                await response.stream_to_file(path)

        await self._tried(fetch, charge_fetch)

    async def remove(self, file_id: str) -> None:
        """Take a file away from the service.

        Raises:
            ProviderError: the service failed or refused.
        """
        place = f"/files/{quote(file_id, safe='')}"
        await self._tried(lambda client: client.delete(place, cast_to=object), charge_fetch)

    def _state(self, data: Any) -> BatchState:
        if not isinstance(data, Mapping):
            raise BadReply(self._llm.model_name, problem="a batch was expected", head=redact_head(str(data), 500))
        state = BatchState.read(data)
        self._text(state.id, "the batch has no id")
        return state

    def _text(self, value: Any, problem: str) -> str:
        if not isinstance(value, str) or not value:
            raise BadReply(self._llm.model_name, problem=problem)
        return value

    async def _tried(self, send: Callable[[Any], Awaitable[T]], charge: Callable[[], object] = charge_try) -> T:
        """Return what `send` gives, tried as often as the model's calls are.

        Args:
            send: makes the request with a client.
            charge: pays for it; a budget does not keep anybody from fetching what is paid.
        """
        llm = self._llm
        clock = current_deadline()

        async def attempt(tries: int) -> T:
            check_real_call_allowed(llm.model_name)
            clock.check("waiting for the batches of the service")
            charge()
            try:
                return await send(self._client.with_options(max_retries=0))
            except Exception as error:  # noqa: BLE001 - every error of the openai package becomes ours
                failure = self._failure(error, tries)
            # Not inside the block above: the foreign one would stay as the context of ours, secrets and all.
            raise failure

        return await retried(
            attempt, clock=clock, max_retries=llm.max_retries, retry_delay=llm.retry_delay, longest_wait=llm.timeout
        )

    def _failure(self, error: Exception, tries: int) -> Exception:
        name = self._llm.model_name
        response, status = getattr(error, "response", None), getattr(error, "status_code", None)
        if response is None or not isinstance(status, int):
            return failure_of_exception(error, name, tries)
        try:
            body = bytes(response.content)
        except Exception:  # noqa: BLE001 - the body of a streamed answer may not have been read; the status says enough
            body = b""
        failed = failure_of(read_error(body), Received(name, tries, status, response.headers, now()))
        if isinstance(failed.error, BadRequest) and status in {404, 405}:
            failed.error.add_note(f"{self.address} may have no files or batches at all.")
        return failed
