"""Every method, and every ablation of SeaKR, through the conformance suite; and with ``extra_calls=false`` each makes the calls
of its paper and no other, however little its answer says."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gnothi import methods
from gnothi.filtering.complexity import Labelled, fit
from gnothi.filtering.knowledge import Experience, KnowledgeReference
from gnothi.methods.registry import METHODS
from gnothi.methods.steps.settings import MethodSettings
from gnothi.registry import BUILT_IN
from gnothi.signals import registry
from gnothi.testing.conformance.method import (
    FILMS,
    PASSAGES,
    PEOPLE,
    QUESTIONS,
    TOWNS,
    MethodConformance,
    WordRetriever,
    reader,
)
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ListedGraph, ScriptedRetriever
from gnothi.types import Passage, Prompt, Question, ScoredPassage
from tests.signals.probes import probe_saying

ABLATIONS: dict[str, dict[str, object]] = {
    **{f"signal={name}": {"signal": name} for name in registry.names() if name not in ("energy", "entity_frequency")},
    "signal=energy": {"signal": "energy", "threshold": -9.9},
    "signal=entity_frequency": {"signal": "entity_frequency", "threshold": -9.9},
    "always_retrieve": {"always_retrieve": True},
    "rationales": {"strategy": "rationales"},
    "knowledge": {"strategy": "knowledge"},
    "steps": {"rationale_score": "steps"},
    "residual": {"signal.site": "residual", "signal.layer": 2, "signal.samples": 5},
    "simple": {"form": "simple", "max_tokens": 60},
}


class Learnt(MethodConformance):
    """With a probe, which takes every answer for wrong."""

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        return super().resources(model, retriever) | {"signal.probe": probe_saying(0.9)}


class TestDirect(MethodConformance):
    name = "direct"
    knows = False


class TestDirectWithGram(TestDirect):
    settings: ClassVar = {"signal": "gram"}


class TestChainOfThought(MethodConformance):
    name = "cot"
    knows = False


class TestChainOfThoughtWithConsistency(TestChainOfThought):
    settings: ClassVar = {"signal": "consistency"}


class TestPanel(MethodConformance):
    name = "panel"
    knows = False


class TestPanelAtOnce(TestPanel):
    settings: ClassVar = {"reason": False}


class TestRetrieveAlways(MethodConformance):
    name = "rag"
    settings: ClassVar = {"k": 30}


class TestRetrieveAlwaysShort(TestRetrieveAlways):
    settings: ClassVar = {"k": 30, "reason": False}


class TestIRCoT(MethodConformance):
    name = "ircot"


class TestIRCoTAsCode(TestIRCoT):
    settings: ClassVar = {"follows": "code", "k": 2}


class TestQuCoRag(MethodConformance):
    name = "quco_rag"


class TestQuCoRagBySentences(TestQuCoRag):
    settings: ClassVar = {"rare": 0.0}


class TestSeaKR(MethodConformance):
    name = "seakr"


@pytest.mark.parametrize("ablation", ABLATIONS)
class TestSeaKRAblations:
    """The settings that change what happens, each through the checks that depend on them."""

    def suite(self, ablation: str) -> MethodConformance:
        suite = Learnt() if ablation in ("signal=probe", "signal=question") else MethodConformance()
        suite.name, suite.settings = "seakr", ABLATIONS[ablation]  # type: ignore[misc]
        suite.knows = "simple" not in ablation  # type: ignore[misc]
        return suite

    async def test_answers(self, ablation: str) -> None:
        await self.suite(ablation).test_answers()

    async def test_silence(self, ablation: str) -> None:
        await self.suite(ablation).test_a_model_that_says_nothing_gives_an_empty_answer("")

    async def test_nothing_retrieved(self, ablation: str) -> None:
        await self.suite(ablation).test_nothing_retrieved_still_gives_an_answer()

    async def test_babble(self, ablation: str) -> None:
        await self.suite(ablation).test_a_model_that_never_concludes_is_stopped()

    @pytest.mark.usefixtures("swept")
    async def test_cancelling(self, ablation: str) -> None:
        await self.suite(ablation).test_cancelling_leaves_nothing_behind()

    async def test_concurrency(self, ablation: str) -> None:
        await self.suite(ablation).test_concurrent_questions_equal_sequential_ones()

    async def test_just_what_it_needs(self, ablation: str) -> None:
        await self.suite(ablation).test_runs_on_a_model_that_offers_just_what_it_needs()


class TestSearchR1(MethodConformance):
    name = "search_r1"
    choosing = ("search_r1", "r1_searcher")


class TestSearchR1WithOtherTags(TestSearchR1):
    settings: ClassVar = {"tags": "r1_searcher"}


class TestKEQA(MethodConformance):
    name = "keqa"
    silence = "unknown"


class TestKEQASideBySide(TestKEQA):
    settings: ClassVar = {"sentences": False, "references": "none"}


class TestKEQAWithoutAssessment(TestKEQA):
    settings: ClassVar = {"assess": False, "pick": True, "tries": 1}


class TestKEQAWithoutPicking(TestKEQA):
    settings: ClassVar = {"pick": False, "schedule": "at_once", "k": 1}


class TestSkillRAG(MethodConformance):
    """With enough passages for both hops. Its judge knows the answer only from both facts at once, so that the sentences
    are judged by their use."""

    name = "skill_rag"
    settings: ClassVar = {"k": 30, "task": "useful", "threshold": -999.0}


class TestSkillRAGShort(TestSkillRAG):
    settings: ClassVar = {"k": 30, "threshold": -999.0, "reason": False, "titles": False}


class TestSkillRAGGated(TestSkillRAG):
    settings: ClassVar = {"k": 30, "threshold": -999.0, "gate": "self_report"}


class TestFilco(MethodConformance):
    name = "filco"
    settings: ClassVar = {"k": 30, "spans": None, "measure": "lexical", "threshold": -1.0}


class TestFilcoByInformation(TestFilco):
    settings: ClassVar = {"k": 30, "spans": None, "measure": "cxmi", "threshold": -1.0, "reason": False}


class TestCompose(MethodConformance):
    name = "compose"
    settings: ClassVar = {"k": 30, "gate": "self_report", "query": "keywords"}


class TestComposeSurer(TestCompose):
    settings: ClassVar = {
        "k": 30,
        "gate": "gram",
        "filter": "log_odds",
        "keep": 60,
        "filter_threshold": -60.0,
        "answer": "surer",
    }


class TestCorrectiveRAG(MethodConformance):
    name = "crag"
    settings: ClassVar = {"k": 30, "upper": 0.4, "strip_threshold": 0.0, "strips": 60}

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        return super().resources(model, retriever or WordRetriever(PASSAGES[: 2 * FILMS]))


class TestSelfKnowledgeGuided(MethodConformance):
    name = "skr"
    settings: ClassVar = {"k": 30}

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        known = [Experience("Who wrote Emma?", True), Experience("Where was the director of the film Ulm born?", False)]
        return {**super().resources(model, retriever), "reference": KnowledgeReference([known[0]] * 3 + [known[1]] * 20)}


class TestIEKR(MethodConformance):
    """Over the world's facts."""

    name = "iekr"
    settings: ClassVar = {"choose": "text"}

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        people = zip(PEOPLE, TOWNS, strict=True)
        films = [(f"The film Velkarra{number}", "was directed by", person) for number, person in enumerate(PEOPLE)]
        known = [*films, *((person, "was born in", town) for person, town in people)]
        graph = ListedGraph(known if retriever is None or retriever.passages else ())
        return {**super().resources(model, retriever), "graph": graph}


