"""Metrics against the scorers' published definitions, against recorded outcomes, and by their properties."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.datasets import load
from gnothi.metrics import METRICS, accuracy, chosen, contained, exact_match, f1, normalise, refuses, score
from gnothi.metrics.accuracy import verdict
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
    assert chosen(answer, ("mall", "bank", "strip mall")) == expected


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
