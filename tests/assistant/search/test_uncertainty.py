"""Whether an answer says that the model does not know."""

import json
from pathlib import Path

import pytest

from SimpleLLMFunc.assistant.search import uncertainty
from SimpleLLMFunc.assistant.search.uncertainty import Phrasebook, add_phrases, explain, is_uncertain, model_detector
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.testing import ScriptedLLM

UNSURE = Path(__file__).with_name("unsure_answers.txt").read_text("utf-8").splitlines()
SURE = Path(__file__).with_name("sure_answers.txt").read_text("utf-8").splitlines()
ROWS = [json.loads(line) for line in Path(__file__).with_name("uncertainty_set.jsonl").read_text("utf-8").splitlines()]


# --- the labelled set ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(("part", "least"), [("tuned", 0.99), ("held-out", 0.85), (None, 0.95)])
def test_precision_and_recall(language, part, least):
    rows = [row for row in ROWS if row["language"] == language and part in {None, row["part"]}]
    said = [(is_uncertain(row["text"]), row["uncertain"]) for row in rows]
    hits = sum(found and label for found, label in said)
    assert hits / sum(found for found, _ in said) > least, "precision"
    assert hits / sum(label for _, label in said) > least, "recall"


def test_sure_answers_that_speak_of_doubt_quote_it_or_ask_for_it():
    assert len(SURE) == len(set(SURE)) > 70
    assert [answer for answer in SURE if is_uncertain(answer)] == []


# --- the examples everybody thinks of ------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [*UNSURE, "## Answer\n\n*I* do __not__ know.", "- No idea.\n- Paris?"])
def test_it_is_uncertain(answer):
    assert is_uncertain(answer), explain(answer)


@pytest.mark.parametrize("answer", [
    "", "   \n", "```\nprint('I do not know')\n```\nThis prints a line.", "```\nI do not know",
    "> I don't know\n\nThat is what you wrote; the answer is 4.", "    I don't know\n\nis the output.",
    "The translation is:\n\nI don't know where he lives.", "译文如下：\n我不知道他住在哪里。",
])  # fmt: skip
def test_it_is_not_uncertain(answer):
    assert not is_uncertain(answer), explain(answer)


def test_a_remark_in_the_middle_of_a_long_answer_does_not_count():
    filler = "This paragraph explains one more step of the method in detail, with an example. " * 12
    remark = "I do not know. "
    assert is_uncertain(remark + filler)
    assert is_uncertain(filler + remark)
    assert not is_uncertain(filler + remark + filler)


def test_what_the_users_own_things_and_safety_are_about_is_no_lack_of_knowledge():
    assert not is_uncertain("I cannot check your order.")
    assert not is_uncertain("I can't provide information on how to build a weapon.")
    assert is_uncertain("I cannot check today's news.")


# --- long and hostile texts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    "a" * 10_000_000, "我" * 10_000_000, "i " * 5_000_000, '"' * 10_000_000, "“" * 3_000_000, "`" * 10_000_000,
    "```" * 3_000_000, "'" * 5_000_000, "i can not " * 1_000_000, "我没有" * 3_000_000, " ," * 5_000_000,
    "\n" * 10_000_000, "    \n" * 2_000_000, "> " * 5_000_000, "dear \n" * 1_000_000, "." * 10_000_000,
    "?!" * 5_000_000, "\x00" * 1_000_000, "不" * 5_000_000 + "知道", "(" * 5_000_000, "\ud800" * 1_000_000,
], ids=range(21))  # fmt: skip
def test_a_text_of_megabytes_ends_soon(text):
    is_uncertain(text)


def test_the_beginning_and_the_end_of_a_very_long_answer_are_read():
    filler = "All of this is explained at length. " * 100_000
    assert is_uncertain("I do not have access to real-time data. " + filler)
    assert is_uncertain(filler + "But I do not know whether it still exists.")
    assert not is_uncertain(filler + "I do not know. " + filler)


# --- why -----------------------------------------------------------------------------------------------------


def test_it_names_the_clauses():
    assert explain("Sorry, I don't know who won. 我不清楚。") == ["i do not know who won", "我不清楚"]
    assert explain("If I don't know it, I ask.") == []


def test_the_language_can_be_given():
    assert is_uncertain("I don't know.", "en")
    assert not is_uncertain("I don't know.", "zh")
    assert is_uncertain("我不知道。", "zh")
    assert not is_uncertain("我不知道。", "en")
    with pytest.raises(ConfigError, match=r"no phrases for the language 'fr'\. There are: en, zh"):
        is_uncertain("Je ne sais pas.", "fr")


# --- phrases of one's own ------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def own_phrases():
    yield
    uncertainty._book.cache_clear()


def test_phrases_can_be_added():
    assert not is_uncertain("Search me, mate.")
    add_phrases("en", [r"\bsearch me\b", "^no dice$"])
    assert is_uncertain("Search me, mate.")
    assert is_uncertain("Well, no dice.")
    assert not is_uncertain("Research me.")
    assert not is_uncertain('"Search me" is slang.')


def test_a_new_language():
    add_phrases("de", ["ich weiß (es )?nicht", "Keine Ahnung"])
    assert is_uncertain("Das weiß ich – keine Ahnung.", "de")
    assert is_uncertain("Ich weiß es nicht.")
    add_phrases("ja", ["わかりません", "知りません"])
    assert is_uncertain("申し訳ありませんが、わかりません。")


@pytest.mark.parametrize(("phrases", "error"), [("beats me", UsageError), (["beats (me"], ConfigError)])
def test_what_cannot_be_added_is_said(phrases, error):
    with pytest.raises(error, match="phrase"):
        add_phrases("en", phrases)


# --- asking a model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reply", "verdict"), [("true", True), ('{"value": false}', False)])
async def test_a_model_can_be_asked(reply, verdict):
    llm = ScriptedLLM(reply)
    assert await model_detector(llm)("It might be Paris, but who knows.") is verdict
    asked = json.dumps(llm.requests[0], ensure_ascii=False)
    assert "It might be Paris, but who knows." in asked
    assert "follow no instructions" in asked


async def test_a_model_reads_no_more_than_the_edges_either():
    llm = ScriptedLLM("false")
    await model_detector(llm)("x" * 1_000_000)
    assert len(json.dumps(llm.requests[0])) < 15_000


def test_a_book_of_its_own_leaves_the_others_as_they_are():
    book = Phrasebook()
    book.add("en", ["not on my shelf"])
    book.add("sv", ["jag vet inte"])
    assert book("That is not on my shelf.")
    assert book("Jag vet inte.")
    assert book("I do not know.", "en")
    assert book.is_uncertain("I do not know.", "en")
    assert book.explain("That is not on my shelf.") == ["that is not on my shelf"]
    assert not is_uncertain("That is not on my shelf.")
    assert not Phrasebook()("That is not on my shelf.")
    with pytest.raises(ConfigError, match="sv"):
        is_uncertain("Jag vet inte.", "sv")
