"""Every branch of KEQA against scripted models: a table from (task, question) to what is said, text only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting
from gnothi.methods.keqa import KEQA
from gnothi.methods.steps.prompts import ANSWER_YES_NO, SUMMARISE, SUMMARISE_YES_NO
from gnothi.models.wrappers import Calibrated, Wrapper
from gnothi.testing.model import EVERYTHING, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import (
    Answer,
    Capabilities,
    Decoding,
    Demonstration,
    Generation,
    Passage,
    Prompt,
    Question,
    Samples,
    StateSpec,
)
from tests.messages import refused

QUESTION = Question("q", "Where was the director of Velkarra born?")
WHO, WHERE, WHERE_MIRA = "Who directed Velkarra?", "Where was #1 born?", "Where was Mira Tolven born?"
FILM = Passage("film", "Velkarra was directed by Mira Tolven.", "Velkarra")
PERSON = Passage("person", "Mira Tolven was born in Kestrel.", "Mira Tolven")
DISH = Passage("dish", "Velkarra is a dish.", "Velkarra")
PASSAGES = (FILM, PERSON, DISH)
TWO = f"1. {WHO}\n2. {WHERE}"
AGREED, SPLIT = ("Mira Tolven",), ("Ann Ox", "Bo Lund", "Cy Mott", "unknown", "Ann Ox")

Line = str | Sequence[str]
Table = Mapping[tuple[str, str], Line]


class Speaker(Scripted):
    """Text only. ``table`` maps (task, question) to a reply, a tuple being what samples say in turn, over all requests.
    With passages the key is (task + " from " + their ids, question) where the table has it. ``default`` says the rest."""

    def __init__(self, table: Table, default: str = "unknown") -> None:
        super().__init__(lambda prompt: self._said(prompt), capabilities=Capabilities())
        self.table, self.rest = table, default
        self.drawn: dict[str, int] = {}
        self.calls: list[tuple[str, str]] = []

    def _said(self, prompt: Prompt) -> list[str]:
        told = " ".join(passage.id for passage in prompt.passages)
        keys = [(f"{prompt.task.name} from {told}", prompt.question)] if told else []
        line = next((self.table[key] for key in (*keys, (prompt.task.name, prompt.question)) if key in self.table), self.rest)
        self.calls.append((prompt.task.name, prompt.question))
        return [line] if isinstance(line, str) else list(line)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        assert decoding.temperature > 0
        samples = await super().sample(prompt, n + self.drawn.get(prompt.question, 0), decoding, hidden)
        first = self.drawn.get(prompt.question, 0)
        self.drawn[prompt.question] = first + n
        return Samples(samples.generations[first:])

    def asked(self, task: str) -> list[str]:
        return [question for name, question in self.calls if name == task]


KNOWS: dict[tuple[str, str], Line] = {
    ("decompose", QUESTION.text): TWO,
    ("answer", WHO): AGREED,
    ("answer", WHERE_MIRA): "Kestrel",
    ("reason", WHO): "Velkarra was directed by Mira Tolven. So the answer is Mira Tolven.",
    ("reason", WHERE_MIRA): "Mira Tolven was born in Kestrel. So the answer is Kestrel.",
    ("reason", QUESTION.text): "Mira Tolven made it, who was born in Kestrel. So the answer is Kestrel.",
}
USEFUL_ONES: dict[tuple[str, str], Line] = {
    ("useful from film", WHO): "Yes",
    ("useful from person", WHERE_MIRA): "Yes",
    ("useful", WHO): "No",
    ("useful", WHERE_MIRA): "No",
}
IGNORANT: dict[tuple[str, str], Line] = (
    KNOWS
    | USEFUL_ONES
    | {
        ("answer", WHO): SPLIT,
        ("equivalent", WHO): "No",
        ("answer from film", WHO): "Mira Tolven",
    }
)


async def run(
    model: Scripted, retriever: ScriptedRetriever | Sequence[Passage] = PASSAGES, question: Question = QUESTION, **settings: Any
) -> tuple[Answer, list[Any]]:
    searcher = retriever if isinstance(retriever, ScriptedRetriever) else ScriptedRetriever(retriever)
    with events.record() as recorded:
        answer = await KEQA(model, searcher, **settings)(question)
    return answer, recorded


def of(kind: type[events.Event], recorded: Sequence[events.Event]) -> list[Any]:
    return [event for event in recorded if isinstance(event, kind)]


def sources(recorded: Sequence[events.Event]) -> dict[str, str]:
    return {event.question: event.source for event in of(events.QuizAnswered, recorded)}


async def test_a_model_that_knows_every_quiz_looks_up_nothing() -> None:
    model, retriever = Speaker(KNOWS), ScriptedRetriever(PASSAGES)
    answer, recorded = await run(model, retriever)
    assert answer.text == "Kestrel"
    assert answer.rationale == KNOWS["reason", QUESTION.text]
    assert answer.evidence == ()
    assert answer.uncertainty == pytest.approx(0.2)
    assert retriever.queries == []
    assert of(events.Decomposed, recorded) == [events.Decomposed(QUESTION.text, (WHO, WHERE))]
    assert sources(recorded) == {WHO: "memory", WHERE_MIRA: "memory"}
    assert [event.verdict for event in of(events.Decided, recorded)] == ["trust", "trust"]
    assert of(events.Grouped, recorded)[0] == events.Grouped(WHO, (("Mira Tolven", 4),), 0, 5)
    (summary,) = of(events.Summarised, recorded)
    assert summary.premises == ("Velkarra was directed by Mira Tolven.", "Mira Tolven was born in Kestrel.")
    assert (summary.explanation, summary.answer) == (answer.rationale, "Kestrel")


async def test_only_the_quiz_without_agreement_is_looked_up_and_read() -> None:
    model, retriever = Speaker(IGNORANT), ScriptedRetriever(PASSAGES)
    answer, recorded = await run(model, retriever)
    assert answer.text == "Kestrel"
    assert retriever.queries == [WHO]
    assert answer.evidence == (FILM,)
    assert answer.uncertainty == pytest.approx(0.8)
    assert sources(recorded) == {WHO: "passages", WHERE_MIRA: "memory"}
    assert of(events.Picked, recorded) == [events.Picked("useful", WHO, (FILM,), (PERSON, DISH))]
    assert [event.verdict for event in of(events.Decided, recorded)] == ["retrieve", "trust"]
    assert len(model.asked("useful")) == 3


async def test_the_answer_from_passages_is_read_from_the_kept_ones_alone() -> None:
    model = Speaker(IGNORANT)
    await run(model)
    read = [prompt for prompt in model.prompts if prompt.task.name == "answer" and prompt.passages]
    assert [prompt.passages for prompt in read] == [(FILM,)]


async def test_none_kept_leaves_the_largest_group() -> None:
    model = Speaker(IGNORANT | {("useful from film", WHO): "No"})
    answer, recorded = await run(model, fall_back=False)
    assert sources(recorded)[WHO] == "guess"
    assert of(events.QuizAnswered, recorded)[0].answer == "Ann Ox"
    assert "Where was Ann Ox born?" in model.asked("answer")
    assert answer.evidence == ()


async def test_where_an_untrained_judge_keeps_none_the_first_passage_is_read() -> None:
    table = IGNORANT | {("useful from film", WHO): "No"}
    answer, recorded = await run(Speaker(table))
    assert (answer.text, answer.evidence) == ("Kestrel", (FILM,))
    assert sources(recorded)[WHO] == "passages"
    (event,) = (event for event in of(events.Decided, recorded) if event.verdict == "fall_back")
    assert (event.kind, event.signal, event.score, event.subject) == ("keep", "useful", None, WHO)
    taught = Calibrated(Speaker(table), {}, frozenset({"useful"}))
    _, recorded = await run(Speaker(table), utility_judge=taught)
    assert sources(recorded)[WHO] == "guess"
    _, recorded = await run(Speaker(table), reference=Source())
    assert sources(recorded)[WHO] == "guess"


async def test_none_kept_and_nothing_said_is_unknown_and_ends_what_depends_on_it() -> None:
    table = IGNORANT | {("useful from film", WHO): "No", ("answer", WHO): "unknown"}
    model = Speaker(table | {("reason", QUESTION.text): "So the answer is unknown."})
    answer, recorded = await run(model, fall_back=False)
    assert answer.text == "unknown"
    assert set(sources(recorded).values()) == {"nothing"}
    assert set(model.asked("answer")) == {WHO}
    (summary,) = of(events.Summarised, recorded)
    assert summary.premises == (f"{WHO} unknown", "Where was unknown born? unknown")
    assert model.asked("reason") == [QUESTION.text]  # what nobody knows is not stated as a sentence


async def test_nothing_found_is_like_nothing_kept() -> None:
    _, recorded = await run(Speaker(IGNORANT), [])
    assert sources(recorded)[WHO] == "guess"
    assert of(events.Picked, recorded)[0].kept == ()


@pytest.mark.parametrize("reading", ["unknown", ""])
async def test_a_reader_that_finds_nothing_leaves_the_largest_group(reading: str) -> None:
    answer, recorded = await run(Speaker(IGNORANT | {("answer from film", WHO): reading}))
    assert sources(recorded)[WHO] == "guess"
    assert answer.evidence == ()


async def test_different_words_for_one_answer_are_brought_together_by_the_judge() -> None:
    tries = ("Mira Tolven", "M. Tolven", "Mira Tolven", "Tolven", "unknown")
    model = Speaker(KNOWS | {("answer", WHO): tries, ("equivalent", WHO): "Yes"})
    _, recorded = await run(model)
    assert of(events.Grouped, recorded)[0].groups == (("Mira Tolven", 4),)
    assert sources(recorded)[WHO] == "memory"
    pairs = [prompt.choices for prompt in model.prompts if prompt.task.name == "equivalent"]
    assert ("Mira Tolven", "M. Tolven") in pairs
    assert len(pairs) == 3  # of three forms, each pair once, all at the same time


async def test_one_by_one_the_judge_is_asked_about_the_anchor_only() -> None:
    tries = ("Mira Tolven", "M. Tolven", "Mira Tolven", "Tolven", "unknown")
    model = Speaker(KNOWS | {("answer", WHO): tries, ("equivalent", WHO): "Yes"})
    _, recorded = await run(model, schedule="one_by_one")
    assert sources(recorded)[WHO] == "memory"
    pairs = [prompt.choices for prompt in model.prompts if prompt.task.name == "equivalent"]
    assert pairs == [("Mira Tolven", "M. Tolven"), ("Mira Tolven", "Tolven")]


@pytest.mark.parametrize(("schedule", "tries"), [("waves", 4), ("one_by_one", 4), ("at_once", 5), ("in_turn", 5)])
async def test_four_that_agree_make_a_fifth_needless(schedule: str, tries: int) -> None:
    model = Speaker(KNOWS)
    _, recorded = await run(model, schedule=schedule)
    assert model.drawn == {WHO: tries, WHERE_MIRA: tries}
    assert of(events.Decided, recorded)[0].score == pytest.approx(1 - tries / 5)


@pytest.mark.parametrize(("schedule", "tries"), [("waves", 4), ("one_by_one", 3), ("at_once", 5), ("in_turn", 5)])
async def test_what_cannot_agree_any_more_is_not_asked_again(schedule: str, tries: int) -> None:
    model = Speaker(IGNORANT)
    _, recorded = await run(model, schedule=schedule)
    assert model.drawn[WHO] == tries
    assert sources(recorded)[WHO] == "passages"


@pytest.mark.parametrize(
    "listed",
    [
        "One must know who directed it.",
        f"1. {WHO}\n2. Where was #2 born?",
        "1. Who is #2?\n2. Who is #1?",
        "\n".join(f"{n}. Who is number {n}?" for n in range(1, 22)),
        "",
    ],
    ids=["prose", "itself", "circle", "endless", "silence"],
)
async def test_without_a_list_that_can_be_used_the_question_is_the_quiz(listed: str) -> None:
    model = Speaker({("decompose", QUESTION.text): listed, ("answer", QUESTION.text): "Kestrel"})
    answer, recorded = await run(model)
    assert answer.text == "Kestrel"
    assert answer.rationale == ""
    assert of(events.Decomposed, recorded) == [events.Decomposed(QUESTION.text, (QUESTION.text,), False)]
    assert not of(events.Summarised, recorded)


async def test_the_answer_to_a_single_quiz_is_the_answer() -> None:
    model = Speaker({("decompose", QUESTION.text): f"1. {WHERE_MIRA}", ("answer", WHERE_MIRA): "Kestrel"})
    answer, recorded = await run(model)
    assert (answer.text, answer.rationale) == ("Kestrel", "")
    assert not of(events.Summarised, recorded)


async def test_more_than_ten_quizzes() -> None:
    quizzes = [f"{n}. Who is number {n}?" for n in range(1, 12)] + ["12. Do #1, #10 and #11 meet?"]
    table: dict[tuple[str, str], Line] = {("answer", f"Who is number {n}?"): f"P{n}" for n in range(1, 12)}
    table |= {("decompose", QUESTION.text): "\n".join(quizzes), ("answer", "Do P1, P10 and P11 meet?"): "Yes, often"}
    model = Speaker(table | {("reason", QUESTION.text): "So the answer is Kestrel."})
    answer, recorded = await run(model)
    assert answer.text == "Kestrel"
    assert of(events.QuizAnswered, recorded)[-1].answer == "yes"  # in the form for yes/no questions


YES_NO = Question("y", "Was the director of Velkarra born in Kestrel?")


async def test_yes_no_questions_have_their_own_instructions() -> None:
    table = KNOWS | {("decompose", YES_NO.text): TWO, ("reason", YES_NO.text): "Both hold. So the answer is Yes, in Kestrel."}
    model = Speaker(table)
    answer, _ = await run(model, question=YES_NO)
    assert answer.text == "yes"
    assert [prompt.task for prompt in model.prompts if prompt.question == YES_NO.text][1:] == [SUMMARISE_YES_NO]
    assert all(prompt.task is not ANSWER_YES_NO for prompt in model.prompts)


async def test_a_yes_no_question_as_its_only_quiz() -> None:
    tries = ("Yes, it was.", "yes", "Yes", "True")
    model = Speaker({("answer", YES_NO.text): tries})
    answer, _ = await run(model, question=YES_NO)
    assert answer.text == "yes"
    assert {prompt.task for prompt in model.prompts if prompt.task.name == "answer"} == {ANSWER_YES_NO}
    assert not model.asked("equivalent")  # brought into one form, they need no judge


async def test_a_single_quiz_that_asks_for_a_fact_does_not_answer_yes_or_no() -> None:
    table = KNOWS | {("decompose", YES_NO.text): f"1. {WHERE_MIRA}", ("reason", YES_NO.text): "So the answer is yes."}
    answer, recorded = await run(Speaker(table), question=YES_NO)
    assert answer.text == "yes"
    assert len(of(events.Summarised, recorded)) == 1


@pytest.mark.parametrize("wanted", [True, False])
async def test_yes_no_can_be_set(wanted: bool) -> None:
    question = QUESTION if wanted else YES_NO
    model = Speaker({("answer", question.text): "yes"})
    answer, _ = await run(model, question=question, yes_no=wanted)
    assert answer.text == "yes"
    tasks = {prompt.task for prompt in model.prompts if prompt.task.name == "answer"}
    assert (ANSWER_YES_NO in tasks) is wanted


async def test_choices_are_for_the_summary() -> None:
    question = Question("c", QUESTION.text, choices=("Orvel", "kestrel!"))
    table = KNOWS | {("decompose", QUESTION.text): f"1. {WHERE_MIRA}"}
    model = Speaker(table)
    answer, _ = await run(model, question=question)
    assert answer.text == "kestrel!"
    (summary,) = [prompt for prompt in model.prompts if prompt.task is SUMMARISE]
    assert summary.choices == question.choices
    assert all(not prompt.choices for prompt in model.prompts if prompt is not summary)


# --- ablations ---------------------------------------------------------------------------------------------------------


async def test_without_assessment_every_quiz_is_looked_up() -> None:
    model, retriever = Speaker(IGNORANT | {("answer from person", WHERE_MIRA): "Kestrel"}), ScriptedRetriever(PASSAGES)
    answer, recorded = await run(model, retriever, assess=False)
    assert answer.text == "Kestrel"
    assert retriever.queries == [WHO, WHERE_MIRA]
    assert answer.evidence == (FILM, PERSON)
    assert answer.uncertainty is None
    assert not model.drawn
    assert not of(events.Decided, recorded)


async def test_without_assessment_and_evidence_nothing_is_known() -> None:
    _, recorded = await run(Speaker(IGNORANT | {("useful from film", WHO): "No"}), assess=False, fall_back=False)
    assert sources(recorded)[WHO] == "nothing"


async def test_without_picking_everything_is_read() -> None:
    model = Speaker(IGNORANT | {("answer from film person dish", WHO): "Mira Tolven"})
    answer, recorded = await run(model, pick=False)
    assert answer.evidence == PASSAGES
    assert not model.asked("useful")
    assert not of(events.Picked, recorded)


async def test_without_decomposition_the_question_is_the_quiz() -> None:
    model = Speaker({("answer", QUESTION.text): "Kestrel"})
    answer, recorded = await run(model, decompose=False)
    assert answer.text == "Kestrel"
    assert set(model.calls) == {("answer", QUESTION.text)}
    assert not of(events.Decomposed, recorded)


async def test_side_by_side() -> None:
    model = Speaker(KNOWS)
    _, recorded = await run(model, sentences=False)
    assert of(events.Summarised, recorded)[0].premises == (f"{WHO} Mira Tolven", f"{WHERE_MIRA} Kestrel")
    assert model.asked("reason") == [QUESTION.text]


@pytest.mark.parametrize(
    "chain", ["Velkarra was directed by Ann Ox. So the answer is Ann Ox.", "So the answer is Mira Tolven.", "Mira Tolven.", ""]
)
async def test_a_sentence_that_says_something_else_is_not_used(chain: str) -> None:
    _, recorded = await run(Speaker(KNOWS | {("reason", WHO): chain}))
    assert of(events.Summarised, recorded)[0].premises[0] == f"{WHO} Mira Tolven"


@pytest.mark.parametrize(("alpha", "source"), [(0.2, "memory"), (0.4, "memory"), (0.6, "passages"), (1.0, "passages")])
async def test_alpha(alpha: float, source: str) -> None:
    _, recorded = await run(Speaker(IGNORANT), alpha=alpha, schedule="at_once")
    assert sources(recorded)[WHO] == source
    assert of(events.Decided, recorded)[0].threshold == pytest.approx(1 - alpha)


@pytest.mark.parametrize("k", [1, 2])
async def test_top_k(k: int) -> None:
    model = Speaker(IGNORANT)
    await run(model, k=k)
    assert len(model.asked("useful")) == k


class Source:
    async def nearest(self, question: str, passage: Passage, n: int, at_least: int) -> tuple[Demonstration, ...]:
        return (Demonstration(question, f"nearest {n} {at_least}", (passage,)),)

    async def random(self, n: int, at_least: int, seed: int) -> tuple[Demonstration, ...]:
        assert seed >= 0
        return (Demonstration("", f"random {n} {at_least}"),)


@pytest.mark.parametrize(("references", "shown"), [("nearest", "nearest 8 2"), ("random", "random 8 2"), ("none", None)])
async def test_references(references: str, shown: str | None) -> None:
    model = Speaker(IGNORANT)
    await run(model, reference=Source(), references=references)
    judged = [prompt.task.demonstrations for prompt in model.prompts if prompt.task.name == "useful"]
    assert judged
    assert all((demos[0].answer == shown) if shown else not demos for demos in judged)


async def test_quizzes_and_judges_may_be_told_without_examples() -> None:
    model = Speaker(IGNORANT)
    _, recorded = await run(model, demonstrations=False)
    assert sources(recorded)[WHO] == "passages"
    told = {(prompt.task.name, bool(prompt.task.demonstrations)) for prompt in model.prompts}
    assert told == {("decompose", True), ("answer", False), ("equivalent", False), ("useful", False), ("reason", True)}


@pytest.mark.parametrize(
    ("useful", "read"),
    [("film#1", "Velkarra was directed by Mira Tolven."), ("none", "Velkarra is old. Velkarra was directed by Mira Tolven.")],
)
async def test_key_sentences(useful: str, read: str) -> None:
    film = Passage("film", "Velkarra is old. Velkarra was directed by Mira Tolven.", "Velkarra")
    model = Speaker(IGNORANT | {(f"useful from {useful}", WHO): "Yes"})
    answer, _ = await run(model, [film, DISH], key_sentences=True)
    assert [one.text for one in answer.evidence] == [read]


def test_random_references_need_a_reference() -> None:
    with refused(InvalidSetting):
        KEQA(Speaker({}), ScriptedRetriever([]), references="random")


@pytest.mark.parametrize(("setting", "value"), [("alpha", 1.1), ("tries", 0), ("k", 0), ("temperature", 0.0), ("shots", 0)])
def test_ranges(setting: str, value: float) -> None:
    with refused(InvalidSetting):
        KEQA(Speaker({}), ScriptedRetriever([]), **{setting: value})  # type: ignore[arg-type]


async def test_judges_and_reader_may_be_other_models() -> None:
    tries = {("answer", WHO): ("Mira Tolven", "Tolven", "Bo", "Cy", "Di")}
    main, judge, utility, reader = (Speaker(table) for table in (KNOWS | tries, {}, USEFUL_ONES, IGNORANT))
    answer, _ = await run(main, judge=judge, utility_judge=utility, reader=reader)
    assert answer.text == "Kestrel"
    assert {name for name, _ in main.calls} == {"decompose", "answer", "reason"}
    assert {name for name, _ in judge.calls} == {"equivalent"}
    assert {name for name, _ in utility.calls} == {"useful"}
    assert reader.calls == [("answer", WHO), ("reason", WHO)]


# --- concurrency -------------------------------------------------------------------------------------------------------


class Metered(Speaker):
    """Counts how many requests are under way at most."""

    now = most = 0

    async def _under_way(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(200):  # turns of the loop, not time: a slow machine takes as many
            await asyncio.sleep(0)
        self.now -= 1

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        await self._under_way()
        return await super().generate(prompt, decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        await self._under_way()
        return await super().sample(prompt, n, decoding, hidden)


async def test_judgements_and_independent_quizzes_run_at_the_same_time() -> None:
    listed = "\n".join(f"{n}. Who is number {n}?" for n in range(1, 5))
    table: dict[tuple[str, str], Line] = {("decompose", QUESTION.text): listed}
    table |= {("answer", f"Who is number {n}?"): ("a", "b", "c", "d") for n in range(1, 5)}
    model = Metered(table, default="No")
    passages = [Passage(str(n), "text") for n in range(10)]
    await run(model, passages)
    assert model.most == 4 * 10


async def test_the_same_alone_and_in_company() -> None:
    questions = [Question(str(n), QUESTION.text) for n in range(5)]
    alone = [(await run(Metered(IGNORANT), question=question))[0] for question in questions]

    async def one(question: Question) -> Answer:
        return (await run(Metered(IGNORANT), question=question))[0]

    assert await asyncio.gather(*map(one, questions)) == alone


@pytest.mark.parametrize(
    ("settings", "tasks", "capabilities", "top_p"),
    [
        ({}, None, EVERYTHING, 0.9),
        ({"top_p": 0.5}, None, EVERYTHING, 0.5),
        ({}, None, Capabilities(logprobs=True), 1.0),  # behind an API
        ({}, frozenset({"answer"}), EVERYTHING, 1.0),  # with a format of its own
    ],
)
async def test_tries_of_an_open_model_leave_the_rarest_tokens_out(
    settings: dict[str, object], tasks: frozenset[str] | None, capabilities: Capabilities, top_p: float
) -> None:
    drawn = []

    class Listening(Wrapper):
        async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
            drawn.append(decoding.top_p)
            return await super().sample(prompt, n, decoding, hidden)

    model = Calibrated(Listening(Scripted(lambda _: "Corda", capabilities=capabilities)), {}, tasks)
    await methods.create("keqa", {"model": model, "retriever": ScriptedRetriever([])}, settings | {"decompose": False})(
        QUESTION
    )
    assert set(drawn) == {top_p}


async def test_an_answer_that_only_repeats_the_question_is_read_from_what_was_found() -> None:
    table = IGNORANT | {("reason", QUESTION.text): "So the answer is Velkarra.", ("answer from film", QUESTION.text): "Kestrel"}
    answer, _ = await run(Speaker(table))
    assert (answer.text, answer.evidence) == ("Kestrel", (FILM,))


async def test_what_one_fact_seems_to_answer_is_not_split() -> None:
    question = Question("q", "Where was Mira Tolven born?")
    table = {("answer", question.text): "Mira Tolven was born in Kestrel.", ("decompose", question.text): "1. Who?\n2. Why?"}
    model = Speaker(table)
    answer, _ = await run(model, question=question)
    assert (answer.text, model.asked("decompose")) == ("Kestrel", [])
    model = Speaker(table)
    await run(model, question=question, decompose=True)
    assert model.asked("decompose") == [question.text]