class TestIEKRWithoutReflection(TestIEKR):
    settings: ClassVar = {"choose": "text", "internal": False, "show": "one", "reason": False}


class TestIEKROverPassages(MethodConformance):
    name = "iekr"
    settings: ClassVar = {"choose": "text", "k": 30, "verify": True}


class TestReFeed(MethodConformance):
    name = "refeed"
    settings: ClassVar = {"k": 30}


class TestReFeedOnce(TestReFeed):
    settings: ClassVar = {"k": 30, "answers": 1, "ensemble": False, "reason": False}


class TestGeneratedKnowledge(MethodConformance):
    """It has nothing but memory, and takes the likeliest choice."""

    name = "gkp"
    knows = False

    async def test_an_answer_among_choices_is_spelt_as_the_choice(self) -> None:
        model = Scripted(reader)
        answer = await self.make(model)(replace(QUESTIONS[0], choices=("Kestrel1", "Nowhere", "Ulm")))
        assert answer.text == "Nowhere"


class TestSelfConsistency(MethodConformance):
    name = "self_consistency"
    knows = False


class TestSelfConsistencyZeroShot(TestSelfConsistency):
    settings: ClassVar = {"paths": 6, "demonstrations": False}


class TestFlare(MethodConformance):
    name = "flare"
    settings: ClassVar = {"k": 3}


class TestFlareByQuestions(TestFlare):
    settings: ClassVar = {"query": "questions", "k": 6, "search_first": True}


class TestReAct(MethodConformance):
    name = "react"
    choosing = ("react",)
    settings: ClassVar = {"pages": 12}


class TestReActBySentences(MethodConformance):
    name = "react"
    settings: ClassVar = {"form": "sentences"}


class TestSearChain(MethodConformance):
    name = "searchain"
    silence = "unknown"


