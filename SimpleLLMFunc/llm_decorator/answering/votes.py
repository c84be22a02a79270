"""Several answers to one question, decided field by field: pure, no model near it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Decision:
    """The result of a vote.

    Attributes:
        data: the decided value, as JSON data.
        agreement: by field, the share of all that were asked.
        nearest: number of the answer that has most of it; the earliest of several.
    """

    data: Any
    agreement: dict[str, float] = field(default_factory=dict)
    nearest: int = 0


def decide(answers: Sequence[Any], asked: int, vote_on: Sequence[str] | None = None) -> Decision:
    """Decide between answers, given as JSON data.

    Objects are voted on field by field, lists of objects of the most common length item by item; everything else
    (numbers, texts, lists of them) as a whole. In texts case and white space do not count. Of values with as many votes
    the one that came first wins. Objects that have other fields than most (another branch of a union) have no vote on
    the fields inside.

    Args:
        answers: at least one, in the order they were asked for.
        asked: how many were asked for.
        vote_on: the fields that count (``"score"``, ``"lines"``); the others are taken from the answer that has most of
            what was decided. None counts all.
    """
    agreement: dict[str, float] = {}
    data = _decided(list(answers), "", asked, agreement)
    if vote_on is not None:
        agreement = {path: share for path, share in agreement.items() if is_among(path, vote_on)}
    held = [sum(share for path, share in agreement.items() if _has(answer, data, path)) for answer in answers]
    nearest = held.index(max(held))
    if vote_on is not None:
        data = _overlaid(answers[nearest], data, "", vote_on)
    return Decision(data, agreement, nearest)


def agreement_of(answer: Any, answers: Sequence[Any], asked: int, paths: Sequence[str]) -> dict[str, float]:
    """Return the share of all answers that say the same as `answer` does, by field."""
    return {path: sum(_has(other, answer, path) for other in answers) / asked for path in paths}


def comparable(plain: Any, value: Any) -> Any:
    """Return JSON data with the items of sets in one order."""
    if isinstance(plain, list):
        if isinstance(value, AbstractSet):
            return sorted(plain, key=_key)
        if isinstance(value, (list, tuple)) and len(value) == len(plain):
            return [comparable(part, own) for part, own in zip(plain, value, strict=True)]
    if isinstance(plain, dict):
        if isinstance(value, Mapping):
            own = list(value.values())
        else:
            own = [getattr(value, name, None) for name in getattr(type(value), "model_fields", plain)]
        if len(own) == len(plain):
            return {key: comparable(part, mine) for (key, part), mine in zip(plain.items(), own, strict=True)}
    return plain


def _decided(answers: list[Any], path: str, asked: int, agreement: dict[str, float]) -> Any:
    kind, chosen = _most(answers, _kind)
    if kind[0] == "object" and chosen[0]:
        return {
            key: _decided([answer[key] for answer in chosen], f"{path}.{key}".removeprefix("."), asked, agreement)
            for key in chosen[0]
        }
    if kind[0] == "objects":
        return [
            _decided([answer[number] for answer in chosen], f"{path}[{number}]", asked, agreement)
            for number in range(len(chosen[0]))
        ]
    _, same = _most(chosen, _key)
    agreement[path] = len(same) / asked
    exact, _ = _most(same, lambda answer: json.dumps(answer, sort_keys=True))
    return json.loads(exact)


def _most(answers: list[Any], key: Any) -> tuple[Any, list[Any]]:
    """Return the key that most answers have, and these answers; of several the one that came first."""
    keys = [key(answer) for answer in answers]
    counts = Counter(keys)
    winner = max(dict.fromkeys(keys), key=lambda each: counts[each])
    return winner, [answer for answer, own in zip(answers, keys, strict=True) if own == winner]


def _kind(answer: Any) -> tuple[Any, ...]:
    if isinstance(answer, dict):
        return ("object", *sorted(answer))
    if isinstance(answer, list) and answer and all(isinstance(item, dict) for item in answer):
        return ("objects", len(answer))
    return ("plain",)


def _key(answer: Any) -> str:
    return json.dumps(_folded(answer), sort_keys=True)


def _folded(answer: Any) -> Any:
    if isinstance(answer, str):
        return " ".join(answer.casefold().split())
    if isinstance(answer, float) and answer.is_integer():
        return int(answer)
    if isinstance(answer, list):
        return [_folded(item) for item in answer]
    return {key: _folded(part) for key, part in answer.items()} if isinstance(answer, dict) else answer


def _has(answer: Any, other: Any, path: str) -> bool:
    """Say whether two answers have the same value at a path."""
    own, theirs = _at(answer, path), _at(other, path)
    return bool(own) and bool(theirs) and _key(own[0]) == _key(theirs[0])


def _at(answer: Any, path: str) -> list[Any]:
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        try:
            answer = answer[int(part[1:-1]) if part[0] == "[" else part]
        except (KeyError, IndexError, TypeError):
            return []
    return [answer]


def is_among(path: str, names: Sequence[str]) -> bool:
    """Say whether a path is one of these fields, or inside of one."""
    return any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in names)


def _overlaid(base: Any, decided: Any, path: str, names: Sequence[str]) -> Any:
    """Return `base` with what was decided of the fields that count."""
    if is_among(path, names):
        return decided
    if isinstance(base, dict) and isinstance(decided, dict):
        return {
            key: _overlaid(part, decided[key], f"{path}.{key}".removeprefix("."), names) if key in decided else part
            for key, part in base.items()
        }
    return base
