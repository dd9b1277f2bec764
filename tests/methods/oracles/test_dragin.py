"""DRAGIN against its authors' loop (oneal2000/DRAGIN, ``src/generate.py``), with the settings of ``seakr/table1``.

``DECLARED`` says what is left out of the comparison.
"""

from __future__ import annotations

import asyncio
import types
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnothi.methods.steps.parsing import split_sentences
from gnothi.methods.steps.queries import is_content
from gnothi.testing.model import Scripted
from gnothi.types import Attended, Passage, Prompt, Question
from tests.methods.oracles.authors import FAST, LONG, function
from tests.methods.oracles.scripts import ANSWERS, QUESTION, Course, Outcome, Searcher, cut, names
from tests.reproduce.planned import made, row

DECLARED = {
    "heads": "the greatest of the mean over heads; the code has the mean of each head's greatest (here there is one head)",
    "read without its prompt": "RIND reads the draft after its prompt; the code reads the draft alone (here that is the same)",
    "words": "which words say something: our list of function words on both sides (spaCy's word classes there)",
    "sentences": "where sentences end: our splitter on both sides (spaCy there)",
    "first word": "what the first word of a draft was predicted from: its own row here (there that of the word before it)",
    "labels": "what a prompt has between question and text takes no attention here",
    "length": "a text's tokens are those that its parts were written with, and one; the code counts them in the whole anew",
    "begins with a note": "a text that does has a blank answer there; no script has one",
    "nothing found": "their retriever always finds its k; here the draft stands on both sides",
    "nothing to look for": "a query without words is the question here, blank there; no script has one",
}
LABEL = ("seakr/table1", "2wiki", "DRAGIN")


def settings(seed: int) -> dict[str, Any]:
    """The recipe's; every other text may be shorter, so that many come to their limit."""
    values = row(*LABEL).values
    return {**values, "max_tokens": values["max_tokens"] if seed % 2 else 15}


def says(course: Course, so_far: str, shown: tuple[str, ...]) -> str:
    course.read.add((so_far, shown))
    draw = course.draw(so_far, shown)
    if draw.random() < 0.06:
        return draw.choice(["", " "])
    return " " + draw.choice([" ", "\n"]).join(_sentence(course, draw) for _ in range(draw.randint(1, 3)))


def _sentence(course: Course, draw: Random) -> str:
    kind = draw.random()
    if kind < 0.2:
        return f"So the {draw.choice(['', '', 'final '])}answer is {draw.choice(ANSWERS)}{draw.choice(['.', '.', '!'])}"
    if kind < 0.3:
        return draw.choice(["It is so.", "unknown.", "It is told. Note: so it is.", "Cedar, Cedar, Cedar, Cedar is so."])
    return course.fact(draw)


