"""Every branch of SeaKR against scripted models: a table from (ids of the passages shown, reply so far) to what is said."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gnothi import events
from gnothi.errors import InvalidSetting
from gnothi.methods.seakr import SeaKR
from gnothi.methods.steps.settings import Measuring
from gnothi.signals import registry
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Decoding, Generation, Passage, Prompt, Question, Samples, ScoredPassage, StateSpec
from tests.messages import refused
from tests.signals.probes import probe_saying

QUESTION = Question("q", "Where was the director of Velkarra born?")
A, B, C, D, E, F = (Passage(name, f"Text of {name}") for name in "abcdef")
SURE, UNSURE = 0.0, 1.0

S1, S2, S3 = "Velkarra was directed by Mira Tolven.", "Mira Tolven was born in Kestrel.", "So the answer is Kestrel."
FORCE = "So the answer is"
Line = str | tuple[str, float] | Reply
Table = Mapping[tuple[str, str], Line]


def speaker(table: Table, default: Line = "unknown") -> Scripted:
    """``table`` maps (passage ids, so far) to a text, alone (no doubt) or with its doubt."""

    def reply(prompt: Prompt) -> Reply:
        line = table.get(("".join(passage.id for passage in prompt.passages), prompt.answer_so_far), default)
        if isinstance(line, Reply):
            return line
        text, doubt = (line, SURE) if isinstance(line, str) else line
        return Reply(text, (-0.01,) if doubt == SURE else (-2.0,), doubt)

    return Scripted(reply)


class Searcher(ScriptedRetriever):
    """Also notes how many passages were asked for."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.limits: list[int] = []

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        self.limits.append(k)
        return await super().search(query, k)


async def run(
    model: Scripted, retriever: ScriptedRetriever | Sequence[Passage] = (), **settings: Any
) -> tuple[Answer, list[events.Event]]:
    searcher = retriever if isinstance(retriever, ScriptedRetriever) else Searcher(retriever)
    with events.record() as recorded:
        answer = await SeaKR(model, searcher, **settings)(QUESTION)
    return answer, recorded


def of(kind: type[events.Event], recorded: Sequence[events.Event]) -> list[Any]:
    return [event for event in recorded if isinstance(event, kind)]


def verdicts(recorded: Sequence[events.Event]) -> list[str]:
    return [event.verdict for event in of(events.Decided, recorded)]


KNOWS: dict[tuple[str, str], Line] = {
    ("", ""): f"{S1} {S2} {S3}",
    ("", S1): f"{S2} {S3}",
    ("", f"{S1} {S2}"): S3,
    ("r1r2", ""): f"{S1} {S2} {S3}",
}


async def test_a_model_that_knows_is_trusted_at_every_step() -> None:
    model, retriever = speaker(KNOWS), Searcher([A])
    answer, recorded = await run(model, retriever)
    assert answer.text == "Kestrel"
    assert answer.rationale == f"{S1} {S2} {S3}"
    assert answer.evidence == ()
    assert answer.uncertainty is not None
    assert answer.uncertainty < -6
    assert verdicts(recorded) == ["trust"] * 2  # the conclusion neither gates nor searches
    assert [event.subject for event in of(events.Decided, recorded)] == [S1[:-1], S2[:-1]]
    assert [event.text for event in of(events.Drafted, recorded)] == [S1[:-1], S2[:-1], S3]
    assert retriever.queries == []
    assert [event.candidates[0][:2] for event in of(events.Ranked, recorded)] == [("rationales", "Kestrel")]


async def test_the_conclusion_is_left_out_and_drawn_anew() -> None:
    model = speaker(KNOWS | {("", f"{S1} {S2}"): ("So the final answer is Orvel.", UNSURE)})
    answer, recorded = await run(model, [A])
    assert answer.text == "Kestrel"
    assert verdicts(recorded) == ["trust"] * 2
    assert next([passage.text for passage in prompt.passages] for prompt in model.prompts if prompt.passages) == [S1, S2]


