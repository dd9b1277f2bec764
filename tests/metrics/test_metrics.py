"""Metrics against the scorers' published definitions, against recorded outcomes, and by their properties; what spelling alone
makes right or wrong, and answers that only say the question again."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.datasets import load
from gnothi.metrics import METRICS, accuracy, contained, exact_match, f1, named_choice, normalise, refuses, score
from gnothi.metrics.accuracy import echoes, verdict
from gnothi.metrics.holding import holds, only_inside_words, words
from gnothi.metrics.spelling import alike, matches_without_signs, misses_by_spelling, vanishes
from tests import made_data as made
from tests.metrics import official

ANSWERS = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(["The", "a", "an", "cat", "CAT", "sat", "yes", "no", "noanswer", "U.S.", "-", "1,000", "naïve"]),
        max_size=6,
    ).map(" ".join),
)
GOLDS = st.lists(ANSWERS, min_size=1, max_size=4)


@given(ANSWERS)
def test_normalise_is_the_official_one(text: str) -> None:
    assert normalise(text) == official.normalize_answer(text)


@given(ANSWERS, GOLDS)
def test_exact_match_is_the_official_one(answer: str, golds: list[str]) -> None:
    assert exact_match(answer, golds) == max(official.exact_match_score(answer, gold) for gold in golds)


@given(ANSWERS, GOLDS)
def test_f1_is_hotpotqas_where_something_is_left_to_compare(answer: str, golds: list[str]) -> None:
    golds = [gold for gold in golds if normalise(gold)]
    expected = max((official.hotpot_f1_score(answer, gold) for gold in golds), default=0.0)
    assert f1(answer, golds) == pytest.approx(expected)


@given(ANSWERS, GOLDS)
def test_values_lie_in_the_unit_interval_and_are_ordered(answer: str, golds: list[str]) -> None:
    values = score(answer, golds)
    assert all(0 <= value <= 1 for value in values.values())
    assert values["em"] <= values["f1"]
    assert values["em"] <= values["accuracy"]


@given(ANSWERS, GOLDS, ANSWERS)
def test_an_alias_never_lowers_a_score(answer: str, golds: list[str], alias: str) -> None:
    for metric in METRICS.values():
        assert metric(answer, [*golds, alias]) >= metric(answer, golds)


@given(ANSWERS)
def test_an_answer_equal_to_a_gold_answer_is_right(answer: str) -> None:
    assert score(answer, [answer]) == {"em": 1.0, "f1": 1.0, "accuracy": 1.0}


@pytest.mark.parametrize(
    ("answer", "golds", "em", "f", "acc"),
    [
        ("The U.S.", ["us"], 1, 1, 1),
        ("Barack Obama", ["Obama"], 0, 2 / 3, 1),
        ("Obama", ["Barack Obama", "Barack H. Obama"], 0, 2 / 3, 0),
        ("yes it is", ["yes"], 0, 0, 1),
        ("yes", ["no"], 0, 0, 0),
        ("unknown", ["no"], 0, 0, 0),
        ("True.", ["yes"], 0, 0, 1),
        ("", ["Paris"], 0, 0, 0),
        ("the", ["A"], 1, 1, 1),
        ("Paris", ["A"], 0, 0, 0),
        ("b b a c", ["b c c"], 0, 4 / 6, 0),
    ],
)
def test_examples(answer: str, golds: list[str], em: float, f: float, acc: float) -> None:
    assert score(answer, golds) == pytest.approx({"em": em, "f1": f, "accuracy": acc})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Yes.", "yes"),
        ("no, it is not: yes was wrong", "no"),
        ("False", "no"),
        ("So the answer is yes", "yes"),
        ("It is not known", ""),
        ("yes or no", "yes"),
        ("either yes or no", ""),
        ("unknown", ""),
        ("", ""),
        ("It is true", ""),
        ("Ｙｅｓ", "yes"),
        ("Yes。", "yes"),
        ("\u201cYes\u201d", "yes"),
        ("«Yes»", "yes"),
        ("Yes…", "yes"),
        ("Ｔｒｕｅ", "yes"),
        ("¡No!", "no"),
        ("No—it was not", "no"),
        ("no\u2011one knows", ""),  # as "no-one" is one word of the official form
        ("не знаю", ""),
    ],
)
def test_verdicts(answer: str, said: str) -> None:
    assert verdict(answer) == said


@given(ANSWERS)
def test_a_verdict_is_the_answer_brought_into_one_form(answer: str) -> None:
    assert verdict(answer) in ("yes", "no", "")
    assert verdict(verdict(answer)) == verdict(answer)
    for gold in ("yes", "no"):
        assert accuracy(answer, [gold]) == (verdict(answer) == gold) >= exact_match(answer, [gold])


def accuracy_is_the_share_of_booleans_met(path: Path) -> None:
    items = json.loads(path.read_text(encoding="utf-8"))
    questions = load(str(path))
    # The official scorer compares two booleans: here answers that say yes to every other question, in a sentence.
    said = [number % 2 == 0 for number in range(len(items))]
    replies = ["Yes, that is known." if one else "The answer is no, for it cannot be." for one in said]
    official_accuracy = sum(item["answer"] is one for item, one in zip(items, said, strict=True)) / len(items)
    ours = [accuracy(reply, question.answers) for reply, question in zip(replies, questions, strict=True)]
    assert sum(ours) / len(ours) == official_accuracy


def test_accuracy_of_yes_and_no_is_the_share_of_booleans_met(made_data: Path) -> None:
    accuracy_is_the_share_of_booleans_met(made_data / "strategyqa.dev.json")


def test_accuracy_on_strategyqa_is_the_share_of_booleans_met(shared_data: Path) -> None:
    accuracy_is_the_share_of_booleans_met(shared_data / "strategyqa.dev.json")


def test_without_gold_there_is_no_score() -> None:
    assert score("Paris", []) == {}


# Published with the data: never / always (one retrieval) / oracle. For HotpotQA and 2Wiki the README's figures for "always" and
# "oracle" (.438 .488, .476 .540) do not follow from the recorded answers; what does is pinned instead.
RECORDED = {
    "nq": (0.448, 0.490, 0.604),
    "trivia": (0.638, 0.616, 0.738),
    "hotpotqa": (0.286, 0.408, 0.458),
    # Containment alone gives .386 and .512: twice it finds the gold answer "no" in "not mentioned".
    "2wikimultihopqa": (0.322, 0.382, 0.508),
}


def never_always_oracle(data: Path, name: str) -> tuple[float, ...]:
    lines = (data / "recorded" / f"{name}.test.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    never = [accuracy(row["no_retrieval"], row["answers"]) for row in rows]
    always = [accuracy(row["one_retrieval"], row["answers"]) for row in rows]
    oracle = [max(pair) for pair in zip(never, always, strict=True)]
    return tuple(round(sum(values) / len(rows), 3) for values in (never, always, oracle))


def test_accuracy_on_outcomes_that_are_known(made_data: Path) -> None:
    assert never_always_oracle(made_data, "nq") == (made.NEVER, made.ALWAYS, made.EITHER)


def test_accuracy_on_recorded_outcomes(shared_data: Path) -> None:
    assert {name: never_always_oracle(shared_data, name) for name in RECORDED} == RECORDED


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("the Mall", "mall"),
        ("B", "bank"),
        ("It is the bank, of course", "bank"),
        ("the strip mall", "strip mall"),
        ("bank or mall", ""),
        ("smallish", ""),
        ("embankment", ""),
        ("", ""),
    ],
)
def test_which_choice_an_answer_names(answer: str, expected: str) -> None:
    assert named_choice(answer, ("mall", "bank", "strip mall")) == expected


def test_accuracy_among_choices() -> None:
    choices = ("work", "homework")
    assert score("homework", ("work",))["accuracy"] == 1  # contained
    assert score("homework", ("work",), choices) == {"em": 0, "f1": 0, "accuracy": 0}
    assert score("I say homework", ("homework",), choices) == {"em": 0, "f1": pytest.approx(0.5), "accuracy": 1}
    assert score("labour", ("work", "labour"), choices)["accuracy"] == 1  # an alias that is no choice
    assert score("work", (), choices) == {}


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("", True),
        ("Unknown.", True),
        ("I don't know", True),
        ("I don’t know who that was.", True),
        ("It is impossible to know.", True),
        ("The question cannot be answered", True),
        ("I have no comment", True),
        ("Unknown Pleasures", False),
        ("Paris", False),
        ("She said: I don't know", False),
        ("no", False),
    ],
)
def test_refusals(answer: str, refused: bool) -> None:
    assert refuses(answer) == refused
    assert score(answer, (), answerable=False) == dict.fromkeys(METRICS, float(refused))


def test_contained_takes_yes_and_no_like_any_other_answer() -> None:
    assert (contained("unknown", ["no"]), accuracy("unknown", ["no"])) == (1, 0)
    assert contained("The city of Paris.", ["Rome", "a Paris"]) == 1
    assert (contained("Paris", ["the"]), contained("a", ["the"])) == (0, 1)


FILMS = "Which film was released first, Barravento or The Colditz Story?"


@pytest.mark.parametrize("answer", ["Barravento or The Colditz Story", "barravento or the colditz story?", FILMS])
def test_both_of_two_choices_are_no_choice(answer: str) -> None:
    assert echoes(answer, FILMS, ["Barravento"])


@pytest.mark.parametrize(
    "answer",
    [
        "Barravento",
        "The Colditz Story",
        "Barravento, of the two",  # words of its own
        "Barravento was released first",  # not as the question says it
        "",
        "unknown",
    ],
)
def test_an_answer_of_its_own_is_none(answer: str) -> None:
    assert not echoes(answer, FILMS, ["Barravento", "Colditz Story"])


def test_a_fuller_name_is_no_echo() -> None:
    assert not echoes("Mike Muir", "Who has worked with more bands, Mike Muir or Paul Di'Anno?", ["Muir"])
    assert not echoes("Barravento or The Colditz Story", FILMS, [])
    assert not echoes("Barravento or The Colditz Story", FILMS, ["the"])  # nothing is left of that


def test_any_gold_answer_that_is_nearly_the_whole_answer_will_do() -> None:
    assert not echoes("The Colditz Story", FILMS, ["Story", "The Colditz Story"])


@given(st.text(), st.text(), st.lists(st.text()))
def test_a_right_answer_alone_never_is(answer: str, question: str, golds: list[str]) -> None:
    assert not echoes(answer, question, [*golds, answer])


TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)


@given(TEXTS)
def test_alike_changes_nothing_twice(text: str) -> None:
    assert alike(alike(text)) == alike(text)


@given(st.text(alphabet=st.characters(categories=("Ll", "Lu")), max_size=20))
def test_accents_count_the_same_however_they_are_written(text: str) -> None:
    assert alike(unicodedata.normalize("NFD", text)) == alike(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("1914\u20131918", "1914-1918"),
        ("O\u2019Hara", "O'Hara"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("\uff12\uff10", "20"),
        ("\uff21\uff22", "AB"),
        ("\u22127", "-7"),
        ("light\u00adhouse", "lighthouse"),
        ("Rio\u00a0Negro \u2014 Sul", "Rio Negro - Sul"),
        ("东京。", "东京"),
        ("东京", "「东京」。"),
        ("दिल्ली।", "दिल्ली"),
        ("القاهرة؟", "القاهرة"),
        ("ኢትዮጵያ።", "ኢትዮጵያ"),
        ("བོད་", "བོད"),
        ("« Dana Brisk ».", "Dana Brisk"),
        ("Dana Brisk…", "Dana Brisk"),
        ("\u0661\u0668\u0662\u0660", "1820"),
        ("\u0967\u096e\u0968\u0966", "1820"),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("\ufb2a\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("\u05e6\u05d4\u05f4\u05dc", '\u05e6\u05d4"\u05dc'),
        ("\u0628\u064f\u0646\u0650\u064a\u064e\u062a\u0652", "\u0628\u0646\u064a\u062a"),
        ("Hawai\u02bbi", "Hawai'i"),
        ("1\u202f820", "1820"),
        ("1 234 567", "1,234,567"),
    ],
)
def test_what_misses_by_spelling_is_right_by_accuracy_alone(answer: str, gold: str) -> None:
    assert not exact_match(answer, [gold])
    assert misses_by_spelling(answer, [gold])
    assert accuracy(answer, [gold]) == 1


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("Cafe", "Caf\u00e9"),
        ("10\u2076", "106"),
        ("1820 100", "1820100"),
        ("1 82", "182"),
        ("5‰", "5"),
        ("Ann", "Bo"),
        ("x", "x"),
    ],
)
def test_other_letters_are_other_letters(answer: str, gold: str) -> None:
    assert not misses_by_spelling(answer, [gold])


@pytest.mark.parametrize(
    ("answer", "gold", "told"),
    [
        ("3.14", "314", True),
        ("-5", "5", True),
        ("\u22125", "5", True),
        ("\u22125", "-5", False),
        ("5\u066a", "5", True),
        ("«5»", "5", False),
        ("5。", "5", False),
        ("+3", "-3", True),
        ("7/8", "78", True),
        ("C++", "C", True),
        ("F#", "F", True),
        ("9%", "9", True),
        ("2,500", "2500", False),
        ("2.500.000", "2500000", False),
        ("3,14", "3.14", False),
        ("$5", "5", False),
        ("U.S.", "US", False),
        ("well-known", "wellknown", False),
        ("5.", "5", False),
        ("the Nile", "Nile", False),
        ("12", "13", False),
    ],
)
def test_what_is_equal_only_without_signs(answer: str, gold: str, told: bool) -> None:
    assert matches_without_signs(answer, [gold]) is told
    assert not matches_without_signs(answer, [gold, answer])
    assert not (told and misses_by_spelling(answer, [gold]))


def test_gold_answers_too_short_to_tell_anything() -> None:
    assert [gold for gold in ("the", "A", "", "!", "a b", "5", "Oz", "yes") if vanishes(gold)] == ["the", "A", "", "!", "a b"]


def test_a_part_of_a_word_is_told() -> None:
    assert only_inside_words("Canada", ["Ada"])
    assert only_inside_words("1820", ["18"])
    assert not only_inside_words("Ada of Canada", ["Ada"])
    assert not only_inside_words("It is The Hague.", ["The Hague"])
    assert not only_inside_words("Ann", ["Bo"])


@pytest.mark.parametrize(
    ("text", "gold", "held"),
    [
        ("The keeper was Dana Brisk, who lived there.", "Dana Brisk", True),
        ("It was built in 1820.", "1820", True),
        ("Canada is large.", "Ada", False),
        ("In 18200 days", "1820", False),
        ("Dana was brisk; Brisk Dana", "Dana Brisk", False),
        ("the O\u2019Hara house", "O'Hara", True),
        ("\u706f\u5854\u7531\u8d75\u660e\u5efa\u9020\u3002", "\u8d75\u660e", True),
        ("\ub4f1\ub300\ub294 \uc624\ub974\ubca8\uc5d0 \uc788\ub2e4", "\uc624\ub974\ubca8", True),
        ("\u041c\u0430\u044f\u043a \u0432 \u041e\u0440\u0432\u0435\u043b\u0435", "\u043c\u0430\u044f\u043a", True),
        ("J. R. R. Tolkien", "J.R.R. Tolkien", True),
        ("whatever", "yes", None),
        ("option B is right", "B", None),
        ("a long text", "He was born in Paris and died in Rome.", None),
    ],
)
def test_a_text_holds_an_answer_by_its_words(text: str, gold: str, held: bool | None) -> None:
    assert holds([text], [gold], "Who?") is held


def test_what_is_in_the_question_is_no_find() -> None:
    assert holds(["The Hollow Letter is a film."], ["The Hollow Letter"], "Which is older, The Hollow Letter or X?") is None
    assert holds([], ["yes"], "Is it?") is False


@given(st.lists(st.text(alphabet="abcdefgh", min_size=2, max_size=5), min_size=1, max_size=6))
def test_a_text_holds_each_run_of_its_words(said: list[str]) -> None:
    for start in range(len(said)):
        assert holds([" ".join(said)], [" ".join(said[start:])], "?") in (True, None)
    assert words(" ".join(said)) == said
