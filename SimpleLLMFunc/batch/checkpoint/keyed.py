"""The arguments and the key of each row of the input."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.base.run import Mappable
from SimpleLLMFunc.batch.checkpoint.stored_row import Record
from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.rows import InputRow
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.storage import KEY_BYTES, key_of


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Makes the keys of the rows of one function.

    Attributes:
        arguments: of the same function, as rows become its arguments.
        version: of the function, from `version_of`.
        is_kept: there is a checkpoint; a row that cannot be recognised in a further run is then a problem.
        keeps_given: a row is kept as it was given.
    """

    function: Mappable[Any]
    arguments: RowArguments
    version: bytes
    is_kept: bool
    keeps_given: bool

    async def keyed(self, piece: Sequence[InputRow], first: int) -> list[Record]:
        """Return some rows, the first of which has the place `first`; a thread reads their files and their long texts."""
        return await in_thread(lambda: [self._row(each, place) for place, each in enumerate(piece, first)])

    def _row(self, given: InputRow, place: int) -> Record:
        kept = given.value if self.keeps_given else None
        try:
            args, kwargs = self.arguments.of(given)
            arguments = self.function.bind(args, kwargs)
        except UsageError as error:
            return Record(place, self._key_of_problem(place, error), given=kept, failure=error)
        try:
            return Record(place, key_of(self.version, arguments), args, kwargs, kept)
        except (UsageError, OSError, ValueError) as error:
            if not self.is_kept:
                return Record(place, os.urandom(KEY_BYTES), args, kwargs, kept)  # like no other row
            problem = error if isinstance(error, UsageError) else UsageError(str(error))
            return Record(place, self._key_of_problem(place, error), given=kept, failure=problem)

    def _key_of_problem(self, place: int, error: Exception) -> bytes:
        return key_of(self.version, ["invalid", place, str(error)])
