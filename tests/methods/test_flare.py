"""What makes FLARE: the draft looks ahead, an improbable token triggers a search, the sentence is written anew."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi import events, methods
from gnothi.errors import MissingCapability
from gnothi.methods.steps.queries import certain_words, uncertain_spans
from gnothi.models.wrappers import Calibrated
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Capabilities, Generation, Passage, Prompt, Question, Token
from tests.messages import refused

QUESTION = Question("q", "Where was the painter Mira born?")
TRUTH = Passage("truth", "Mira was born in Kestrel.")
OTHER = Passage("other", "Mira is also a dish.")


def script(probability: float) -> Scripted:
    """Drafts "Vesk", of that probability; reads "Kestrel"."""

    def reply(prompt: Prompt) -> Reply:
        if prompt.task.name == "ask_for":
            return Reply("Where was Mira born?")
        if prompt.answer_so_far:
            return Reply(f"So the answer is {'Kestrel' if 'Kestrel' in prompt.answer_so_far else 'Vesk'}.", (-0.001,))
        if prompt.passages:
            return Reply("Mira was born in Kestrel. And", (-0.001,))
        return Reply("Mira was born in Vesk. And", (-0.001, -0.001, -0.001, -0.001, math.log(probability)))

    return Scripted(reply)


async def run(model: Scripted, **settings: object) -> tuple[str, list[str], list[events.Decided]]:
    retriever = ScriptedRetriever([TRUTH, OTHER])
    with events.record() as recorded:
        answer = await methods.create("flare", {"model": model, "retriever": retriever}, settings)(QUESTION)
    return answer.text, retriever.queries, [event for event in recorded if isinstance(event, events.Decided)]


async def test_an_improbable_token_triggers_a_search_with_the_masked_draft() -> None:
    answer, queries, decided = await run(script(0.3))
    assert answer == "Kestrel"
    assert queries == ["Mira was born in"]
    assert [event.verdict for event in decided] == ["retrieve", "trust"]
    assert (decided[0].score, decided[0].threshold) == pytest.approx((0.7, 0.2))


async def test_between_beta_and_theta_the_word_stays_in_the_query() -> None:
    _, queries, _ = await run(script(0.6))
    assert queries == ["Mira was born in Vesk"]


async def test_a_sure_draft_is_kept_without_a_search() -> None:
    assert (await run(script(0.9)))[:2] == ("Vesk", [])
    assert (await run(script(0.9), theta=0.95))[0] == "Kestrel"


async def test_drafts_see_no_passages_and_rewritten_sentences_do() -> None:
    model = script(0.3)
    await run(model, k=1)
    assert [(prompt.passages, prompt.answer_so_far) for prompt in model.prompts] == [
        ((), ""),
        ((TRUTH,), ""),
        ((), "Mira was born in Kestrel."),
    ]


async def test_questions_about_what_was_improbable() -> None:
    model = script(0.3)
    answer, queries, _ = await run(model, query="questions")
    assert (answer, queries) == ("Kestrel", ["Where was Mira born?"])
    (asked,) = (prompt.question for prompt in model.prompts if prompt.task.name == "ask_for")
    assert asked == f'{QUESTION.text} Mira was born in Vesk. "Vesk"'


async def test_a_question_is_asked_for_in_view_of_the_answer_so_far() -> None:
    def reply(prompt: Prompt) -> Reply:
        if prompt.task.name == "ask_for":
            return Reply("Where was Mira born?")
        if not prompt.answer_so_far:
            return Reply("The painter is Mira. She", (-0.001,))
        if "born" in prompt.answer_so_far:
            return Reply("So the answer is Vesk.", (-0.001,))
        return Reply("She was born in Vesk. And", (-0.001, -0.001, -0.001, -0.001, math.log(0.3)))

    model = Scripted(reply)
    await run(model, query="questions")
    (asked,) = (prompt.question for prompt in model.prompts if prompt.task.name == "ask_for")
    assert asked == f'{QUESTION.text} The painter is Mira. She was born in Vesk. "Vesk"'


async def test_without_an_improbable_word_to_ask_for_the_draft_is_searched_for() -> None:
    model = script(0.6)  # between beta and theta
    answer, queries, _ = await run(model, query="questions")
    assert (answer, queries) == ("Kestrel", ["Mira was born in Vesk."])
    assert not [prompt for prompt in model.prompts if prompt.task.name == "ask_for"]


@pytest.mark.parametrize("query", ["masked", "questions"])
async def test_a_blank_draft_leaves_the_question(query: str) -> None:
    model = Scripted(lambda prompt: Reply("Mira was born in Kestrel. And" if prompt.passages else "", (-0.001,)))
    assert (await run(model, query=query))[1] == [QUESTION.text] * 2


async def test_several_questions_share_the_places_in_turns() -> None:
    first, second = (tuple(Passage(f"{name}{n}", f"{name} {n}") for n in (1, 2)) for name in "ab")

    def reply(prompt: Prompt) -> Reply:
        if prompt.task.name == "ask_for":
            return Reply("Who?" if prompt.question.endswith('"Mira"') else "Where?")
        unsure = math.log(0.3)
        return Reply("Mira was born in Vesk. And", (unsure, -0.001, -0.001, -0.001, -0.001 if prompt.passages else unsure))

    model, retriever = Scripted(reply), ScriptedRetriever({"Who?": first, "Where?": second})
    settings = {"query": "questions", "k": 3, "max_steps": 1}
    answer = await methods.create("flare", {"model": model, "retriever": retriever}, settings)(QUESTION)
    assert retriever.queries == ["Who?", "Where?"]
    assert answer.evidence == (first[0], second[0], first[1])


async def test_searching_first() -> None:
    model = script(0.9)
    answer, queries, _ = await run(model, search_first=True)
    assert (answer, queries) == ("Kestrel", [QUESTION.text])
    assert all(prompt.passages == (TRUTH, OTHER) for prompt in model.prompts)


def test_a_model_with_a_format_of_its_own_is_refused_what_it_was_not_taught() -> None:
    lab = Calibrated(Scripted({}, name="lab"), {}, frozenset({"reason"}))
    resources = {"model": lab, "retriever": ScriptedRetriever([])}
    methods.create("flare", resources, {})
    with refused(MissingCapability):
        methods.create("flare", resources, {"query": "questions"})


def test_a_reader_has_to_say_how_probable_its_words_were() -> None:
    model, silent = Scripted({}), Scripted({}, capabilities=Capabilities())
    resources = {"model": silent, "retriever": ScriptedRetriever([])}
    methods.create("flare", resources | {"reader": model}, {})
    with refused(MissingCapability):
        methods.create("flare", resources | {"model": model, "reader": silent}, {})


words = st.lists(st.tuples(st.from_regex(r"\A[a-z]{1,5}\Z"), st.floats(0.01, 1.0)), max_size=12)


@settings(max_examples=settings().max_examples // 3)
@given(words, st.floats(0.0, 1.0))
def test_every_word_is_kept_or_in_a_span(drawn: list[tuple[str, float]], least: float) -> None:
    tokens = tuple(Token(f" {word}", math.log(p)) for word, p in drawn)
    draft = Generation("".join(token.text for token in tokens).strip(), tokens)
    kept, spans = certain_words(draft, least).split(), " ".join(uncertain_spans(draft, least)).split()
    assert sorted(kept + spans) == sorted(word for word, _ in drawn)


async def test_what_goes_round_is_cut_and_searched_for_once() -> None:
    model = Scripted(lambda _: Reply("She is Canadian-born, Canadian-born, Canadian-born, Canadian-born", (math.log(0.5),)))
    retriever = ScriptedRetriever([])
    answer = await methods.create("flare", {"model": model, "retriever": retriever}, {})(QUESTION)
    assert retriever.queries == ["She is Canadian-born,"]
    assert answer.rationale.startswith("She is Canadian-born, So the answer is")
    assert answer.text == "Canadian-born,"


async def test_a_conclusion_is_searched_for_with_its_question() -> None:
    def reply(_: Prompt) -> Reply:
        return Reply("So the answer is Vesk.", (-0.001, -0.001, -0.001, -0.001, math.log(0.5)))

    _, queries, _ = await run(Scripted(reply))
    assert queries == [f"{QUESTION.text} Vesk"]
    _, queries, _ = await run(Scripted(reply), beta=0.6)
    assert queries == [QUESTION.text]


async def test_an_answer_that_repeats_the_question_is_read_from_the_passages() -> None:
    def reply(prompt: Prompt) -> Reply:
        return Reply("Kestrel" if prompt.task.name == "answer" else "So the answer is Mira.", (math.log(0.5),))

    assert (await run(Scripted(reply)))[0] == "Kestrel"


async def test_a_sentence_that_adds_nothing_ends_the_text() -> None:
    sentences = {"": "Mira painted The Tide", "Mira painted The Tide.": "The Tide was painted by Mira"}
    model = Scripted(lambda prompt: Reply(sentences.get(prompt.answer_so_far, "Kestrel"), (-0.001,)))
    retriever = ScriptedRetriever([])
    answer = await methods.create("flare", {"model": model, "retriever": retriever}, {})(QUESTION)
    assert answer.rationale == "Mira painted The Tide. So the answer is Kestrel"


async def test_what_replaced_the_draft_is_told() -> None:
    with events.record() as recorded:
        await methods.create("flare", {"model": script(0.3), "retriever": ScriptedRetriever([TRUTH])}, {})(QUESTION)
    assert [event.text for event in recorded if isinstance(event, events.Written)] == ["Mira was born in Kestrel."]


@pytest.mark.parametrize(("most", "first", "searches"), [(None, False, 2), (1, False, 1), (1, True, 1), (2, True, 2)])
async def test_a_question_may_take_so_many_searches(most: int | None, first: bool, searches: int) -> None:
    def reply(prompt: Prompt) -> Reply:
        said = prompt.answer_so_far.count("was")
        return Reply(
            f"Number {said} was {'seen' if said == 1 else 'told'}" if said < 2 else "So the answer is Kestrel", (-3.0,)
        )

    retriever = ScriptedRetriever([Passage("p", "It was so.")])
    settings = {"theta": 0.5, "max_searches": most, "search_first": first, "max_steps": 2, "extra_calls": False}
    method = methods.create("flare", {"model": Scripted(reply), "retriever": retriever}, settings)
    await method(Question("q", "What was seen?"))
    assert len(retriever.queries) == searches