def looks(course: Course, so_far: str, draft: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Entropies of the draft's words, and where each looks among the words of question, text and draft."""
    draw = np.random.default_rng(list(f"{course.seed} {so_far} {draft}".encode()))
    before, count = len(f"{QUESTION} {so_far}".split()), len(draft.split())
    attention = draw.random((count, before + count)).astype(np.float32) ** 4
    attention *= np.tri(count, before + count, before)
    attention /= attention.sum(1, keepdims=True)
    return (draw.random(count) * draw.choice([0.3, 0.8])).astype(np.float32), attention.astype(np.float32)


class Looking(Scripted):
    def __init__(self, course: Course) -> None:
        super().__init__(lambda prompt: says(course, prompt.answer_so_far, names(prompt.passages)))
        self.course = course

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        entropies, attention = looks(self.course, prompt.answer_so_far, continuation)
        told, so_far, words = QUESTION.split(), prompt.answer_so_far.split(), continuation.split()
        tokens = ["Question:", *told, "\nAnswer:", *so_far, *words]
        shown = np.insert(attention, [0, len(told)], 0, axis=1)
        return Attended(tuple(f" {token}" for token in tokens), entropies, shown)


def ours(seed: int) -> Outcome:
    course = Course(seed)
    method = made(*LABEL, model=Looking(course), retriever=Searcher(course))
    method = replace(method, max_tokens=settings(seed)["max_tokens"])  # type: ignore[type-var]
    answer = asyncio.run(method(Question("q", QUESTION)))
    return Outcome.of(course, list(answer.evidence), answer.text)


# --- the loop in our own words -----------------------------------------------------------------------------------------


def restated(seed: int) -> Outcome:
    course, values = Course(seed), settings(seed)
    most, text = values["max_tokens"], ""
    held: tuple[Passage, ...] = ()
    read: dict[Passage, None] = {}
    for _ in range(values["max_steps"]):
        draft = cut(says(course, text, ()), most).strip()
        if not draft:
            break
        entropies, attention = looks(course, text, draft)
        before = len(f"{QUESTION} {text}".split())
        words = f"{QUESTION} {text} {draft}".split()
        longer, start = f"{text} {draft}".strip(), before
        kept = text
        for sentence in _sentences(draft):
            end = start + len(sentence.split())
            seen = np.array([attention[place - before :, place].max() for place in range(start, end)], np.float64)
            needs = entropies[start - before : end - before] * seen / seen.mean()
            unsure = [start + int(place) for place in np.flatnonzero(needs > values["theta"])]
            if unsure:
                hits = [place for place in unsure if _says_something(words[place])]
                weights = sum((_predicting(attention, before, place) for place in hits), np.zeros(len(words)))
                real = [place for place in range(end) if _says_something(words[place]) and place not in hits]
                best = sorted(sorted(real, key=lambda place: -weights[place])[: values["top_n"]])
                found = course.find(" ".join(words[place] for place in best), values["k"])
                if found:
                    held = tuple(found)
                    read |= dict.fromkeys(found)
                    longer = f"{kept} {_sentences(cut(says(course, kept, names(held)), most))[0]}".strip()
                break
            kept, start = f"{kept} {sentence}".strip(), end
        ends = len(longer) <= len(text) or "the answer is" in longer or len(longer.split()) >= most
        text = longer
        if ends:
            break
    return Outcome.of(course, list(read), _named(course, text))


def _sentences(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    return [one for line in lines for one in split_sentences(line)] or [""]


def _says_something(word: str) -> bool:
    return is_content(word, word != "May")  # which opens no sentence here


def _predicting(attention: NDArray[np.float32], before: int, place: int) -> NDArray[np.float64]:
    weights = np.zeros(attention.shape[1])
    weights[:place] = attention[max(place - before - 1, 0), :place]
    predicting: NDArray[np.float64] = weights / weights.sum()
    return predicting


def _named(course: Course, text: str) -> str:
    """What is asked for without passages, in twenty words."""
    kept = _before_notes(text)
    if "the answer is" not in kept:
        said = f"{' '.join(kept.split())} So the answer is".strip()
        return _before_notes(f" {cut(says(course, said, ()), 20)}").strip().removesuffix(".")
    return kept.partition("the answer is")[2].strip().removesuffix(".")


def _before_notes(text: str) -> str:
    return text[: text.find("Note:")] if text.find("Note:") > 0 else text


# --- theirs ------------------------------------------------------------------------------------------------------------


def theirs(authors: dict[str, Any], seed: int) -> Outcome:
    course, values = Course(seed), settings(seed)
    at: dict[str, Any] = {"text": "", "draft": "", "held": (), "query": ""}
    read: dict[Passage, None] = {}

    def generate_attn(prompt: str, most: int, **_: object) -> tuple[Any, ...]:
        at["text"] = prompt.removeprefix(CASE).strip()
        said = cut(says(course, at["text"], ()), most)
        at["draft"] = said.strip()
        if not said.strip():
            return "", [], [], None, []
        entropies, attention = looks(course, at["text"], at["draft"])
        before = attention.shape[1] - len(entropies)
        seen = [float(attention[place:, before + place].max()) for place in range(len(entropies))]
        return said, said.split(), seen, None, list(entropies)

    def generate(prompt: str, most: int) -> tuple[str, None, None]:
        return cut(says(course, prompt.partition(CASE)[2].strip(), names(at["held"])), most), None, None

    def retrieve(query: str, topk: int) -> list[str]:
        found = course.find(query, topk)
        at["held"] = tuple(found)
        read.update(dict.fromkeys(found))
        return [one.text for one in found]

    class Row:
        """Ids, which are the words."""

        def __init__(self, words: list[str]) -> None:
            self.words, self.shape = words, (1, len(words))

        def __getitem__(self, place: int) -> list[str]:
            return self.words

    def attend(ids: Row, **__: object) -> Any:
        _, attention = looks(course, at["text"], at["draft"])
        before = attention.shape[1] - attention.shape[0]
        rows = np.zeros((before, attention.shape[1]), np.float32)
        rows[-1] = attention[0]  # declared: first word
        whole = np.concatenate([rows, attention])[: ids.shape[1], : ids.shape[1]]
        return types.SimpleNamespace(attentions=[whole.astype(np.float64)[None, None]])

    def encode(text: str, **options: object) -> Any:
        if options:
            return Row(text.split())
        return ["<s>", *text.split()]

    tokenizer = types.SimpleNamespace(encode=encode, convert_ids_to_tokens=lambda words: [f"_{word}" for word in words])
    generator = types.SimpleNamespace(
        generate_attn=generate_attn, generate=generate, tokenizer=tokenizer, space_token="_", model=attend
    )
    theirs = types.SimpleNamespace(
        generator=generator, generate_max_length=values["max_tokens"], method="dragin", use_counter=False,
        query_formulation="real_words",
        retrieve=retrieve, retrieve_topk=values["k"], hallucination_threshold=values["theta"], check_real_words=True,
        retrieve_keep_top_k=values["top_n"], get_top_sentence=lambda text: _sentences(text)[0],
    )  # fmt: skip
    theirs.keep_real_words = lambda **_: at["query"]

    def modifier(said: str, *told: Any) -> Any:
        judged = authors["modifier"](theirs, said, *told)
        _, kept, words, unsure = judged
        if judged[0]:
            at["query"] = query = authors["keep_real_words"](theirs, f"{QUESTION} {at['text']} {kept}", words, unsure)
            if not Course(seed).find(query, values["k"]):  # declared: nothing found
                course.searched.append(query)
                return False, said, None, None
        return judged

    theirs.modifier = modifier
    text = authors["inference"](theirs, QUESTION, [], CASE)
    return Outcome.of(course, list(read), concluded(authors, course, text))


def concluded(authors: dict[str, Any], course: Course, text: str) -> str:
    """What their evaluation makes of a text; it asks again where that names no answer."""

    class Ids:
        """Of a text, and of what follows it."""

        shape = (1, 0)

        def __init__(self, text: str) -> None:
            self.text = text

        def to(self, _: object) -> Ids:
            return self

        def __getitem__(self, _: object) -> Ids:
            return self

    def generate(input_ids: Ids, max_new_tokens: int, **_: object) -> Ids:
        said = " ".join(input_ids.text.removeprefix(CASE).split())
        return Ids(cut(says(course, said, ()), max_new_tokens))

    tokenizer = types.SimpleNamespace(encode=lambda text, **_: Ids(text), decode=lambda ids: ids.text)
    model = types.SimpleNamespace(generate=generate, device=None)
    said = authors["regenerate_answer"](text.strip(), tokenizer, model, CASE, [])
    return str(authors["get_real_prediction"](None, said)).strip().removesuffix(".")  # which a blank before a note saves there


CASE = "Question: who?\nAnswer:"


def load() -> dict[str, Any]:

    class Doc(list[Any]):
        text = ""

        @property
        def sents(self) -> list[Any]:
            return [types.SimpleNamespace(text=one) for one in _sentences(self.text)]

    def nlp(text: str) -> Doc:
        doc = Doc(types.SimpleNamespace(text=word, pos_="NOUN" if _says_something(word) else "X") for word in text.split())
        doc.text = text
        return doc

    numbers = types.SimpleNamespace(mean=lambda values, dim: values.mean(dim), zeros=np.zeros, tensor=np.array)
    used = {"nlp": nlp, "torch": numbers, "np": np}
    path = ("oneal2000/DRAGIN", "src/generate.py")
    course = {name: function(*path, f"AttnWeightRAG.{name}", used) for name in ("modifier", "keep_real_words", "inference")}
    nothing = {"torch": types.SimpleNamespace(ones_like=lambda _: None)}
    again = function("oneal2000/DRAGIN", "src/eval.py", "regenerate_answer", nothing)
    named = function("oneal2000/DRAGIN", "src/data.py", "HotpotQA.get_real_prediction", {})
    return course | {"regenerate_answer": again, "get_real_prediction": named}


# -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_rules(cases: int) -> None:
    assert [seed for seed in range(cases) if ours(seed) != restated(seed)] == []


@pytest.mark.parametrize("cases", [FAST, pytest.param(LONG, marks=pytest.mark.long)])
def test_the_course_is_the_authors(cases: int) -> None:
    authors = load()
    with np.errstate(invalid="ignore"):  # theirs: no word that says something
        assert [seed for seed in range(cases) if ours(seed) != theirs(authors, seed)] == []


def test_the_cases_go_every_way() -> None:
    outcomes = [restated(seed) for seed in range(3 * FAST)]
    assert {len(one.searched) for one in outcomes} >= set(range(4))
    assert {len(one.kept) for one in outcomes} >= {0, 3, 6}
    assert {"15,140", "yes, since both are", "St. Orm"} <= {one.answer for one in outcomes}
