"""What makes CRAG: three verdicts, and what is read after each."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import FakeReranker, ScriptedRetriever
from gnothi.types import Capabilities, Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was the painter Mira Tolven born?")
KEYWORDS = "painter Mira Tolven born"
FOUND = Passage("found", "Of use. Of none.", "Mira")
ELSEWHERE = Passage("elsewhere", "Good. Bad.", "Web")


def make(grade: float, elsewhere: bool = True, **settings: object) -> tuple[Scripted, Mapping[str, ScriptedRetriever], object]:
    """``grade`` is P("Yes") of the passage that is found."""
    grades = {FOUND.text: grade, "Of use.": 0.8, "Of none.": 0.01, "Good.": 0.9, "Bad.": 0.02}

    def scorer(prompt: Prompt, continuation: str) -> float:
        yes = grades[prompt.passages[0].text]
        return math.log(yes if continuation == "Yes" else 1 - yes)

    model = Scripted(lambda _: "So the answer is Kestrel.", scorer=scorer)
    first = ScriptedRetriever({QUESTION.text: [FOUND], KEYWORDS: [FOUND, ELSEWHERE]})
    second = ScriptedRetriever({KEYWORDS: [ELSEWHERE]})
    resources = {"model": model, "retriever": first, **({"elsewhere": second} if elsewhere else {})}
    return (
        model,
        {"first": first, "second": second},
        methods.create("crag", resources, {"focus": False, "strip_threshold": 0.1} | settings),
    )


@pytest.mark.parametrize(
    ("grade", "verdict", "texts"),
    [(0.9, "correct", ["Of use."]), (0.3, "ambiguous", ["Of use.", "Good."]), (0.05, "incorrect", ["Good."])],
)
@pytest.mark.parametrize("elsewhere", [True, False], ids=["another index", "the same index"])
async def test_verdicts(grade: float, verdict: str, texts: list[str], elsewhere: bool) -> None:
    model, retrievers, method = make(grade, elsewhere)
    with events.record() as recorded:
        answer = await method(QUESTION)  # type: ignore[operator]
    assert [one.text for one in answer.evidence] == texts
    assert model.prompts[-1].passages == answer.evidence
    decided = next(event for event in recorded if isinstance(event, events.Decided))
    assert (decided.kind, decided.verdict) == ("evaluate", verdict)
    assert decided.score == pytest.approx(grade)
    again = [KEYWORDS] if verdict != "correct" else []
    expected = ([QUESTION.text], again) if elsewhere else ([QUESTION.text, *again], [])
    assert (retrievers["first"].queries, retrievers["second"].queries) == expected


@pytest.mark.parametrize(("strips", "texts"), [(1, ["Of use.", "Good."]), (5, ["Of use. Of none.", "Good. Bad."])])
async def test_so_many_strips_whatever_their_grade(strips: int, texts: list[str]) -> None:
    _, _, method = make(0.3, strip_threshold=0.0, strips=strips)
    answer = await method(QUESTION)  # type: ignore[operator]
    assert [one.text for one in answer.evidence] == texts


async def test_where_no_strip_passes_the_best_ones_are_read() -> None:
    _, _, method = make(0.9, strip_threshold=0.95, strips=1)
    with events.record() as recorded:
        answer = await method(QUESTION)  # type: ignore[operator]
    assert [one.text for one in answer.evidence] == ["Of use."]
    *_, event = (event for event in recorded if isinstance(event, events.Decided))
    assert (event.kind, event.signal, event.threshold, event.verdict) == ("keep", "useful", 0.95, "fall_back")
    assert event.score == pytest.approx(0.8)


def test_what_is_refused() -> None:
    with refused(InvalidSetting):
        make(0.5, lower=0.6)
    blind = Scripted(lambda _: "", name="blind", capabilities=Capabilities())
    resources = {"model": blind, "retriever": ScriptedRetriever([]), "evaluator": blind}
    with refused(MissingCapability):
        methods.create("crag", resources, {})


@pytest.mark.parametrize(("grade", "verdict"), [(0.9, "correct"), (0.3, "ambiguous"), (0.05, "incorrect")])
async def test_a_cross_encoder_grades_in_a_models_place(grade: float, verdict: str) -> None:
    grades = {"Mira: Of use. Of none.": grade, "Mira: Of use.": 0.8, "Web: Good.": 0.9}
    reranker = FakeReranker(lambda _, text: math.log(grades.get(text, 0.01) / (1 - grades.get(text, 0.01))))
    model = Scripted(lambda _: "So the answer is Kestrel.", capabilities=Capabilities(logprobs=True))  # which cannot score
    resources = {
        "model": model,
        "retriever": ScriptedRetriever({QUESTION.text: [FOUND]}),
        "elsewhere": ScriptedRetriever({KEYWORDS: [ELSEWHERE]}),
        "reranker": reranker,
    }
    method = methods.create("crag", resources, {"focus": False, "strip_threshold": 0.1})
    with events.record() as recorded:
        answer = await method(QUESTION)
    decided = next(event for event in recorded if isinstance(event, events.Decided))
    assert (decided.signal, decided.verdict) == ("reranker", verdict)
    assert decided.score == pytest.approx(grade)
    kept = {"correct": ["Of use."], "ambiguous": ["Of use.", "Good."], "incorrect": ["Good."]}
    assert [one.text for one in answer.evidence] == kept[verdict]
    assert set(reranker.queries) == {QUESTION.text}


def test_one_grader_at_a_time() -> None:
    model = Scripted(lambda _: "")
    both = {"model": model, "retriever": ScriptedRetriever([]), "evaluator": model, "reranker": FakeReranker()}
    with refused(InvalidSetting):
        methods.create("crag", both, {})