async def test_a_conclusion_that_nothing_precedes_is_judged() -> None:
    retriever = Searcher([])
    _, recorded = await run(speaker({("", ""): ("So the answer is Orvel.", UNSURE)}), retriever)
    assert verdicts(recorded) == ["retrieve"]
    assert len(retriever.queries) == 1


RETRIEVES: Table = {
    ("", ""): ("Velkarra was directed by Ann Ox. And so on", UNSURE),
    ("a", ""): ("Velkarra is a dish.", UNSURE),
    ("b", ""): (f"{S1} {S2} {S3}", SURE),
    ("c", ""): ("Velkarra was directed by Bo Lund.", 0.5),
    ("", S1): f"{S2} {S3}",
    ("", f"{S1} {S2}"): S3,
    ("r1r2", ""): f"{S1} {S2} {S3}",
}


async def test_an_uncertain_step_takes_the_passage_that_removes_the_doubt() -> None:
    model, retriever = speaker(RETRIEVES), Searcher([A, B, C, D])
    answer, recorded = await run(model, retriever)
    assert answer.text == "Kestrel"
    assert answer.evidence == (B,)
    assert verdicts(recorded) == ["retrieve", "trust"]
    passages, answers = of(events.Ranked, recorded)
    assert [label for label, _, _ in passages.candidates] == ["b", "c", "a"]
    assert {label for label, _, _ in answers.candidates} == {"rationales", "knowledge"}
    assert retriever.queries == ["Velkarra"]  # of the words of the draft, only the question's are certain ("directed" is not)
    assert retriever.limits == [3]
    shown = {tuple(passage.id for passage in prompt.passages) for prompt in model.prompts}
    assert shown == {(), ("a",), ("b",), ("c",), ("r1", "r2")}


async def test_kept_passages_may_stand_in_drafts_and_beside_candidates() -> None:
    script: Table = {
        ("", ""): ("Velkarra was directed by Ann Ox.", UNSURE),
        ("a", ""): S1,
        ("a", S1): ("Mira Tolven was born in Orvel.", UNSURE),
        ("ab", S1): S2,
        ("ab", f"{S1} {S2}"): S3,
    }
    model, retriever = speaker(script), Searcher({"Velkarra": [A], "Mira Tolven born": [B]})
    answer, _ = await run(model, retriever, follows="code")
    assert answer.evidence == (A, B)
    shown = [("".join(one.id for one in prompt.passages), prompt.answer_so_far) for prompt in model.prompts]
    assert [pair for pair in dict.fromkeys(shown) if pair in script] == list(script)


async def test_certain_words_of_the_draft_make_the_query() -> None:
    draft = Reply("Velkarra was directed by Ann Ox.", (-0.01, -0.01, -0.01, -0.01, -2.0, -0.3), UNSURE)
    for settings, query in (
        ({}, "Velkarra directed"),
        ({"certainty": 0.7}, "Velkarra directed Ox"),
        ({"certainty": 0.0}, "Velkarra directed Ann Ox"),
        ({"query": "question"}, QUESTION.text),
    ):
        retriever = Searcher([])
        await run(speaker({("", ""): draft}), retriever, **settings)
        assert retriever.queries == [query]


async def test_the_previous_sentence_lends_its_words_to_the_query() -> None:
    retriever = Searcher([])
    await run(speaker({("", ""): S1, ("", S1): ("Mira Tolven was born in Orvel.", UNSURE)}), retriever)
    assert retriever.queries == ["Mira Tolven born"]


async def test_nothing_certain_means_the_question_is_the_query() -> None:
    retriever = Searcher([])
    await run(speaker({("", ""): ("Something else entirely.", UNSURE)}), retriever)
    assert retriever.queries == [QUESTION.text]


