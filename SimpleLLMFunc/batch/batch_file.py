"""A map as a provider's batch file, out and back: the user sends the file and fetches the answers."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from SimpleLLMFunc.base.run import Answer
from SimpleLLMFunc.batch.map import map_rows
from SimpleLLMFunc.batch.provider_batches import lines
from SimpleLLMFunc.batch.provider_batches.answer_store import AnswerStore
from SimpleLLMFunc.batch.relayed import Decorated, Relayed
from SimpleLLMFunc.batch.report import MapReport, replaced_whole
from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.feed import Feed
from SimpleLLMFunc.batch.rows.rows import InputRow, Rows, opened
from SimpleLLMFunc.config import file_path, file_to_write
from SimpleLLMFunc.errors import ConfigError, RunError, UsageError, counted
from SimpleLLMFunc.logger import border, push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.storage import KEY_BYTES, key_of, version_of

R = TypeVar("R")


# --- out -------------------------------------------------------------------------------------------------


@border
async def to_batch_file(
    function: Decorated[Any], rows: Rows, path: str | os.PathLike[str], *, on_error: Literal["raise", "skip"] = "raise"
) -> list[Path]:
    """Write one request a row, in the OpenAI Batch JSONL format, and return the files.

    One file is called `path`; of several, ``requests.jsonl`` becomes ``requests-0001.jsonl``, ``requests-0002.jsonl`` …
    The ``custom_id`` of a row stays the same as long as the row, its place and the function do. Either all files are
    written, or none.

    Args:
        function: of one request a row.
        rows: as `read_rows` takes them.
        path: of the file, replaced where there is one.
        on_error: "raise" for a row that cannot be read or does not fit the function, "skip" to leave it out.

    Raises:
        UsageError: the function has tools, or a row cannot be asked.
        ConfigError: there is no model to ask, or a file cannot be written.
    """
    lines.check_single_shot(function)
    lines.endpoint_of(function.llm)
    if on_error not in {"raise", "skip"}:
        raise UsageError(f'on_error is "raise" or "skip", not {on_error!r}.')
    target = file_to_write(path)
    version = version_of(function.definition())
    arguments = RowArguments(function)

    def requests_of(piece: Sequence[InputRow], _: object) -> list[lines.RequestLine]:
        found = []
        for row in piece:
            try:
                found.append(_request(function, arguments, version, row))
            except UsageError as error:
                if on_error == "raise":
                    if row.error is None:
                        error.add_note(f"It was row {row.index}, from 0{f' (line {row.line})' if row.line else ''}.")
                    raise
                push_warning(f"row {row.index} was left out of the file: {error}")
        return found

    with tempfile.TemporaryDirectory(prefix=".part-", dir=target.parent) as folder:
        feed = Feed(rows, arguments if on_error == "raise" else None)
        async with aclosing(lines.request_files(feed, requests_of, Path(folder))) as written:
            paths = [file.path async for file in written]
        return await in_thread(_named, paths, target)


def _request(function: Decorated[Any], arguments: RowArguments, version: bytes, row: InputRow) -> lines.RequestLine:
    try:
        args, kwargs = arguments.of(row)
        key = key_of(version, function.bind(args, kwargs))
        return lines.request_line(function, key, row.index, args, kwargs)
    except (OSError, ValueError) as error:  # a picture that is gone, say
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"it cannot be written as a request: {error}") from error


def _named(paths: Sequence[Path], target: Path) -> list[Path]:
    """Give the files their names, which depend on how many there are; no rows are an empty file."""
    many = [target.with_stem(f"{target.stem}-{number:04}") for number in range(1, len(paths) + 1)]
    names = many if len(paths) > 1 else [target]
    for place, name in enumerate(names):
        with replaced_whole(name) as part:
            if paths:
                paths[place].replace(part)
            else:
                part.touch()
    return names


# --- back ------------------------------------------------------------------------------------------------


@border
async def read_batch_file(
    function: Decorated[R],
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    rows: Rows | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_error: Literal["keep", "raise"] = "keep",
) -> MapReport[R]:
    """Read the answers to what `to_batch_file` wrote, in the order of the rows; nothing is asked.

    Args:
        function: the one that wrote the requests.
        path: the file of answers, or several: the parts, and the files of errors.
        rows: the rows that were asked. With them the report holds each row, and answers are found by what was asked:
            also where rows were added or moved since. Without them the places in the ``custom_id`` count, a gap is
            a row without an answer, and `MapRow.row` is the ``custom_id``.
        checkpoint: keep the values there, where `f.map` with the same rows finds them.
        on_error: as for the map.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: it holds no answer to a request of ours.
    """
    lines.check_single_shot(function)
    if checkpoint is not None and rows is None:
        raise UsageError("a checkpoint keeps values by their rows. Give rows= as well.")
    paths = [file_path(path)] if isinstance(path, (str, os.PathLike)) else [file_path(each) for each in path]
    version = version_of(function.definition())
    with (
        tempfile.TemporaryDirectory(prefix="simplellmfunc-batch-") as folder,
        closing(await in_thread(AnswerStore.temporary, Path(folder))) as store,
    ):
        await in_thread(_read_answers, store, paths)
        return await map_rows(
            _Reader(function, store, version, by_place=rows is None),
            _ids(store) if rows is None else rows,
            checkpoint=checkpoint,
            on_error=on_error,
            progress=False,
            concurrency=16,
            retry_errors=True,
        )


def _read_answers(store: AnswerStore, paths: Sequence[Path]) -> None:
    """Put the lines of some files into the store.

    Raises:
        ConfigError: none of them is an answer to a request of ours.
    """
    foreign = ours = 0
    for path in paths:
        with opened(path) as file:
            source = lines.answers_in(file, path.name)
            while part := list(islice(source, 10_000)):
                # A file may hold a row twice, and then two answers to it.
                kept = [replace(line, key=_placed(line.key, line.place)) for line in part if line is not None]
                store.keep(kept)
                ours, foreign = ours + len(kept), foreign + len(part) - len(kept)
    if not ours:
        shown = ", ".join(path.name for path in paths)
        raise ConfigError(
            f"{shown or 'no file'} holds no answer to a request of to_batch_file: "
            f"{counted(foreign, 'line')} with another custom_id. Give the file of answers that the service made."
        )
    if foreign:
        push_warning(f"{counted(foreign, 'line')} ignored: the custom_id is of another program.")


def _ids(store: AnswerStore) -> Generator[str, None, None]:
    """Yield the ids in the order of the rows, with a made-up one for each gap."""
    following = 0
    for place, key, mode in store.places():
        if place < following:
            push_warning(f"row {place} was asked in two ways; one of its answers is left out. Give rows= to tell them.")
            continue
        for gap in range(following, place):
            yield f"no answer for row {gap}"
        yield str(lines.RequestId(key[:KEY_BYTES], mode, place))
        following = place + 1


def _placed(key: bytes, place: int) -> bytes:
    return key + place.to_bytes(8, "big")


_BY_PLACE = inspect.Signature([inspect.Parameter("custom_id", inspect.Parameter.POSITIONAL_OR_KEYWORD)])


class _Reader(Relayed[R], Generic[R]):
    """A function whose answers are in the store."""

    def __init__(self, function: Decorated[R], store: AnswerStore, version: bytes, *, by_place: bool) -> None:
        super().__init__(function)
        self._store = store
        self._version = version
        self._by_place = by_place
        if by_place:
            self.signature = _BY_PLACE
            self.type_hints: Mapping[str, Any] = {"custom_id": str}
            self.bind = lambda args, kwargs: _BY_PLACE.bind(*args, **kwargs).arguments

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R]:
        bound = self.bind(args, kwargs)
        key = None if self._by_place else key_of(self._version, bound)
        if self._by_place and (request := lines.RequestId.read(bound["custom_id"])) is not None:
            key = _placed(request.key, request.index)
        line = None if key is None else await in_thread(self._store.line, key)
        if line is None:
            what = "" if self._by_place else " as the function is now"
            raise RunError(f"the batch file holds no answer for this row{what}. Map it to have it asked.")
        return await lines.answer_of(self._function, line)
