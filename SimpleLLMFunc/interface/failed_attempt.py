"""One attempt of a request failed: the error it would end with, and whether another attempt may help."""

from __future__ import annotations

from typing import Literal, TypeAlias

from SimpleLLMFunc.errors import SimpleLLMFuncError

Again: TypeAlias = Literal["never", "once", "always"]
"""Whether a failure is worth a further try: never, one only, or as many as the caller allows."""


class AttemptFailed(Exception):
    """One try failed; what the caller gets if it was the last one is `error`.

    Attributes:
        again: whether another try may help.
        retry_after: seconds that the service asked to wait, None where it did not.
    """

    def __init__(self, error: SimpleLLMFuncError, *, again: Again = "always", retry_after: float | None = None) -> None:
        self.error = error
        self.again = again
        self.retry_after = retry_after
        super().__init__(str(error))
