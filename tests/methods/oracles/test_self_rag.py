"""Self-RAG against its authors' short form (AkariAsai/self-rag, ``retrieval_lm/run_short_form.py``), with the settings of
``seakr/table1``.

``DECLARED`` says what is left out of the comparison.
"""

from __future__ import annotations

import asyncio
import math
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gnothi.methods.steps.self_rag_tokens import (
    IRRELEVANT,
    NO_RETRIEVAL,
    RELEVANT,
    RETRIEVAL,
    SUPPORTS,
    TOKENS,
    UTILITIES,
    paragraph,
    without_tokens,
)
from gnothi.signals.replies import says_nothing
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Passage, Prompt, Question
from tests.methods.oracles.authors import FAST, LONG, function
from tests.methods.oracles.scripts import ANSWERS, QUESTION, Course, Outcome, Searcher
from tests.reproduce.planned import made, row

DECLARED = {
    "decision": "the share of P([Retrieval]) here on both sides; the code's short form divides log-probabilities",
    "sequence": "the mean probability of the segment's own tokens; the code counts reflection tokens and the end as well",
    "one segment": "ours ends where a second segment begins, the code after max_new_tokens",
    "critiques": "ours asks for support and utility; the code has 0 for one that the model does not write",
    "nothing said": "blank answers and 'unknown' come last, whatever their score; not so in the code",
    "one passage": "found alone with mode=always_retrieve, the code fails",
    "nothing found": "answered without passages, as where none is wanted; the code fails",
    "closed": "equal answers are added up where the question is worded for yes or no; in the code for ARC and PubHealth alone",
    "answers": "the code leaves tokens in open answers, and takes '#' or ':' off their beginning; it looks for the gold within",
}
LABEL = ("seakr/table1", "2wiki", "Self-RAG")
LIMIT = 0.2
GRID = (0.01, 0.1, 0.3, 0.6, 0.9)


class Reflections:
    """What the model says and how likely its tokens are: once what it read stands in ``written``, or from memory."""

    def __init__(self, course: Course, written: str) -> None:
        draw = course.draw("reflections", written)
        answer = draw.choice([*ANSWERS, "unknown", ""])
        self.segment = draw.choice([answer, answer and f"{answer}.", answer and f"It is {answer}, as told"])
        self.logprobs = tuple(-draw.random() for _ in self.segment.split()) or (0.0,)
        tokens = (RETRIEVAL, NO_RETRIEVAL, RELEVANT, IRRELEVANT, *SUPPORTS, *UTILITIES)
        self.chances = {token: draw.choice(GRID) * draw.uniform(0.9, 1) for token in tokens}

    def likeliest(self, tokens: Sequence[str]) -> str:
        return max(tokens, key=self.chances.__getitem__)

    def share(self, *tokens: str) -> float:
        return self.chances[tokens[0]] / sum(self.chances[token] for token in tokens)

    @property
    def text(self) -> str:
        return f"{self.segment}{self.likeliest(SUPPORTS)}{self.likeliest(UTILITIES)}"


def _opening(written: str) -> str:
    """Up to the end of what was read."""
    before, closing, _ = written.partition("</paragraph>")
    return before + closing if closing else ""


def ours(seed: int) -> Outcome:
    course = Course(seed)

    def reply(prompt: Prompt) -> Reply:
        said = Reflections(course, _opening(prompt.answer_so_far))
        return Reply(said.text, said.logprobs)

    def score(prompt: Prompt, token: str) -> float:
        return math.log(Reflections(course, _opening(prompt.answer_so_far)).chances.get(token, 1e-9))

    method = made(*LABEL, model=Scripted(reply, scorer=score), retriever=Searcher(course))
    answer = asyncio.run(method(Question("q", QUESTION)))
    return Outcome.of(course, list(answer.evidence), answer.text)


def _found(course: Course) -> list[Passage]:
    wanted = Reflections(course, "").share(RETRIEVAL, NO_RETRIEVAL) > LIMIT
    return course.find(QUESTION, row(*LABEL).values["k"]) if wanted else []


# --- the course in our own words ---------------------------------------------------------------------------------------


