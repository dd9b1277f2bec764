"""SKR's labels, votes and whole course against its authors' (THUNLP-MT/SKR, ``source/skr.py`` and ``source/knn.py``)."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gnothi.filtering.knowledge import Experience, Neighbours
from gnothi.testing.model import Scripted
from gnothi.training.knowledge_reference import experiences
from gnothi.types import Question
from tests.methods.oracles.authors import CASES, FAST, LONG, function, module
from tests.methods.oracles.scripts import ANSWERS, QUESTION, Course, Outcome, Searcher, names
from tests.reproduce.planned import made, row
from tests.training.test_knowledge_reference import rows

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file")  # theirs
STATUS = {True: "ir worse", False: "ir better"}
Case = tuple[list[bool], tuple[int, int, int]]


def cases() -> list[Case]:
    """What the nearest questions are, and how many of each kind are stored."""
    draw = random.Random(7)
    found = []
    for _ in range(CASES):
        stored = (draw.randint(1, 60), draw.randint(1, 60), draw.choice([0, 20, 700]))
        found.append(([draw.random() < 0.5 for _ in range(draw.randint(1, 12))], stored))
    return found


def ours(case: Case) -> bool:
    near, stored = case
    return Neighbours(sum(near), len(near) - sum(near), stored).short_of(len(near)) > 0


def restated(case: Case) -> bool:
    near, (known, unknown, silent) = case
    lead, usual = 2 * sum(near) - len(near), (known - unknown) * len(near) / (known + unknown + silent)
    if known > unknown:
        return not (lead > 0 and lead >= int(usual))
    return lead < 0 and -lead >= int(-usual)


def theirs(case: Case, folder: Path) -> bool:
    """Their function has the counts of its own run written into it: they are replaced by the case's."""
    near, (known, unknown, silent) = case
    searcher = SimpleNamespace(
        faiss_retrieve=lambda text, k: ([], [range(k)]),  # noqa: ARG005
        status_set=[STATUS[one] for one in near],
    )
    (folder / "asked").write_text(json.dumps([{"Question": "Who?"}]))
    names = {"json": json, "open": open, "print": lambda *_: None, "sentRetriever": searcher}
    run = function("THUNLP-MT/SKR", "source/knn.py", "run_gpt3", names, {"[47, 62, 740]": f"[{unknown}, {known}, {silent}]"})
    run(str(folder / "asked"), str(folder / "decided"), len(near))
    (decided,) = json.loads((folder / "decided").read_text())
    return bool(decided["cot_ir_or_not"] == "Yes")


def test_votes_are_the_rules() -> None:
    assert [case for case in cases() if ours(case) != restated(case)] == []
    assert 200 < sum(map(restated, cases())) < 800


@pytest.mark.slow
def test_votes_are_the_authors(tmp_path: Path) -> None:
    assert [case for case in cases() if ours(case) != theirs(case, tmp_path)] == []


@pytest.mark.slow
def test_labels_are_the_authors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(8)
    outcomes = [(draw.randint(0, 1), draw.randint(0, 1)) for _ in range(CASES)]
    (tmp_path / "results").mkdir()
    (tmp_path / "source").mkdir()
    for name, place in (("cot_train", 0), ("cot_train_ir", 1)):
        made = [_answered(number, pair[place]) for number, pair in enumerate(outcomes)]
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(made))
    monkeypatch.chdir(tmp_path / "source")
    nothing: dict[str, dict[str, Any]] = {"statsmodels": {}, "statsmodels.stats": {}}
    stubs: dict[str, dict[str, Any]] = {
        "spacy": {"load": print},
        "scipy": {"stats": None},
        "statsmodels.stats.contingency_tables": {"mcnemar": None},
    }
    with redirect_stdout(None):
        module("THUNLP-MT/SKR", "source/skr.py", nothing | stubs)
    labelled: list[dict[str, Any]] = json.loads(Path("train_skr.json").read_text())
    kept = [Experience(one["Question"], one["status"] == "ir worse") for one in labelled if one["status"] != "same"]
    assert experiences(rows(outcomes), "direct", "rag") == kept


def _answered(number: int, right: int) -> dict[str, Any]:
    says = "So the answer is Kestrel" if right else "So the answer is Vesk"
    told = {"Question": f"What is {number}?", "Gold answer": ["Kestrel"], "passages": []}
    return {**told, "chain_of_thought_gpt3": says}


# --- the whole course, with the settings of skill-rag/table1 -------------------------------------------------------------

DECLARED = {
    "encoder": "which training questions are nearest: scripted on both sides (SimCSE there)",
    "passages": "the code is given those of the data set; here the question is searched for",
    "reply": "the code asks for a chain of thought; here what SKILL-RAG's table compares: a short answer, with nothing cut",
}
LABEL = ("skill-rag/table1", "nq-dev", "SKR")


def scripted(seed: int) -> Case:
    draw = random.Random(seed)
    n = row(*LABEL).values["neighbours"]
    return [draw.random() < 0.5 for _ in range(n)], (draw.randint(1, 60), draw.randint(1, 60), draw.choice([0, 20, 700]))


def says(course: Course, shown: tuple[str, ...]) -> str:
    course.read.add(("", shown))
    draw = course.draw(shown)
    return f" {draw.choice(ANSWERS)}{draw.choice(['', '.', ', as told.'])}{draw.choice(['', chr(10) + 'More.'])}"


def whole(seed: int) -> Outcome:
    course, (near, stored) = Course(seed), scripted(seed)

    class Reference:
        async def neighbours(self, question: str, n: int) -> Neighbours:
            assert (question, n) == (QUESTION, len(near))
            return Neighbours(sum(near), len(near) - sum(near), stored)

    model = Scripted(lambda prompt: says(course, names(prompt.passages)))
    method = made(*LABEL, model=model, retriever=Searcher(course), reference=Reference())
    answer = asyncio.run(method(Question("q", QUESTION)))
    return Outcome.of(course, list(answer.evidence), answer.text)


def told(seed: int, retrieves: bool) -> Outcome:
    course = Course(seed)
    found = course.find(QUESTION, row(*LABEL).values["k"]) if retrieves else []
    return Outcome.of(course, found, says(course, names(found)).split("\n")[0])


@pytest.mark.parametrize("seeds", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_rules(seeds: int) -> None:
    assert [seed for seed in range(seeds) if whole(seed) != told(seed, restated(scripted(seed)))] == []


@pytest.mark.parametrize("seeds", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_authors(seeds: int, tmp_path: Path) -> None:
    assert [seed for seed in range(seeds) if whole(seed) != told(seed, theirs(scripted(seed), tmp_path))] == []