async def test_passages_already_kept_are_not_offered_again() -> None:
    table: Table = {
        ("", ""): ("Velkarra was shot by Ann Ox.", UNSURE),
        ("a", ""): S1,
        ("", S1): ("Mira Tolven was born in Orvel.", UNSURE),
        ("b", S1): S2,
        ("c", S1): ("She was born.", UNSURE),
        ("", f"{S1} {S2}"): S3,
        ("ab", ""): (S3, UNSURE),
        ("r1r2", ""): S3,
    }
    retriever = Searcher({"Velkarra": [A], "Mira Tolven born": [A, B, C, D]})
    answer, recorded = await run(speaker(table, ("What?", 2.0)), retriever)
    assert retriever.limits == [3, 4]
    assert answer.evidence == (A, B)
    assert answer.text == "Kestrel"
    assert [len(event.candidates) for event in of(events.Ranked, recorded)][:2] == [1, 3]


async def test_the_same_query_twice_ends_the_loop_with_the_draft() -> None:
    table: Table = {
        ("", ""): ("Velkarra is one thing.", UNSURE),
        ("a", ""): "Velkarra is a film.",
        ("", "Velkarra is a film."): ("Velkarra is another.", UNSURE),
        ("r1r2", ""): "So the answer is Orvel.",
    }
    retriever = Searcher([A, B])
    answer, recorded = await run(speaker(table), retriever, strategy="rationales", candidates=1)
    assert retriever.queries == ["Velkarra"]
    assert verdicts(recorded) == ["retrieve", "retrieve"]
    assert answer.text == "Orvel"
    assert answer.evidence == (A,)


async def test_nothing_found_ends_the_loop_with_the_draft() -> None:
    table: Table = {("", ""): (f"{S1} {S2}", UNSURE), ("r1", ""): ("So the answer is Orvel.", UNSURE)}
    answer, recorded = await run(speaker(table), [])
    assert answer.text == "Orvel"
    assert verdicts(recorded) == ["retrieve"]


async def test_a_blank_draft_counts_as_uncertain() -> None:
    answer, recorded = await run(speaker({("", ""): "", ("a", ""): S1, ("", f"{S1} {FORCE}"): "Kestrel"}), [A], max_steps=1)
    (decided,) = of(events.Decided, recorded)
    assert (decided.verdict, decided.score) == ("retrieve", None)
    assert answer.evidence == (A,)


async def test_silence_under_every_passage_ends_the_loop() -> None:
    answer, recorded = await run(speaker({("", FORCE): "Kestrel"}, default=""), [A, B])
    assert verdicts(recorded) == ["retrieve"]
    assert answer.text == "Kestrel"
    assert answer.evidence == (A,)


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_the_step_limit(limit: int) -> None:
    numbers = iter(range(100))
    model = Scripted(lambda _: f"Fact {next(numbers)} holds.")
    _, recorded = await run(model, [], max_steps=limit)
    assert len(verdicts(recorded)) == limit


@pytest.mark.parametrize("limit", [1, 3])
async def test_the_passage_limit(limit: int) -> None:
    numbers = iter(range(10**6))
    model = Scripted(lambda _: Reply(f"Item{(n := next(numbers))} is thing{n}.", (-0.01,), UNSURE))
    answer, recorded = await run(model, [A, B, C, D, E, F], max_passages=limit, candidates=1)
    assert len(answer.evidence) == limit
    assert verdicts(recorded) == ["retrieve"] * limit


async def test_a_sentence_that_stands_already_ends_the_loop() -> None:
    _, recorded = await run(speaker({}, default="It is what it is. So"))
    assert verdicts(recorded) == ["trust", "trust"]


async def test_always_retrieving_still_measures() -> None:
    answer, recorded = await run(speaker(KNOWS | {("a", ""): S1}), [A], always_retrieve=True, max_steps=1)
    (decided,) = of(events.Decided, recorded)
    assert decided.verdict == "retrieve"
    assert decided.threshold is None
    assert decided.score < -6
    assert answer.evidence == (A,)


