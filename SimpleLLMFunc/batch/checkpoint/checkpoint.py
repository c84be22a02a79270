"""Checkpoint: the finished rows of a map on disk, and the status of such a file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.batch.checkpoint.row_file import RowFile
from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock
from SimpleLLMFunc.batch.progress import MapProgress
from SimpleLLMFunc.config import real_path
from SimpleLLMFunc.errors import CheckpointError, counted
from SimpleLLMFunc.logger import mask_known, push_warning
from SimpleLLMFunc.storage import canonical, version_of


@dataclass(frozen=True, slots=True)
class VersionStatus:
    """The rows of one version of a function.

    Attributes:
        name: of the function.
        values, errors: rows with a value, and rows with an error.
        error_kinds: how many errors of each name.
        definition: what the function was then: its model, params, prompt, types and tools.
        changed: which of these differ from the version after it; empty for the latest.
        began: when it was first used, in seconds since the epoch.
        input_tokens, output_tokens, cost: of all its rows; cost in USD, None when unknown.
        progress: how far its latest map is, as of the last rows that it kept; None where an older version of the
            library wrote the file.
        is_under_way: that map goes on now.
    """

    name: str
    values: int
    errors: int
    began: float
    error_kinds: Mapping[str, int] = field(default_factory=dict)
    definition: Mapping[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    progress: MapProgress | None = None
    is_under_way: bool = False

    def how_far(self) -> str:
        """Return the progress of its latest map in words; empty if the total is unknown."""
        progress = self.progress
        if progress is None or progress.share is None:
            return ""
        if self.is_under_way:
            return f"under way: {progress}"
        return f"its latest map ended at {progress.done} of {counted(progress.total or 0, 'row')} ({int(100 * progress.share)} %)"


@dataclass(frozen=True, slots=True)
class CheckpointStatus:
    """The content of a checkpoint.

    Attributes:
        versions: the latest first; a change of prompt, type, model or params begins a new one.
        size: bytes of the file, its log included.
        writer: who writes it now, such as "process 12 on host"; None if no process does.
        damaged: numbers of rows in the file that are not as they were written.
    """

    path: Path
    versions: tuple[VersionStatus, ...]
    size: int
    writer: str | None = None
    damaged: tuple[int, ...] = ()

    @property
    def values(self) -> int:
        """Rows with a value, of all versions."""
        return sum(version.values for version in self.versions)

    @property
    def errors(self) -> int:
        """Rows with an error, of all versions."""
        return sum(version.errors for version in self.versions)

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {counted(self.values, 'row')} with a value, {self.errors} with an error, {self.size:,} bytes"
        ]
        if self.writer:
            lines.append(f"  written now by {self.writer}")
        for number, version in enumerate(self.versions):
            when = "latest" if number == 0 else f"older, other {' and '.join(version.changed) or 'definition'}"
            kinds = ", ".join(f"{count} x {kind}" for kind, count in version.error_kinds.items())
            errors = f", {version.errors} with an error ({kinds})" if version.errors else ""
            cost = "" if version.cost is None else f", {version.cost:.4f} USD"
            lines.append(f"  {version.name} ({when}): {counted(version.values, 'row')} with a value{errors}{cost}")
            lines += [f"    {how_far}"] if (how_far := version.how_far()) else []
        lines += [f"  damaged: row {number} of the file" for number in self.damaged]
        return "\n".join(lines)


class Checkpoint:
    """A checkpoint that one map writes; all methods are synchronous and may take seconds.

    Args:
        path: of the file.
        output, repair: of the function whose rows these are.

    Raises:
        ConfigError: this is no path.
    """

    def __init__(self, path: str | PathLike[str], output: OutputSpec, repair: RepairLevel) -> None:
        # Where a link leads to: there SQLite has its log, and by it everybody knows the lock.
        self.path = real_path(path, "checkpoint")
        self.rows = RowFile(self.path, output, repair, _shown(self.path))
        self._lock = WriterLock(self.path)

    def open(self, name: str, definition: Mapping[str, Any], progress: MapProgress) -> bytes:
        """Take the file for this map alone, make sure that it is whole, and return the version of the function.

        Args:
            name: of the function.
            definition: all that its answers depend on.
            progress: how far the map is, before its first row.

        Raises:
            CheckpointError: another map writes it; it is damaged, or cannot be written.
        """
        version = version_of(definition)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self.rows.unusable(f"its folder cannot be made ({error.strerror or error})") from error
        self._lock.acquire()
        try:
            is_new = self._begin()
            self.rows.open()
            self._check_commits(0 if is_new else self._lock.commits)
            self._tell_of_older(version, name, definition)
            self.rows.use_version(version, name, mask_known(canonical(dict(definition)).decode()))
            self._note(progress)
            self.committed()
        except BaseException:
            self.rows.file.close()
            self._lock.release(ended_well=not self._lock.commits)
            raise
        return version

    def committed(self) -> None:
        """Note that rows were written, so that their loss would be seen."""
        with suppress(OSError):  # a full disk: the file itself will say so
            self._lock.note(self.rows.commits)

    def close(self, progress: MapProgress) -> None:
        """Give the file up; `progress` is how far the map came."""
        if self._lock.is_held:
            self._note(progress)
            self._lock.release(ended_well=self.rows.close())

    def _note(self, progress: MapProgress) -> None:
        with suppress(CheckpointError):  # a file that takes no rows says so when there are some
            self.rows.note(progress)

    def _begin(self) -> bool:
        """Return whether there is no checkpoint yet.

        Raises:
            CheckpointError: what there is was cut, or is nothing of ours.
        """
        log = self.path.with_name(self.path.name + "-wal")
        try:
            if self.path.is_dir():
                raise self.rows.unusable("it is a folder")
            size = self.path.stat().st_size if self.path.exists() else None
            if size is None:
                log.unlink(missing_ok=True)  # of a file that was removed
                return True
            if size == 0 and log.exists() and log.stat().st_size:
                raise CheckpointError(
                    f"{_shown(self.path)} is empty, but its log ({log.name}) is not: it was cut. Put a copy in its "
                    "place, or remove both to ask for all rows again."
                )
            journal = self.path.with_name(self.path.name + "-journal")  # of a writer that was killed as it began
            if size and not journal.exists() and not self.rows.file.is_ours():
                raise self.rows.unusable("it is no checkpoint, or all but its first bytes were cut off")
        except OSError as error:
            raise self.rows.unusable(f"{error.strerror or error}") from error
        return size == 0

    def _check_commits(self, noted: int) -> None:
        """Check that the file holds all that its last writer committed.

        Raises:
            CheckpointError: it holds less.
        """
        if self.rows.commits < noted:
            raise CheckpointError(
                f"{_shown(self.path)} has lost rows that it held: its log ({self.path.name}-wal) was cut or taken away. "
                "Nothing is asked, so that nothing is paid twice: put the log back, or, after a power failure, remove "
                f"{self.path.name}.writer to ask for those rows again."
            )

    def _tell_of_older(self, version: bytes, name: str, definition: Mapping[str, Any]) -> None:
        """Say it where a change is the reason that rows are asked again."""
        known = self.rows.query("SELECT hash, name, definition FROM versions ORDER BY id DESC")
        if not known or any(hash_ == version for hash_, _, _ in known):
            return
        if (before := next((text for _, other, text in known if other == name), None)) is not None:
            now = canonical(dict(definition)).decode()
            changed = " and ".join(_changed(json.loads(before), json.loads(now))) or "definition"
            told = (
                f"{_shown(self.path)} holds rows of {name!r} with other {changed}. They stay there; "
                "all rows are asked again as the function is now."
            )
            if changed == "params" and '"wire":' in now and '"wire":' not in before:  # 1.0 asked by chat completions
                told += ' If only the wire is another, wire="chat" of the model takes them.'
            push_warning(told)
            warnings.warn(told, stacklevel=2)  # for programs without a log: every row is paid again

    @staticmethod
    def status(path: str | PathLike[str]) -> CheckpointStatus:
        """Look into a checkpoint, also while a map writes it.

        Raises:
            CheckpointError: the file does not exist, or is damaged.
        """
        place = real_path(path, "checkpoint")
        if not place.is_file():
            raise CheckpointError(f"there is no checkpoint {str(place)!r}. A map with checkpoint= writes one.")
        writer = WriterLock(place).owner()
        if place.stat().st_size == 0:
            return CheckpointStatus(place, (), 0, writer)
        rows = RowFile(place, None, "coerce", _shown(place))
        if not rows.file.is_ours():
            raise rows.unusable("it is no checkpoint, or all but its first bytes were cut off")
        try:
            rows.open()
            versions = tuple(versions_of(rows, is_written=writer is not None).values())
            damaged = tuple(number for number, is_sound in rows.checked_rows() if not is_sound)
        finally:
            rows.file.close()
        files = (place, place.with_name(place.name + "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        return CheckpointStatus(place, versions, size, writer, damaged)


def _shown(path: Path) -> str:
    return f"the checkpoint {str(path)!r}"


_VERSIONS = """
    SELECT versions.id, name, definition, versions.at, count(rows.id), count(rows.id) - count(error),
           total(json_extract(usage, '$[0]')), total(json_extract(usage, '$[1]')), sum(json_extract(usage, '$[4]')),
           count(json_extract(usage, '$[4]'))
    FROM versions LEFT JOIN rows ON rows.version = versions.id
    GROUP BY versions.id ORDER BY versions.at DESC, versions.id DESC
