"""What makes DRAGIN: entropy times attention triggers, the text is cut there, attention makes the query."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events, methods
from gnothi.errors import MissingCapability
from gnothi.methods.steps.queries import is_content
from gnothi.signals.attention import attended_words, needs_for_information
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Attended, Capabilities, Passage, Profile, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was the painter of The Tide born?")
TRUTH = Passage("truth", "Mira was born in Kestrel.")
DRAFT = "The painter is Mira. Mira was born in Vesk."


class Looking(Scripted):
    """Drafts DRAFT, reads Kestrel. ``entropies`` by word; every word looks at the one before it and at ``at``."""

    def __init__(self, entropies: Mapping[str, float], at: str = "Tide", sink: float = 0.0) -> None:
        super().__init__(self._reply)
        self.entropies, self.at, self.sink = entropies, at, sink

    def _reply(self, prompt: Prompt) -> Reply:
        if prompt.answer_so_far.endswith("is"):
            return Reply(" Kestrel." if prompt.passages else " Vesk.")
        if "Kestrel" in prompt.answer_so_far:
            return Reply("So the answer is Kestrel.")
        if prompt.passages:
            return Reply("Kestrel. So the answer is Kestrel.")
        return Reply(f"{DRAFT} So the answer is Vesk.")

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        before = ["Question:", *f" {prompt.question}".split(), "Answer:", *prompt.answer_so_far.split()]
        words = continuation.split()
        tokens = [f" {word}" for word in [*before, *words]]
        attention = np.zeros((len(words), len(tokens)), np.float32)
        for row in range(len(words)):
            place = len(before) + row
            attention[row, place - 1] += 0.6
            attention[row, tokens.index(f" {self.at}")] += 0.3
            attention[row, 0] += 0.1
        entropies = np.array([self.entropies.get(word.strip("."), 0.01) for word in words], np.float32)
        return Attended(tuple(tokens), entropies, attention)


async def run(
    model: Scripted, attention: str = "absolute", **settings: object
) -> tuple[Answer, list[str], list[events.Decided]]:
    retriever = ScriptedRetriever([TRUTH])
    with events.record() as recorded:
        answer = await methods.create("dragin", {"model": model, "retriever": retriever}, {"attention": attention} | settings)(
            QUESTION
        )
    return answer, retriever.queries, [event for event in recorded if isinstance(event, events.Decided)]


async def test_the_text_is_cut_before_the_token_and_goes_on_from_what_is_found() -> None:
    model = Looking({"Vesk": 3.0})
    answer, queries, decided = await run(model)
    assert answer.text == "Kestrel"
    assert answer.rationale == "The painter is Mira. Mira was born in Kestrel. So the answer is Kestrel."
    assert answer.evidence == (TRUTH,)
    assert len(queries) == 1
    assert [(event.signal, event.verdict) for event in decided] == [("rind", "retrieve")] + [("rind", "trust")] * (
        len(decided) - 1
    )
    assert decided[0].score == pytest.approx(1.8)
    assert decided[0].subject == "Vesk."
    (cut,) = [prompt.answer_so_far for prompt in model.prompts if prompt.passages][:1]
    assert cut == "The painter is Mira. Mira was born in"


async def test_the_first_token_in_need_is_where_the_text_is_cut() -> None:
    model = Looking({"Mira": 3.0, "Vesk": 5.0})
    _, _, decided = await run(model, max_steps=1)
    assert decided[0].subject == "Mira."
    (cut,) = [prompt.answer_so_far for prompt in model.prompts if prompt.passages][:1]
    assert cut == "The painter is"


async def test_what_was_found_stays_in_sight_of_later_drafts() -> None:
    class Stepwise(Looking):
        def _reply(self, prompt: Prompt) -> Reply:
            return Reply("Kestrel. And") if prompt.answer_so_far.endswith("in") else super()._reply(prompt)

    model = Stepwise({"Vesk": 3.0})
    answer, _, _ = await run(model)
    assert answer.text == "Kestrel"
    assert [(prompt.answer_so_far, prompt.passages) for prompt in model.prompts] == [
        ("", ()),  # a draft, then what is read from what was found, then a draft again
        ("The painter is Mira. Mira was born in", (TRUTH,)),
        ("The painter is Mira. Mira was born in Kestrel.", (TRUTH,)),
    ]


async def test_checked_text_stays_where_nothing_follows_it() -> None:
    class Silent(Looking):
        def _reply(self, prompt: Prompt) -> Reply:
            return Reply("") if prompt.passages and not prompt.answer_so_far.endswith("is") else super()._reply(prompt)

    answer, _, _ = await run(Silent({"Vesk": 3.0}))
    assert answer.rationale == "The painter is Mira. Mira was born in So the answer is Kestrel."
    assert answer.text == "Kestrel"


async def test_the_query_is_what_the_token_looks_at_most_in_order() -> None:
    assert (await run(Looking({"Vesk": 3.0}), top_n=1))[1] == ["Tide"]
    _, (query,), _ = await run(Looking({"Vesk": 3.0}))
    assert query == "painter The Tide born painter Mira Mira born"  # no function words but in names, no labels of the prompt


async def test_entropy_alone_attention_alone_or_a_function_word_is_no_need() -> None:
    assert (await run(Looking({})))[1] == []
    assert (await run(Looking({"was": 9.0, "is": 9.0})))[1] == []
    assert (await run(Looking({"Vesk": 3.0}), theta=2.0))[1] == []
    assert (await run(Looking({})))[0].text == "Vesk"


async def test_theta_may_be_calibrated() -> None:
    model = Looking({"Vesk": 3.0})
    model.profile = Profile(thresholds={"rind": 2.0})
    assert (await run(model))[1] == []
    assert (await run(model, theta=1.0))[1]


def test_a_model_that_cannot_say_where_it_looks_is_refused() -> None:
    blind = Scripted({}, name="blind", capabilities=Capabilities(logprobs=True, scoring=True))
    with refused(MissingCapability):
        methods.create("dragin", {"model": blind, "retriever": ScriptedRetriever([])}, {})


def every(*_: object) -> bool:
    return True


def attended(tokens: list[str], attention: list[list[float]], entropies: list[float]) -> Attended:
    return Attended(tuple(tokens), np.array(entropies, np.float32), np.array(attention, np.float32))


def test_needs() -> None:
    one = attended(["a", " b", " the", " c"], [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.1, 0.2, 0.6, 0.1]], [2.0, 3.0, 4.0])
    assert one.prompt_tokens == 1
    assert needs_for_information(one, lambda word, _: word != "the", relative=False) == pytest.approx([1.0, 0.0, 0.0])
    assert needs_for_information(one, every, relative=False) == pytest.approx([1.0, 1.8, 0.0])


def test_needs_by_the_mean_attention_of_their_sentence() -> None:
    one = attended(["a", " b", " the", " c"], [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.1, 0.2, 0.6, 0.1]], [2.0, 3.0, 4.0])
    assert needs_for_information(one, every) == pytest.approx([2 * 0.5 * 3 / 1.1, 3 * 0.6 * 3 / 1.1, 0.0], rel=1e-6)
    assert needs_for_information(one, lambda word, _: word != "the")[1] == 0.0
    words = ["q", " So", ".", " Yes", " it", " is."]
    rows: list[list[float]] = [
        [1, 0, 0, 0, 0, 0],
        [0, 0.5, 0, 0, 0, 0],
        [0, 0.1, 0.25, 0, 0, 0],
        [0, 0, 0, 0.2, 0, 0],
        [0, 0, 0, 0.1, 0.3, 0],
    ]
    two = attended(words, rows, [1.0] * 5)
    assert needs_for_information(two, every) == pytest.approx([4 / 3, 0, 1.2, 1.8, 0.0], rel=1e-6)


@given(st.integers(2, 12), st.floats(0.01, 1.0), st.integers(0, 2**32 - 1))
def test_relative_needs_do_not_depend_on_how_much_else_is_looked_at(count: int, share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    weights = np.tril(random.random((count, count)), -1)
    before = np.zeros((count, 1))
    entropies = random.random(count).tolist()
    tokens = ["<s>", *(f" w{place}" for place in range(count))]
    beside = np.hstack([before, weights]), np.hstack([before + 1 - share, share * weights])
    whole, less = (attended(tokens, [list(row) for row in rows], entropies) for rows in beside)
    assert needs_for_information(whole, every) == pytest.approx(needs_for_information(less, every), rel=1e-4)


async def test_relative_attention_is_the_default() -> None:
    _, queries, decided = await run(Looking({"Vesk": 3.0}), attention="relative")
    assert queries
    assert decided[0].score != pytest.approx(1.8)
    assert methods.spec("dragin").settings["attention"].default == "relative"


def even(tokens: list[str], prompt: int) -> Attended:
    """All are looked at alike, and the model is as unsure of each."""
    count = len(tokens) - prompt
    return attended(tokens, [[1.0] * len(tokens)] * count, [1.0] * count)


def counted(tokens: list[str], prompt: int = 1) -> list[str]:
    """The tokens of a continuation that can show a need."""
    needs = needs_for_information(even(tokens, prompt), is_content, relative=False)
    return [token for token, need in zip(tokens[prompt:], needs, strict=True) if need]


def test_a_piece_of_a_word_counts_as_the_word_does() -> None:
    assert counted(["Q:", " Mira", " lived", " in", " Berl", "in", ".", " Next"]) == [" Mira", " lived", " Berl", "in"]
    assert counted(["Q:", " This", " is", " wi", "th", " with", "draw", "n", " it"]) == [" with", "draw", "n"]


def test_a_capital_within_a_sentence_makes_a_name() -> None:
    names = ["Q:", " Will", " saw", " The", " Who", " in", " the", " US", ".", " May", " came", " last"]
    assert counted(names) == [" saw", " The", " Who", " US", " came"]
    assert counted(["Q:", " He", " died", " in", " May", " or", " so"], prompt=4) == [" May"]  # the text so far went before
    assert counted(["Q:", " He", " died", ".", " May", " or", " so"], prompt=4) == []
    assert counted(["<reason>", " Who", " is", " it"]) == counted(["<s>", "Who", " is", " it"]) == []


def test_names_are_looked_for() -> None:
    one = even(["Q:", " Who", " led", " The", " Who", " in", " the", " US", "?", " A:", " May", "be", " T"], 10)
    words = attended_words(one, 1, "Who led The Who in the US?", 9, is_content)
    assert words == ["led", "The", "Who", "US?"]


async def test_a_name_that_looks_like_a_function_word_is_a_need_and_part_of_the_query() -> None:
    class Naming(Looking):
        def _reply(self, prompt: Prompt) -> Reply:
            if prompt.answer_so_far:
                return super()._reply(prompt)
            return Reply("Kestrel." if prompt.passages else "It was painted for the US in May. So the answer is Vesk.")

    _, queries, decided = await run(Naming({"May": 3.0}))
    assert (decided[0].verdict, decided[0].subject) == ("retrieve", "May.")
    assert queries == ["painter The Tide born painted US"]


def test_words_of_several_tokens_count_once() -> None:
    tokens = ["<s>", "Who", " pain", "ted", " it", "?", "\nAns", "wer:", " Mir", "a", " Tol"]
    row = [0.3, 0.1, 0.05, 0.2, 0.1, 0, 0.02, 0.03, 0.2, 0, 0]
    one = attended(tokens, [row] * 3, [1.0] * 3)
    assert attended_words(one, 2, "Who painted it?", 2, lambda word, _: word != "it?") == ["painted", "Mira"]
    assert attended_words(one, 2, "Who  painted it ?", 9, every) == ["Who", "painted", "it?", "Answer:", "Mira"]
    assert attended_words(one, 2, "absent", 9, every) == ["Mira"]


async def test_text_that_goes_round_is_cut_and_an_answer_that_repeats_the_question_is_read() -> None:
    def reply(prompt: Prompt) -> Reply:
        if prompt.task.name == "answer":
            return Reply("Kestrel")
        if prompt.answer_so_far.endswith("is"):
            return Reply("The Tide")
        return Reply("Mira painted The Tide. Mira painted The Tide. So the answer is The Tide.")

    model = Looking({"painted": 3.0})
    model._script = reply
    answer, _, _ = await run(model)
    assert answer.text == "Kestrel"
    assert answer.rationale.count("painted") == 1