async def test_without_reranking_the_first_passage_is_kept() -> None:
    model = speaker(RETRIEVES)
    answer, recorded = await run(model, [A, B, C, D], rerank=False, max_steps=1)
    assert answer.evidence == (A,)
    assert len(of(events.Ranked, recorded)[0].candidates) == 1
    assert {passage.id for prompt in model.prompts for passage in prompt.passages} == {"a", "r1"}


# --- which answer to trust ---------------------------------------------------------------------------------------------


SO = "So the answer is Orvel."


async def both_ways(from_rationales: Line, from_knowledge: Line, **settings: Any) -> Answer:
    # Two passages are kept, so that the chain over them is not the context of a step.
    table: Table = {
        ("", ""): ("Velkarra is a draft.", UNSURE),
        ("a", ""): S1,
        ("", S1): ("Mira Tolven drafts.", UNSURE),
        ("b", S1): S2,
        ("r1r2", ""): from_rationales,
        ("ab", ""): from_knowledge,
        ("ab", f"{S1} {FORCE}"): ("Forced.", SURE),
    }
    answer, _ = await run(speaker(table), [A, B], candidates=1, max_steps=2, **settings)
    return answer


async def test_the_strategy_of_lower_uncertainty_wins() -> None:
    assert (await both_ways((SO, UNSURE), (S3, SURE))).text == "Kestrel"
    rationales = await both_ways((SO, SURE), (S3, UNSURE))
    assert rationales.text == "Orvel"
    assert rationales.rationale == SO


@pytest.mark.parametrize("nothing", ["So the answer is unknown.", "So the answer is Unknown"])
async def test_no_answer_loses_to_an_uncertain_one(nothing: str) -> None:
    assert (await both_ways((nothing, SURE), (S3, UNSURE))).text == "Kestrel"


@pytest.mark.parametrize(("strategy", "text"), [("rationales", "Orvel"), ("knowledge", "Kestrel")])
async def test_one_strategy_only(strategy: str, text: str) -> None:
    for doubts in ((SURE, UNSURE), (UNSURE, SURE)):
        assert (await both_ways((SO, doubts[0]), (S3, doubts[1]), strategy=strategy)).text == text


async def test_knowledge_only_without_knowledge_answers_from_rationales() -> None:
    assert (await run(speaker(KNOWS), [], strategy="knowledge"))[0].text == "Kestrel"


async def test_a_chain_over_the_passages_without_conclusion_is_made_to_conclude() -> None:
    answer = await both_ways((SO, UNSURE), (S1, SURE))
    assert answer.text == "Forced"
    assert answer.rationale == f"{S1} {FORCE} Forced."


async def test_the_mean_over_steps_may_stand_for_the_rationales() -> None:
    answer, recorded = await run(speaker(KNOWS), rationale_score="steps")
    scores = [event.uncertainty for event in of(events.Drafted, recorded)]
    assert answer.uncertainty == pytest.approx(sum(scores) / 3)
    assert answer.text == "Kestrel"
    unconcluded, recorded = await run(speaker(KNOWS), rationale_score="steps", max_steps=2)
    scores = [event.uncertainty for event in of(events.Drafted, recorded)]
    assert unconcluded.uncertainty == pytest.approx(sum(scores) / 2)
    assert unconcluded.text == "Kestrel"


async def test_a_conclusion_without_premises_stands() -> None:
    table: Table = {("", ""): ("Velkarra is a draft.", UNSURE), ("a", ""): S3}
    answer, recorded = await run(speaker(table, ("Blind guess", SURE)), [A], strategy="rationales")
    assert answer.text == "Kestrel"
    assert answer.uncertainty == of(events.Ranked, recorded)[0].candidates[0][2]


async def test_the_question_may_be_asked_again_for_more_passages() -> None:
    numbers = iter(range(10**6))
    model = Scripted(lambda _: Reply(f"Item{(n := next(numbers))} is thing{n}.", (-0.01,), UNSURE))
    answer, _ = await run(model, [A, B, C, D], query="question", max_steps=3, candidates=1)
    assert answer.evidence == (A, B, C)