"""
"""Each version with the number of its rows, values, tokens read and written, the cost, and how many costs are known."""


def versions_of(rows: RowFile, *, is_written: bool) -> dict[int, VersionStatus]:
    """Return the versions in a file by number, the latest first."""
    maps = rows.progress()
    latest = max(maps, key=lambda number: maps[number][1], default=None)
    kinds: dict[int, dict[str, int]] = {}
    for number, error, count in rows.query(
        "SELECT version, error, count(*) FROM rows WHERE error IS NOT NULL GROUP BY version, error"
    ):
        kinds.setdefault(number, {})[error] = count
    found: dict[int, VersionStatus] = {}
    after: dict[str, Any] = {}
    for number, name, text, began, count, values, tokens_in, tokens_out, cost, known in rows.query(_VERSIONS):
        try:
            definition = json.loads(text)
        except ValueError:
            definition = {}
        found[number] = VersionStatus(
            name=name,
            values=values,
            errors=count - values,
            began=began,
            error_kinds=kinds.get(number, {}),
            definition=definition,
            changed=_changed(definition, after[name]) if name in after else (),
            input_tokens=int(tokens_in),
            output_tokens=int(tokens_out),
            cost=cost if known == count else None,
            progress=maps[number][0] if number in maps else None,
            is_under_way=is_written and number == latest,
        )
        after[name] = definition
    return found


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
