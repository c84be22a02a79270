"""How probable each label of a choice is, from the log-probabilities of one reply: pure, no model near it."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from SimpleLLMFunc.type import mapping, mappings
from SimpleLLMFunc.utils import is_number

_BEFORE = re.compile(rb'(?s)(?:.*</think>)?\s*(\{\s*"value"\s*:\s*|(?="))?')
"""The text before the label: reasoning, and the object that wraps the label."""

_SURE = 4
"""Letters from which on a beginning in other case is one of the label: of a few letters most are of another word.

Chosen by measuring, on the train rows of four public choices and a model of 135 million parameters.
"""

_LEADS = " \t\r\n\"'`"


def label_shares(labels: Sequence[str], written: int, logprobs: Any) -> list[float] | None:
    """Return the share of each label, from 0 to 1, together 1; None where the reply shows no log-probabilities.

    They are the shares with which a model would answer that can write nothing but the labels. At each place where
    labels part, a token counts by its probability among the tokens there that begin some label; the share of a label is
    the product over these places. Several ways to cut a label into tokens add up. Leading space and quotes make no
    difference, nor does the case of letters where at least four are shown.

    - Two tokens begin one label: the longer one is the usual way to write it, and the shorter one counts for the others.
    - The model did not choose a token: what would follow it is not shown, so it counts evenly for the labels that begin
      with it, and not at all where all of them do.
    - No beginning of a label is shown: the label gets the rest, at most the smallest share that is shown.

    Args:
        labels: as they are asked for; different from each other.
        written: which of them the reply is.
        logprobs: of the reply, in the form of chat completions: ``{"content": [{"token": …, "logprob": …, "bytes": …,
            "top_logprobs": […]}, …]}``.
    """
    entries = mappings(mapping(logprobs).get("content"))
    if not any(_shown(mappings(entry.get("top_logprobs"))) for entry in entries):
        return None
    before = _BEFORE.match(b"".join(_data(entry) for entry in entries))
    begin, is_json = (before.end(), before[1] is not None) if before else (0, False)
    names = _Names(labels, is_json=is_json)
    shares = [0.0] * len(labels)
    alive = set(range(len(labels)))
    path, least, so_far = 1.0, 0.0, b""
    for entry in entries:
        if len(alive) == 1:
            break
        own, ahead = _data(entry), so_far
        so_far += own
        if own and len(so_far) <= begin:
            continue
        shown = _shown([entry, *mappings(entry.get("top_logprobs"))])
        if own not in shown:
            return None
        least = min(shown.values())
        leads = {}
        for data in shown:
            if begun := names.begun_by((ahead + data)[begin:], alive, is_end=not data):
                leads[data] = begun
        follow = (_narrowed(own, leads) | ({written} & leads[own])) if own in leads else ({written} & alive or alive)
        parts = _parts_of_others(own, shown, leads, alive, follow)
        whole = math.fsum((shown[own], *parts.values()))
        if whole > 0:  # else all of it is too small for a number: as if nothing were shown here
            for label, part in parts.items():
                shares[label] += path * part / whole
            path *= shown[own] / whole
        alive = follow
    if written in alive:
        # Where the end of a label that another one begins with is not shown, the model has chosen it all the same.
        weights = {label: 1.0 if label == written else least for label in alive}
    else:
        weights = dict.fromkeys(alive, 1.0)
    for label, weight in weights.items():
        shares[label] += path * weight / math.fsum(weights.values())
    return shares


def _shown(tokens: Sequence[Mapping[str, Any]]) -> dict[bytes, float]:
    """Return how probable each of these tokens was; a token without a readable log-probability is left out."""
    shown: dict[bytes, float] = {}
    for token in tokens:
        logprob = token.get("logprob", math.nan)
        if is_number(logprob) and logprob < math.inf:
            share = math.exp(max(-1000.0, min(0.0, logprob)))  # an int may be too large for a float
            shown[_data(token)] = max(share, shown.get(_data(token), 0.0))
    return shown


def _parts_of_others(
    own: bytes, shown: Mapping[bytes, float], leads: Mapping[bytes, set[int]], alive: set[int], follow: set[int]
) -> dict[int, float]:
    """Return what the tokens that were not written give to labels at one place, and what is left to those not shown.

    Args:
        own: the token that was written.
        shown: the tokens, and how probable each was.
        leads: the labels that each of them begins, where it begins any.
        alive: the labels that are possible here.
        follow: those of them that are possible after this place.
    """
    ways = {data: _narrowed(data, leads) for data in leads if data != own}
    ways = {data: begun for data, begun in ways.items() if begun != alive}
    unseen = alive.difference(follow, *ways.values())
    rest = max(0.0, 1 - math.fsum(shown.values())) / max(1, len(unseen))
    parts = dict.fromkeys(unseen, min(*shown.values(), rest))
    for data, begun in ways.items():
        for label in begun:
            parts[label] = parts.get(label, 0.0) + shown[data] / len(begun)
    return parts


def _narrowed(data: bytes, leads: Mapping[bytes, set[int]]) -> set[int]:
    """Return the labels that a token leads to: without those that a longer one leads to, if any are left then."""
    is_letter = bool(data.strip(_LEADS.encode()))  # a quote alone begins no label rather than another
    longer = (
        begun for other, begun in leads.items() if is_letter and len(other) > len(data) and other.startswith(data)
    )
    return leads[data].difference(*longer) or leads[data]


def _data(token: Mapping[str, Any]) -> bytes:
    given = token.get("bytes")
    if isinstance(given, list):
        with suppress(ValueError, TypeError):
            return bytes(given)
    return str(token.get("token") or "").encode("utf-8", "replace")


class _Names:
    """The labels as a reply may write them."""

    def __init__(self, labels: Sequence[str], *, is_json: bool) -> None:
        told = [json.dumps(label, ensure_ascii=False)[1:-1] if is_json else label for label in labels]
        self._names = [label.lstrip(_LEADS) or label for label in told]
        folded = [name.casefold() for name in self._names]
        self._folded = folded if len(set(folded)) == len(folded) else self._names
        self._written = [name.encode("utf-8", "replace") for name in self._names]

    def begun_by(self, piece: bytes, among: set[int], *, is_end: bool) -> set[int]:
        """Return the labels that a piece of a reply may be the beginning of; of what has ended the longest.

        Args:
            piece: from where the label begins; may break off within a character.
            among: labels that count.
            is_end: nothing follows the piece.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text, broken = decoder.decode(piece), decoder.getstate()[0]
        text = text.lstrip(_LEADS)
        folded = text.casefold()
        start = text.encode("utf-8", "replace") + broken
        begun = {one for one in among if self._written[one].startswith(start) or self._is_folded(folded, one)}
        if begun and not is_end:
            return begun
        text = text if self._folded is self._names else folded
        ended = {one for one in among if text.startswith(self._folded[one]) and _is_boundary(text, self._folded[one])}
        most = max((len(self._folded[one]) for one in ended), default=0)
        return {one for one in ended if len(self._folded[one]) == most}

    def _is_folded(self, text: str, one: int) -> bool:
        name = self._folded[one]
        return name.startswith(text) and (len(text) >= _SURE or text == name) and self._folded is not self._names


def _is_boundary(text: str, name: str) -> bool:
    following = text[len(name) : len(name) + 1]
    # Chinese is written without spaces: what goes on there is told from the label's own kind of letter.
    return not (following.isalnum() or following == "_") or (following.isascii() != name[-1:].isascii())
