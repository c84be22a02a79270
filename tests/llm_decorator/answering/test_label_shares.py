"""The arithmetic of label shares: for any model, any way to cut labels into tokens, and any number of tokens shown."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.llm_decorator.answering.label_shares import label_shares

LABELS = [
    ["positive", "negative"], ["count", "comparative", "superlative", "compare"], ["1", "10", "100", "2"],
    ["card", "card_arrival", "card arrival", "discard"], ["好", "很好", "不好", "好的"], ["US", "us", "them"],
    ["true", "false", "null"], ['say "no"', "say", "back\\slash"],
]  # fmt: skip


def entry(token, shown):
    """One place of a reply: the token that was written, and those shown with their probabilities."""
    tops = [{"token": text, "logprob": math.log(share) if share else -9999.0} for text, share in shown.items()]
    return {"token": token, "logprob": math.log(shown[token]) if shown[token] else -9999.0, "top_logprobs": tops}


def reply_of(label, wanted, cuts, *, lead="", end=""):
    """Return the log-probabilities of a model that is held to labels of these probabilities, cut at these letters.

    Every place shows all that may come there, so the shares can be told exactly where each token tells labels apart.
    """
    entries, so_far, rest = [], "", dict(wanted)
    pieces = [label[low:high] for low, high in zip([0, *cuts], [*cuts, len(label)], strict=True)]
    for piece in [*pieces, end]:
        alive = {one: share for one, share in rest.items() if one.startswith(so_far)}
        shown: dict[str, float] = {}
        for one, share in alive.items():
            following = one[len(so_far) :]
            token = piece if piece and following.startswith(piece) else following
            shown[token or end] = shown.get(token or end, 0.0) + share
        whole = math.fsum(shown.values())
        entries.append(entry(piece, {text: share / whole for text, share in shown.items()}))
        so_far += piece
        rest = {one: share for one, share in alive.items() if one.startswith(so_far)} if piece != end else {}
    if lead:
        entries.insert(0, entry(lead, {lead: 1.0}))
    return {"content": entries}


@given(st.data())
def test_the_shares_are_those_of_the_model(data):
    labels = data.draw(st.sampled_from(LABELS))
    weights = data.draw(st.lists(st.integers(1, 1000), min_size=len(labels), max_size=len(labels)))
    wanted = {label: weight / sum(weights) for label, weight in zip(labels, weights, strict=True)}
    written = data.draw(st.integers(0, len(labels) - 1))
    label = labels[written]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(label) - 1), max_size=3))) if len(label) > 1 else []
    lead = data.draw(st.sampled_from(["", "<think>negative 10 card</think>\n"]))
    found = label_shares(labels, written, reply_of(label, wanted, cuts, lead=lead))
    assert found == pytest.approx([wanted[one] for one in labels], abs=1e-9)


@given(
    st.sampled_from(LABELS),
    st.data(),
    st.lists(
        st.tuples(st.text(max_size=4), st.dictionaries(st.text(max_size=6), st.floats(0, 1), max_size=5)), max_size=5
    ),
)
def test_any_reply_gives_shares_that_sum_to_one(labels, data, places):
    written = data.draw(st.integers(0, len(labels) - 1))
    content = [entry(token, {**shown, token: 0.5}) for token, shown in places]
    found = label_shares(labels, written, {"content": content})
    if not content:
        assert found is None
    else:
        assert all(0 <= share <= 1 + 1e-9 for share in found)
        assert math.fsum(found) == pytest.approx(1)


CASES = [
    # in our wrapper, with the tokens of a service that cuts inside of the quotes
    (
        ["yes", "no"],
        0,
        [*((one, {one: 1}) for one in ('{"', "value", '":"')), ("yes", {"yes": 0.7, "no": 0.2})],
        [7, 2],
    ),
    # leading space, quote and case are the same label; of few letters in another case nothing is told
    (["yes", "no"], 0, [("yes", {"yes": 0.3, " yes": 0.1, '"': 0.3, '"Yes': 0.1, "No": 0.2, "N": 0.2})], [5, 2]),
    # several ways to cut one label add up
    (["yes", "no"], 0, [("ye", {"ye": 0.3, "y": 0.1, "yes": 0.2, "no": 0.2})], [6, 2]),
    # of two tokens that begin a label the longer one is its own, the shorter one that of the others
    (["count", "comparative"], 0, [("count", {"count": 0.6, "co": 0.2})], [6, 2]),
    # a fork that was not followed is shared evenly
    (["card", "case", "pin"], 2, [("pin", {"pin": 0.6, "ca": 0.4})], [2, 2, 6]),
    # a token that begins all labels says nothing
    (["card", "case"], 0, [("card", {"card": 0.3, "c": 0.4, "case": 0.1})], [3, 1]),
    # what is not shown has at most the smallest share that is, and what is left
    (["a1", "b2", "c3"], 0, [("a1", {"a1": 0.6, "b2": 0.3})], [6, 3, 1]),
    (["a1", "b2", "c3"], 0, [("a1", {"a1": 0.6, "xx": 0.1})], [6, 1, 1]),
    # one label inside another: the end of the reply tells them apart
    (["card", "card_arrival"], 0, [("card", {"card": 1}), ("", {"": 0.6, "_arr": 0.2})], [3, 1]),
    (["1", "10"], 1, [("1", {"1": 0.9}), ("0", {"0": 0.8, "\n": 0.2})], [2, 8]),
    # so does the token of the longer label, where the model wrote the shorter one
    (["1", "2", "10"], 0, [("1", {"1": 0.4, "10": 0.3, "2": 0.2})], [4, 2, 3]),
    (["a", "b"], 0, [("a", {"a": 0.0, "b": 0.0})], [1, 0]),
]


@pytest.mark.parametrize(("labels", "written", "places", "parts"), CASES, ids=[str(case[0]) for case in CASES])
def test_the_rules(labels, written, places, parts):
    found = label_shares(labels, written, {"content": [entry(*place) for place in places]})
    assert found == pytest.approx([part / sum(parts) for part in parts])


def test_a_character_that_breaks_off_within_a_token():
    first, second = "好".encode()[:2], "好".encode()[2:]
    other = "坏".encode()
    half = {"token": "\ufffd", "bytes": list(first), "logprob": math.log(0.6)}
    whole = {"token": "坏", "bytes": list(other), "logprob": math.log(0.2)}
    content = [{**half, "top_logprobs": [half, whole]}, {"token": "\ufffd", "bytes": list(second), "logprob": 0.0}]
    assert label_shares(["好", "坏"], 0, {"content": content}) == pytest.approx([0.75, 0.25])


UNREADABLE = [[{"token": "yes", "logprob": bad}] for bad in (None, math.nan, math.inf, "-1", True)]
HALF = [{"token": "yes", "logprob": None, "top_logprobs": [{"token": "no", "logprob": -3.0}]}]
SHOWN = [{"token": "yes", "logprob": 0, "top_logprobs": tops} for tops in (5, [None], {"yes": 0}, *UNREADABLE, None)]


@pytest.mark.parametrize(
    "logprobs", [None, {}, "no", *({"content": it} for it in (None, True, *([it] for it in SHOWN), HALF))]
)
def test_a_reply_that_shows_nothing(logprobs):
    assert label_shares(["yes", "no"], 0, logprobs) is None


@pytest.mark.parametrize(("bad", "part"), [({"bytes": [300]}, 5), ({"bytes": ["y"]}, 5), ({"logprob": -(10**400)}, 0)])
def test_what_cannot_be_read_does_not_hide_the_rest(bad, part):
    top = {"token": "yes", "logprob": math.log(0.5), **bad}
    content = [{**top, "top_logprobs": [top, None, {"token": "no", "logprob": math.log(0.5)}]}]
    assert label_shares(["yes", "no"], 0, {"content": content}) == pytest.approx([part / (part + 5), 5 / (part + 5)])


def test_a_long_reasoning_takes_no_time_to_speak_of():
    thought = [entry("word ", {"word ": 0.5, "yes": 0.5})] * 3000
    begin, end = (entry(mark, {mark: 1}) for mark in ("<think>", "</think>"))
    content = [begin, *thought, end, entry("no", {"no": 0.8, "yes": 0.2})]
    assert label_shares(["yes", "no"], 1, json.loads(json.dumps({"content": content}))) == pytest.approx([0.2, 0.8])