def restated(seed: int) -> Outcome:
    course, values = Course(seed), row(*LABEL).values
    found = _found(course)
    if not found:
        return Outcome.of(course, [], Reflections(course, "").segment)

    def worth(passage: Passage) -> tuple[bool, float]:
        said = Reflections(course, paragraph(passage))
        certainty = math.exp(sum(said.logprobs) / len(said.logprobs)) if said.segment else 0.0
        full, partial, _ = (said.share(one, *(other for other in SUPPORTS if other != one)) for one in SUPPORTS)
        grades = [said.chances[one] for one in UTILITIES]
        useful = sum(weight * grade for weight, grade in zip((-1, -0.5, 0, 0.5, 1), grades, strict=True)) / sum(grades)
        critiques = (
            values["relevance"] * said.share(RELEVANT, IRRELEVANT)
            + values["support"] * (full + partial / 2)
            + values["utility"] * useful
        )
        return not says_nothing(said.segment), certainty + critiques

    best = max(found, key=worth)
    return Outcome.of(course, [best], Reflections(course, paragraph(best)).segment)


# --- theirs ------------------------------------------------------------------------------------------------------------


def theirs(rerank: Any, seed: int) -> Outcome:
    course, values = Course(seed), row(*LABEL).values
    found = _found(course)

    def one(prompt: str) -> Any:
        said = Reflections(course, _opening(prompt.removeprefix(QUESTION)))
        support, useful = said.likeliest(SUPPORTS), said.likeliest(UTILITIES)
        tokens = [said.likeliest((RELEVANT, IRRELEVANT)), *said.segment.split(), support, useful]
        logprobs = {token: math.log(chance) for token, chance in said.chances.items()}
        mean = sum(said.logprobs) / len(said.logprobs)  # declared: sequence
        output = types.SimpleNamespace(
            token_ids=tokens,
            text=tokens[0] + said.text,
            logprobs=[logprobs] * len(tokens),
            cumulative_logprob=mean * len(tokens),
        )
        return types.SimpleNamespace(outputs=[output])

    model = types.SimpleNamespace(generate=lambda prompts, _: [one(prompt) for prompt in prompts])
    evidences = [{"title": one.title, "text": one.text, "passage": one} for one in found]
    ids = {name: {token: token for token in tokens} for name, tokens in KINDS.items()}
    answer, results, _ = rerank(
        QUESTION, evidences, model, **ids, use_seqscore=True, threshold=-1, w_rel=values["relevance"],
        w_sup=values["support"], w_use=values["utility"], mode="adaptive_retrieval" if found else "no_retrieval",
    )  # fmt: skip
    scored = [one for key, one in results.items() if key != "no_retrieval"]
    kept = [max(scored, key=lambda one: one["score"])["ctx"]["passage"]] if found else []
    return Outcome.of(course, kept, without_tokens(answer))


KINDS = {
    "ret_tokens": (RETRIEVAL, NO_RETRIEVAL),
    "rel_tokens": (RELEVANT, IRRELEVANT),
    "grd_tokens": SUPPORTS,
    "ut_tokens": UTILITIES,
}


def load() -> Any:
    used: dict[str, Any] = {"np": np, "SamplingParams": lambda **_: None, "control_tokens": TOKENS}
    path = ("AkariAsai/self-rag", "retrieval_lm/run_short_form.py")
    name = "postprocess_answer_option_conditioned"
    used[name] = function(*path, name, used)
    return function(*path, "call_model_rerank_w_scores_batch", used)


# -----------------------------------------------------------------------------------------------------------------------


def same(one: Outcome, other: Outcome) -> bool:
    """In all but what is declared."""
    return one.searched == other.searched if says_nothing(other.answer) else one == other


@pytest.mark.parametrize("cases", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_rules(cases: int) -> None:
    assert [seed for seed in range(cases) if ours(seed) != restated(seed)] == []


@pytest.mark.parametrize("cases", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_authors(cases: int) -> None:
    rerank = load()
    assert [seed for seed in range(cases) if not same(ours(seed), theirs(rerank, seed))] == []


def test_the_cases_go_every_way() -> None:
    outcomes = [restated(seed) for seed in range(3 * FAST)]
    assert {len(one.kept) for one in outcomes} == {0, 1}
    assert {len(one.searched) for one in outcomes} == {0, 1}
    assert {"15,140", "yes, since both are", "It is 3.5 km, as told", "unknown"} <= {one.answer for one in outcomes}