class TestSearChainUnasked(TestSearChain):
    settings: ClassVar = {"ask_whether_known": False, "k": 2, "theta": 0.5}


class TestRowen(MethodConformance):
    name = "rowen"
    settings: ClassVar = {"k": 30, "threshold": 0.6}  # of two wordings, the world's model answers one as it did the question


class TestRowenResampling(MethodConformance):
    name = "rowen"
    settings: ClassVar = {"k": 30, "perturb": "resample"}


class TestSlimPLM(MethodConformance):
    name = "slimplm"
    settings: ClassVar = {"k": 30}


class TestSlimPLMShort(TestSlimPLM):
    settings: ClassVar = {"k": 30, "judgement": "consistency", "reason": False}


class ByName(WordRetriever):
    """By names alone, so that few passages are enough."""

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        return await super().search(" ".join(re.findall(r"[A-Z]\w*\d", query)), k)


class TestDragin(MethodConformance):
    name = "dragin"

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        return super().resources(model, retriever or ByName())


class TestSelfRAG(MethodConformance):
    name = "self_rag"
    settings: ClassVar = {"k": 3, "segments": 3}
    choosing = ("self_rag",)

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        return super().resources(model, retriever or ByName())


class TestSelfRAGByJudgements(MethodConformance):
    """One passage at a time holds no answer to a question of two hops."""

    name = "self_rag"
    settings: ClassVar = {"critic": "judgements"}
    knows = False


class TestAdaptiveRAG(MethodConformance):
    name = "adaptive_rag"
    settings: ClassVar = {"k": 30}
    learnt = fit([*(Labelled(f"Where was {name} born?", "steps") for name in "abc"), Labelled("Who wrote Emma?", "none")])

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        return {**super().resources(model, retriever), "classifier": self.learnt}


class TestAdaptiveRAGOnce(TestAdaptiveRAG):
    learnt = fit([*(Labelled(f"Where was {name} born?", "once") for name in "abc"), Labelled("Who wrote Emma?", "none")])


def test_every_method_goes_through_the_suite() -> None:
    """Here, or in the file of its own tests."""
    texts = [file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py")]
    suites = [text for text in texts if "(MethodConformance)" in text]
    named = {name for text in suites for name in re.findall(r'^    name = "(\w+)"$', text, re.M)}
    assert named >= {entry.name for entry, _ in METHODS.items() if entry.origin == BUILT_IN}


QUESTION = Question("q", "What was George Rankin's occupation?")
SAYS = "George Rankin was there. So the answer is George Rankin."
FOUND = [Passage("p", "George Rankin served.", "George Rankin"), Passage("o", "Another served.", "Another")]
CASES: dict[str, tuple[dict[str, Any], Counter[str]]] = {
    # One measurement of two calls a draft or a strategy, and nothing behind them.
    "seakr": ({"signal.samples": 2, "threshold": 9e9}, Counter(reason=6)),
    "seakr simple": ({"form": "simple", "reason": True, "signal.samples": 2, "threshold": 9e9}, Counter(reason=2)),
    "keqa": ({"decompose": False, "sentences": False, "schedule": "at_once"}, Counter(answer=1)),
    "flare": ({"theta": 0.0}, Counter(reason=2)),
    "dragin": ({"theta": 99.0}, Counter(reason=2)),
    "ircot": ({}, Counter(reason=3)),
    "cot": ({}, Counter(reason=1)),
    "rag": ({"reason": True}, Counter(reason=1)),
    "self_consistency": ({"paths": 2}, Counter(reason=1)),
}


def calls(name: str, settings: dict[str, Any], extra: bool) -> Counter[str]:
    def reply(prompt: Prompt) -> Reply:
        return Reply("George Rankin" if prompt.task.name == "answer" else SAYS.removeprefix(prompt.answer_so_far).strip())

    model = Scripted(reply)
    resources: dict[str, object] = {"model": model, "retriever": ScriptedRetriever(FOUND)}
    method = methods.create(name.partition(" ")[0], resources, {**settings, "extra_calls": extra})
    asyncio.run(method(QUESTION))
    return Counter(prompt.task.name for prompt in model.prompts)


@pytest.mark.parametrize("name", CASES)
def test_no_call_but_the_papers(name: str) -> None:
    settings, expected = CASES[name]
    assert calls(name, settings, False) == expected
    assert calls(name, settings, True) == expected + Counter(answer=1)


def test_every_method_that_can_reason_has_the_setting() -> None:
    for name in methods.names():
        known = methods.spec(name)
        assert issubclass(known.method, MethodSettings) or "extra_calls" not in known.settings
    assert {name for name in methods.names() if "extra_calls" not in methods.spec(name).settings} <= {"panel", "search_r1"}