# --- simple form -------------------------------------------------------------------------------------------------------

SIMPLE: Table = {
    ("", ""): ("Mira was born in Orvel. So the answer is Orvel.", 0.5),
    ("a", ""): ("So the answer is Dunmere.", UNSURE),
    ("b", ""): ("Mira was born in Kestrel. So the answer is Kestrel.", SURE),
}


async def test_simple_trusts_a_sure_answer() -> None:
    retriever = Searcher([A])
    answer, recorded = await run(speaker({("", ""): S3}), retriever, form="simple")
    assert answer.text == "Kestrel"
    assert retriever.queries == []
    assert verdicts(recorded) == ["trust"]


async def test_simple_retrieves_once_and_may_take_the_surest_answer() -> None:
    retriever = Searcher([A, B])
    answer, recorded = await run(speaker(SIMPLE), retriever, form="simple", strategy="both")
    assert (answer.text, answer.evidence) == ("Kestrel", (B,))
    assert answer.rationale == "Mira was born in Kestrel. So the answer is Kestrel."
    assert retriever.queries == [QUESTION.text]
    assert [event.kind for event in of(events.Ranked, recorded)] == ["passage", "answer"]
    memory, _ = await run(speaker(SIMPLE), [A], form="simple", strategy="both")
    assert (memory.text, memory.evidence) == ("Orvel", ())


async def test_simple_chooses_among_ten_unless_told() -> None:
    async def offered(**settings: Any) -> list[int]:
        searcher = Searcher([A])
        await run(speaker(SIMPLE), searcher, form="simple", **settings)
        return searcher.limits

    assert (await offered(), await offered(candidates=2)) == ([10], [2])


async def test_as_in_the_code_an_answer_that_is_asked_for_has_twenty_tokens() -> None:
    table: Table = {("", ""): S1, ("", f"{S1} {FORCE}"): " ".join(["word"] * 30)}
    for follows, words in (("code", 20), ("paper", 30)):
        answer, _ = await run(speaker(table), form="simple", reason=True, follows=follows, extract="seakr", extra_calls=False)
        assert len(answer.text.split()) == words


async def test_simple_with_one_strategy_or_nothing_found() -> None:
    for told in ({}, {"strategy": "knowledge"}):
        assert (await run(speaker(SIMPLE), [A], form="simple", **told))[0].text == "Dunmere"
    assert (await run(speaker(SIMPLE), [B], form="simple", strategy="rationales"))[0].text == "Orvel"
    assert (await run(speaker(SIMPLE), [], form="simple"))[0].text == "Orvel"


async def test_simple_short_answers() -> None:
    table: Table = {("", ""): ("Orvel", UNSURE), ("a", ""): "Kestrel.\nMore"}
    model = speaker(table)
    answer, _ = await run(model, [A], form="simple", reason=False)
    assert (answer.text, answer.rationale) == ("Kestrel", "")
    assert {prompt.task.name for prompt in model.prompts} == {"answer"}


# --- signals and settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in registry.names() if name not in ("energy", "entity_frequency")])
async def test_each_signal_gates_at_its_own_threshold(name: str) -> None:
    learnt: dict[str, Any] = {"measuring": Measuring(probe=probe_saying(0.2))} if registry.reads_probe(name) else {}
    _, recorded = await run(speaker(KNOWS), signal=name, **learnt)
    assert {(event.signal, event.threshold) for event in of(events.Decided, recorded)} == {
        (name, registry.find(name).default_threshold)
    }


async def test_delta_of_the_paper_is_the_default() -> None:
    _, recorded = await run(speaker(KNOWS))
    assert of(events.Decided, recorded)[0].threshold == -6.0


