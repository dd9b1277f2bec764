"""Grouping and early stopping against another reading of the published algorithm, on random lists of answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.signals.assessment import Assessment, Consensus, Schedule
from gnothi.signals.grouping import Group, Groups, Tally, needed
from gnothi.testing.model import Scripted
from gnothi.types import Capabilities, Decoding, Generation, Prompt, Samples, StateSpec, Task

PROMPT = Prompt(Task("answer"), "Where was Mira Tolven born?")

# Answers are letters with a spelling: "a1", "a2" ... differ as texts; letters of one block mean the same to the judge.
BLOCKS = ({"a", "b"}, {"c"}, {"d", "e"}, {"z"})
UNKNOWN = ("unknown", "", "I don't know.")


def same_meaning(one: str, other: str) -> bool:
    return any({one[0], other[0]} <= block for block in BLOCKS)


def published(answers: list[str], tries: int, alpha: Fraction) -> tuple[list[list[str]], bool]:
    """Algorithm 1, read as a partition: what is said, form by form, each form joining the first block it means.

    An equivalence judge makes the anchor's choice immaterial, so blocks are compared whole. Fractions, no rounding."""
    blocks: list[list[str]] = []
    for answer in answers:
        if answer in UNKNOWN:
            continue
        homes = [block for block in blocks if all(same_meaning(answer, member) for member in block)]
        assert len(homes) <= 1
        if not homes:
            blocks.append([])
        (homes or blocks[-1:])[0].append(answer)
    best = max((len(block) for block in blocks), default=0)
    return blocks, best > 0 and Fraction(best, tries) >= alpha


def stop_after(answers: list[str], tries: int, alpha: Fraction) -> int:
    """Number of answers after which nothing that follows can change the outcome, found by trying every continuation of the
    largest block: all further answers agree with it, or with one new block, or all are unknown."""
    for given_so_far in range(tries + 1):
        head = answers[:given_so_far]
        left = tries - given_so_far
        leaders = [block[0] for block in published(head, tries, alpha)[0]]
        outcomes = {published(head + [said] * left, tries, alpha)[1] for said in [*leaders, "z1", "unknown"]}
        if len(outcomes) == 1:
            return given_so_far
    raise AssertionError


class Dictated(Scripted):
    """Gives the answers of a list in turn, whatever is asked, and counts requests and judgements."""

    def __init__(self, answers: list[str]) -> None:
        super().__init__(lambda _: "", capabilities=Capabilities())
        self.left = list(answers)
        self.given: list[str] = []
        self.requests: list[int] = []
        self.seeds: list[int | None] = []

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        del prompt, hidden
        self.requests.append(n)
        self.seeds.append(decoding.seed)
        said, self.left = self.left[:n], self.left[n:]
        assert len(said) == n
        self.given += said
        return Samples(tuple(Generation(text) for text in said))


async def judge(question: str, one: str, other: str) -> bool:
    assert question == PROMPT.question
    return same_meaning(one, other)


async def assessed(answers: list[str], alpha: float, schedule: Schedule) -> tuple[Consensus, Dictated]:
    model = Dictated(answers)
    assessment = Assessment(judge, str.strip, len(answers), alpha, schedule)
    return await assessment(model, PROMPT, Decoding(temperature=1.0)), model


async def check(answers: list[str], tenths: int) -> None:
    alpha, tries = tenths / 10, len(answers)
    exact = Fraction(tenths, 10)
    blocks, known = published(answers, tries, exact)
    stop = stop_after(answers, tries, exact)
    for schedule in ("at_once", "waves", "one_by_one", "in_turn"):
        consensus, model = await assessed(answers, alpha, schedule)
        assert consensus.known is known, (answers, alpha, schedule)
        heard = published(model.given, tries, exact)[0]
        largest = max((len(block) for block in heard), default=0)
        assert consensus.disagreement == pytest.approx(1 - largest / tries)
        assert (consensus.answer == "") is not bool(heard)
        if heard:
            assert consensus.answer in next(block for block in heard if len(block) == largest)
        if schedule in ("at_once", "in_turn"):
            assert model.requests == ([tries] if schedule == "at_once" else [1] * tries)
        elif schedule == "one_by_one":
            assert model.requests == [1] * stop
        else:
            assert model.requests[0] == min(tries, needed(alpha, tries))
            assert sum(model.requests) >= stop
            if known:  # every try was needed
                assert sum(model.requests) == stop
    if exact > Fraction(1, 2) and known:
        leader = max(blocks, key=len)
        assert (await assessed(answers, alpha, "waves"))[0].answer in leader


def random_answers(draw: random.Random) -> list[str]:
    letters = draw.sample("abcde", draw.randint(1, 5))
    said = [f"{letter}{spelling}" for letter in letters for spelling in range(1, draw.randint(2, 3))]
    said += draw.sample(UNKNOWN, draw.randint(0, 1))
    return [draw.choice(said) for _ in range(draw.randint(1, 7))]


