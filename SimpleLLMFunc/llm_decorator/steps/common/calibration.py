"""A calibration corrects the probabilities of labels, so that they match how often they are right. It is kept in a file."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, NamedTuple, Self

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from SimpleLLMFunc.config import json_of_file
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import shown_error

_KIND: Final = "simplellmfunc-calibration"
_FORMAT: Final = 1

LEAST_SHARE: Final = 1e-6
"""A smaller share counts as this one: what is that small was not shown but guessed."""


def softmax(scores: Sequence[float]) -> list[float]:
    """Return the shares of scores that are logarithms; together 1."""
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    whole = math.fsum(weights)
    return [weight / whole for weight in weights]


class Estimate(NamedTuple):
    """A number over the rows, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class Measured:
    """How good the probabilities are on some rows.

    Attributes:
        accuracy: the share of rows whose most probable label is right; None where no labels were given.
        calibration_error: the expected calibration error, from 0 (best) to 1; None where no labels were given.
        coverage: the share of rows that do not abstain: the most probable label has at least `min_agreement`.
    """

    coverage: Estimate
    accuracy: Estimate | None = None
    calibration_error: Estimate | None = None


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """The rows that a calibration was made from, and the measures before and after it.

    Attributes:
        rows: that were answered.
        failed: rows that were not, and do not count.
        before: without the calibration.
        after: with it. Where labels were given each fifth of the rows is measured with a calibration from the other four.
    """

    rows: int
    failed: int
    before: Measured
    after: Measured

    def __str__(self) -> str:
        names = [name for name in ("accuracy", "calibration_error", "coverage") if getattr(self.before, name)]
        lines = [f"{self.rows} rows" + (f", {self.failed} more failed" if self.failed else "")]
        lines += [
            f"{name.replace('_', ' ')}: {getattr(self.before, name)} before, {getattr(self.after, name)} after"
            for name in names
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Calibration:
    """Corrects the shares of labels: divides the logarithm of each by the temperature, and adds a bias.

    Attributes:
        function: its name.
        labels: in their order.
        biases: one for each label.
        temperature: above 1 makes the shares more alike, below 1 less; 1 leaves them.
        model: that was asked.
        version: of the function, as the lock file has it.
        report: what it was made from; None where that is not known.
    """

    function: str
    labels: tuple[str, ...]
    biases: tuple[FiniteFloat, ...]
    temperature: Annotated[FiniteFloat, Field(ge=1e-6)] = 1.0
    model: str = ""
    version: str = ""
    report: CalibrationReport | None = field(default=None, compare=False)

    def corrected(self, shares: Sequence[float]) -> list[float]:
        """Return the corrected shares, in the order of the labels; together 1."""
        logs = [math.log(max(share, LEAST_SHARE)) / self.temperature for share in shares]
        return softmax([log + bias for log, bias in zip(logs, self.biases, strict=True)])

    def check(self, function: str, labels: Sequence[str]) -> None:
        """Return if it was made for a function with these labels.

        Raises:
            ConfigError: it was made for another one.
        """
        if self.function != function:
            raise ConfigError(f"this calibration was made for {self.function}(), not for {function}().")
        if list(self.labels) != list(labels):
            raise ConfigError(
                f"this calibration of {function}() was made for the labels {', '.join(self.labels)}; the function has "
                f"{', '.join(labels) or 'none'}. Calibrate it again."
            )

    @property
    def digest(self) -> str:
        """Its hash, for the lock file."""
        told = json.dumps([self.labels, self.biases, self.temperature])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"kind": _KIND, "format": _FORMAT, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep it as JSON.

        Raises:
            ConfigError: the file cannot be written.
        """
        from SimpleLLMFunc.batch import replaced_whole  # a start need not pay for it

        text = json.dumps(self.as_data(), indent=2, ensure_ascii=False)
        with replaced_whole(path) as part:
            part.write_text(f"{text}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises:
            ConfigError: there is no such file, or it holds no calibration.
        """
        return cls.of_data(json_of_file(path, "a calibration"), repr(os.fspath(path)))

    @classmethod
    def of_data(cls, data: Any, where: str) -> Self:
        """Read what `as_data` returned; `where` it stands is said in the error.

        Raises:
            ConfigError: it is no calibration.
        """
        if not isinstance(data, Mapping) or (data.get("kind"), data.get("format")) != (_KIND, _FORMAT):
            raise ConfigError(f"{where} is not a calibration that this version can read.")
        try:
            made: Self = TypeAdapter(cls).validate_python(data)
        except ValidationError as error:
            raise ConfigError(f"{where} is not a calibration: {shown_error(error)}.") from error
        if len(made.labels) != len(made.biases):
            raise ConfigError(f"{where} is not a calibration: a label has one bias.")
        return made