async def test_the_threshold_decides() -> None:
    for threshold, verdict in ((-math.inf, "retrieve"), (math.inf, "trust"), (-6.9, "retrieve"), (0.0, "trust")):
        _, recorded = await run(speaker(KNOWS), max_steps=1, threshold=threshold)
        assert verdicts(recorded) == [verdict]


def test_energy_needs_a_threshold() -> None:
    with refused(InvalidSetting):
        SeaKR(speaker({}), Searcher([]), signal="energy")
    SeaKR(speaker({}), Searcher([]), signal="energy", threshold=-12.0)
    SeaKR(speaker({}), Searcher([]), signal="energy", always_retrieve=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": 0},
        {"max_steps": 0},
        {"max_passages": 0},
        {"certainty": 1.1},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with refused(InvalidSetting):
        SeaKR(speaker({}), Searcher([]), **wrong)


@pytest.mark.parametrize("wrong", [{"samples": 0}, {"temperature": 0.0}, {"layer": -1}])
def test_settings_of_its_signal_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with refused(InvalidSetting):
        Measuring(**wrong)


# --- drawing until it is decided ---------------------------------------------------------------------------------------


RULE = "4: -100 100 0 | 8: 0 | 12"
"""No gate stops, comparisons do behind 8 samples, and what is compared with nothing behind 12."""


def drawn(recorded: Sequence[events.Event]) -> list[tuple[int, int]]:
    """How many samples of how many prompts each comparison took."""
    return [
        (int(event.verdict.rpartition(" ")[2]), event.samples)
        for event in of(events.Decided, recorded)
        if event.kind == "compare"
    ]


async def test_passages_and_ways_to_answer_are_compared_until_one_is_surest() -> None:
    measuring = Measuring(stopping=RULE)
    answer, recorded = await run(speaker(RETRIEVES), [A, B, C], measuring=measuring)
    assert answer.evidence == (await run(speaker(RETRIEVES), [A, B, C]))[0].evidence
    assert drawn(recorded) == [(3, 8), (2, 8)]
    _, recorded = await run(speaker(KNOWS), measuring=measuring)
    assert drawn(recorded) == [(1, 12)]


@pytest.mark.parametrize("settings", [{"rationale_score": "steps"}, {"strategy": "rationales"}, {"follows": "code"}])
async def test_what_is_not_compared_with_another_chain_is_not_drawn_with_it(settings: dict[str, Any]) -> None:
    _, recorded = await run(speaker(RETRIEVES), [A, B, C], measuring=Measuring(stopping=RULE), **settings)
    chains = {"steps": [], "rationales": [(1, 12)], "code": [(2, 8)]}[next(iter(settings.values()))]
    assert drawn(recorded) == [(3, 8), *chains]


# --- concurrency -------------------------------------------------------------------------------------------------------


class Together(Scripted):
    """Holds every call until no other is on its way, and notes how many were held at a time."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.held = 0
        self.crowds: list[int] = []

    async def _hold(self) -> None:
        self.held += 1
        for _ in range(50):
            await asyncio.sleep(0)
        self.crowds.append(self.held)
        await asyncio.sleep(0)
        self.held -= 1

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        await self._hold()
        return await super().generate(prompt, decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        await self._hold()
        return await super().sample(prompt, n, decoding, hidden)


async def test_independent_calls_run_together() -> None:
    model = Together(speaker(RETRIEVES)._script)
    await run(model, [A, B, C])
    # Step 1: draft and samples; then three candidates with both; steps 2 and 3; then both ways of answering with both.
    assert sorted(set(model.crowds)) == [2, 4, 6]
    assert model.crowds.count(6) == 6
    assert model.crowds.count(4) == 4


async def test_an_answer_that_only_repeats_the_question_is_asked_for_at_once() -> None:
    said = {"answer": "Kestrel", "reason": "So the answer is Velkarra."}
    answer, recorded = await run(Scripted(lambda prompt: Reply(said[prompt.task.name], (-0.01,), SURE)))
    assert answer.text == "Kestrel"
    assert "repeats" in verdicts(recorded)