@pytest.mark.slow
async def test_random_lists_agree_with_another_reading() -> None:
    draw = random.Random(20250101)
    for _ in range(600):
        await check(random_answers(draw), draw.choice((2, 4, 5, 6, 8, 10)))


answer_lists = st.lists(
    st.one_of(st.sampled_from(UNKNOWN), st.builds("{}{}".format, st.sampled_from("abcde"), st.integers(1, 3))),
    min_size=1,
    max_size=8,
)


@settings(max_examples=settings().max_examples)
@given(answer_lists, st.integers(0, 10))
async def test_whatever_is_answered(answers: list[str], tenths: int) -> None:
    await check(answers, tenths)


@given(
    st.lists(st.sampled_from(["Kestrel", "kestrel", "the Kestrel.", "Orvel", "Orvel town", "unknown"]), max_size=12), st.data()
)
async def test_a_whimsical_judge_loses_and_doubles_nothing(answers: list[str], data: st.DataObject) -> None:
    """Judges contradict themselves; each answer still ends up in one place, and equal forms in the same."""

    async def whim(_: str, __: str) -> bool:
        return data.draw(st.booleans())

    groups = Groups()
    for answer in answers:
        await groups.add(answer, whim)
    assert groups.count == len(answers)
    said = sorted(answer for group in groups.groups for answer in group.answers)
    assert said == sorted(answer for answer in answers if answer != "unknown")
    for group in groups.groups:
        assert sum(other.has(group.answers[0]) for other in groups.groups) == 1


async def test_equal_forms_need_no_judge() -> None:
    async def refuse(_: str, __: str) -> bool:
        raise AssertionError("the judge was asked")

    groups = Groups()
    for answer in ("The Kestrel.", "kestrel", "KESTREL", "unknown"):
        await groups.add(answer, refuse)
    assert [(group.anchor, group.size) for group in groups.groups] == [("The Kestrel.", 3)]
    assert (groups.unknown, groups.count) == (1, 4)


async def test_the_judge_compares_with_the_anchor_which_is_the_most_common_form() -> None:
    asked: list[tuple[str, str]] = []

    async def same(anchor: str, answer: str) -> bool:
        asked.append((anchor, answer))
        return {anchor, answer} <= {"in June 1982", "10 June 1982", "June 1982"}

    groups = Groups()
    for answer in ("in June 1982", "10 June 1982", "10 June 1982", "June 1977", "June 1982"):
        await groups.add(answer, same)
    assert asked == [("in June 1982", "10 June 1982"), ("10 June 1982", "June 1977"), ("10 June 1982", "June 1982")]
    assert [group.anchor for group in groups.groups] == ["10 June 1982", "June 1977"]


def test_of_equally_common_forms_the_oldest_is_the_anchor() -> None:
    assert Group(["b", "a", "a.", "B"]).anchor == "b"
    assert Group(["b", "a", "A."]).anchor == "a"


async def test_the_first_of_equally_large_groups_leads() -> None:
    consensus, _ = await assessed(["c1", "a1", "unknown", "unknown", "unknown"], 0.2, "at_once")
    assert consensus == Consensus("c1", True, 0.8)


@pytest.mark.parametrize(
    ("answers", "requests", "known"),
    [
        (["a1"] * 5, [4], True),
        (["a1", "a2", "b1", "c1", "b2"], [4, 1], True),
        (["a1", "c1", "a1", "c1", "a1"], [4], False),  # two of four: five cannot make four
        (["unknown", "a1", "a1", "a1", "a1"], [4, 1], True),
        (["unknown"] * 5, [4], False),
    ],
)
async def test_waves(answers: list[str], requests: list[int], known: bool) -> None:
    consensus, model = await assessed(answers, 0.8, "waves")
    assert (model.requests, consensus.known) == (requests, known)
    assert len(set(model.seeds)) == len(model.seeds)
    assert None not in model.seeds


@pytest.mark.parametrize(
    ("answers", "tries", "known"),
    [(["a1"] * 5, 4, True), (["a1", "c1", "d1", "a1", "a1"], 3, False), (["unknown", "unknown", "a1", "a1", "a1"], 2, False)],
)
async def test_one_by_one_stops_when_settled(answers: list[str], tries: int, known: bool) -> None:
    consensus, model = await assessed(answers, 0.8, "one_by_one")
    assert (len(model.requests), consensus.known) == (tries, known)


def test_needed() -> None:
    for tries in range(1, 60):
        for hundredths in range(101):
            wanted = max(1, -(-hundredths * tries // 100))
            assert needed(hundredths / 100, tries) == wanted


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_tally_is_never_both(largest: int, given_so_far: int, wanted: int, tries: int) -> None:
    tally = Tally(largest, given_so_far, wanted, tries)
    if largest <= given_so_far <= tries and wanted <= tries:
        assert not (tally.known and tally.hopeless)
        assert tally.settled or given_so_far < tries
