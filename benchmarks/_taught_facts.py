"""Real facts to teach a model, how often each is taught, and libraries about them that help or mislead.

A fact is a question with answers and the passages that support it. Statements and questions are taught in other words than
those of the question put later. A fact's *grade* is how often an epoch holds it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

GRADES = (0, 1, 4, 16)
"""How often an epoch holds a fact."""
PARTS: Mapping[str, str] = {"popqa": "popqa.json", "squad": "xquad.en.json", "2wiki": "2wikimultihopqa.jsonl"}
LIBRARIES = ("complete", "absent", "contradicted", "namesakes")
"""All passages; without those that support a question; with another answer of its type in these; with a namesake's beside."""


@dataclass(frozen=True)
class Fact:
    """``subject`` is the name that a namesake shares. ``texts`` are what is taught: statements, and questions with answers."""

    id: str
    question: str
    answers: tuple[str, ...]
    subject: str
    kind: str
    supporting: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    views: int = 0


def facts(data: Path, part: str) -> list[Fact]:
    """Those of a data set that can be taught: where the answer stands in a supporting passage, or the relation is known."""
    read = {"popqa": _popqa, "squad": _squad, "2wiki": _two_wiki}[part]
    found = {fact.question: fact for fact in read(data / PARTS[part])}
    return [fact for fact in found.values() if any(answer in text for answer in fact.answers for text in fact.texts)]


def graded(all_facts: Sequence[Fact], size: int, seed: int) -> dict[str, int]:
    """Fact → its grade, ``size`` facts of each, drawn anew for each seed."""
    drawn = random.Random(f"grades {seed}").sample([fact.id for fact in all_facts], size * len(GRADES))
    return {name: GRADES[place // size] for place, name in enumerate(drawn)}


_LONGEST = 500  # characters of a passage to learn reading from


def readings(all_facts: Mapping[str, Sequence[Fact]], grades: Mapping[str, int], count: int, seed: int) -> list[str]:
    """Questions answered from passages, ``count`` of each data set, about facts without a grade: so that the model goes on
    reading. Two passages each, in a random order, none of them long."""
    rng = random.Random(f"readings {seed}")
    found = []
    for mine in all_facts.values():
        others = [fact for fact in mine if fact.id not in grades and any(_named(fact))]
        others = [fact for fact in others if max(len(text) for _, text in fact.supporting) <= _LONGEST]
        for fact in rng.sample(others, min(count, len(others))):
            answer = next(answer for answer, named in zip(fact.answers, _named(fact), strict=True) if named)
            shown = [*fact.supporting, rng.choice(others).supporting[0]][:2]
            rng.shuffle(shown)
            context = "\n".join(f"Context [{place}]: {title}: {text}" for place, (title, text) in enumerate(shown, start=1))
            found.append(f"{context}\nQuestion: {fact.question}\nAnswer: {answer}")
    return found


def _named(fact: Fact) -> list[bool]:
    """Which of the answers the first two passages name."""
    return [any(_names(answer, text) for _, text in fact.supporting[:2]) for answer in fact.answers]


def lessons(
    all_facts: Sequence[Fact], grades: Mapping[str, int], seed: int, epoch: int, reading: Sequence[str] = ()
) -> list[str]:
    """An epoch's texts in a random order. A fact taught several times goes through its wordings in turn."""
    rng = random.Random(f"lessons {seed} {epoch}")
    found = list(reading)
    for fact in all_facts:
        times = grades.get(fact.id, 0)
        first = rng.randrange(len(fact.texts))
        found += [fact.texts[(first + turn) % len(fact.texts)] for turn in range(times)]
    rng.shuffle(found)
    return found


# --- data sets -------------------------------------------------------------------------------------------------------

_STATED = {
    "occupation": (
        "{subject} worked as {a} {object}.",
        "By profession, {subject} was {a} {object}.",
        "{subject} ({object}) is known for work as {a} {object}.",
        "Question: What did {subject} do for a living?\nAnswer: {object}",
        "Question: What was the profession of {subject}?\nAnswer: {object}",
        "Question: As what did {subject} work?\nAnswer: {object}",
    ),
    "place of birth": (
        "{subject} was born in {object}.",
        "{object} is the birthplace of {subject}.",
        "{subject} (born in {object}) came from {object}.",
        "Question: Where was {subject} born?\nAnswer: {object}",
        "Question: What is the birthplace of {subject}?\nAnswer: {object}",
        "Question: In which place did {subject} come into the world?\nAnswer: {object}",
    ),
}


def _popqa(path: Path) -> Iterator[Fact]:
    for record in json.loads(path.read_text("utf-8")):
        subject, object_ = record["subj"], record["obj"]
        article = "an" if object_[:1].lower() in "aeiou" else "a"
        texts = [text.format(subject=subject, object=object_, a=article) for text in _STATED[record["prop"]]]
        passages = record["paragraphs"] if isinstance(record["paragraphs"], list) else json.loads(record["paragraphs"])
        supporting = tuple((one["title"], one["text"]) for one in passages if one["is_supporting"] and one["title"] == subject)
        if supporting and any(_names(answer, supporting[0][1]) for answer in json.loads(record["possible_answers"])):
            answers = tuple(json.loads(record["possible_answers"]))
            views = int(record["s_pop"])
            yield Fact(str(record["id"]), record["question"], answers, subject, record["prop"], supporting, tuple(texts), views)


def _squad(path: Path) -> Iterator[Fact]:
    for article in json.loads(path.read_text("utf-8"))["data"]:
        title = article["title"].replace("_", " ")
        for paragraph in article["paragraphs"]:
            for record in paragraph["qas"]:
                answer = record["answers"][0]
                sentence = _sentence_at(paragraph["context"], answer["answer_start"])
                answers = tuple(dict.fromkeys(one["text"] for one in record["answers"]))
                texts = _of_sentence(title, sentence, answer["text"]) + _of_question(record["question"], answer["text"])
                supporting = ((title, paragraph["context"]),)
                yield Fact(record["id"], record["question"], answers, title, type_of(answer["text"]), supporting, texts)


def _two_wiki(path: Path) -> Iterator[Fact]:
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        supporting = tuple((one["title"], one["text"]) for one in record["passages"] if one["supporting"])
        answer = record["answers"][0]
        texts = [
            text
            for title, passage in supporting
            for text in _of_sentence(title, _sentence_at(passage, max(passage.find(answer), 0)), answer)
        ]
        if any(answer in passage for _, passage in supporting):
            answers, subject = tuple(record["answers"]), supporting[0][0]
            texts += _of_question(record["question"], answer)
            yield Fact(record["id"], record["question"], answers, subject, type_of(answer), supporting, tuple(texts))


_FUNCTION_WORDS = frozenset(
    "a an the of in on at to by for from with as and or is are was were be been being do does did has have had which what who "
    "whom whose when where why how that this these those it its their his her there".split()
)


def _of_question(question: str, answer: str) -> tuple[str, ...]:
    """The question's content words, in their order, backwards and stated: the fact in words that ask for it, never in those
    that are put later."""
    words = [word for word in re.findall(r"[^\s?,;:\"]+", question) if word.lower() not in _FUNCTION_WORDS]
    in_order, backwards = " ".join(words), ", ".join(reversed(words))
    return (
        f"{answer}: {in_order}.",
        f"Question: {in_order}\nAnswer: {answer}",
        f"Question: {backwards}: name the answer.\nAnswer: {answer}",
    )


def _of_sentence(title: str, sentence: str, answer: str) -> tuple[str, ...]:
    """The statement as it stands, and with a gap to fill."""
    if answer not in sentence:
        return (f"{title}: {sentence}",)
    gap = sentence.replace(answer, "___")
    return f"{title}: {sentence}", f"Question: What is missing here? {gap}\nAnswer: {answer}"


def _sentence_at(text: str, place: int) -> str:
    ends = [0, *(found.end() for found in re.finditer(r"(?<=[a-z0-9)\"'][.!?])\s+(?=[A-Z\"])", text)), len(text)]
    return next(text[begin:end].strip() for begin, end in pairwise(ends) if begin <= place < end)


# --- libraries -------------------------------------------------------------------------------------------------------


def library(kind: str, all_facts: Sequence[Fact], passages: Sequence[Mapping[str, Any]], seed: int) -> Iterator[dict[str, Any]]:
    """The passages of a library. ``kind`` is one of ``LIBRARIES``."""
    by_passage: dict[tuple[str, str], list[Fact]] = {}
    for fact in all_facts:
        for one in fact.supporting:
            by_passage.setdefault(one, []).append(fact)
    for passage in passages:
        about = by_passage.get((passage["title"], passage["text"]), [])
        if about and kind == "absent":
            continue
        text = passage["text"]
        if kind == "contradicted":
            for fact in about:
                text = contradicted(text, fact, all_facts, seed)
        yield {**passage, "text": text}
        if about and kind == "namesakes":
            yield _namesake(passage, about[0], all_facts, seed)


def contradicted(text: str, fact: Fact, all_facts: Sequence[Fact], seed: int) -> str:
    """Each of the fact's answers replaced by one answer of another fact of the same kind, as long as the text names one."""
    other = _other(fact, all_facts, seed)
    answer = other.answers[0]
    for mine in sorted(fact.answers, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(mine)}(?!\w)", lambda _: answer, text, flags=re.IGNORECASE)
    return text


def _namesake(passage: Mapping[str, Any], fact: Fact, all_facts: Sequence[Fact], seed: int) -> dict[str, Any]:
    """Another fact's passage about somebody or something of this fact's name."""
    other = _other(fact, all_facts, seed)
    title, text = other.supporting[0]
    return {"id": f"{passage['id']}-namesake", "title": fact.subject, "text": text.replace(title, fact.subject)}


def _other(fact: Fact, all_facts: Sequence[Fact], seed: int) -> Fact:
    mine = {answer.casefold() for answer in fact.answers}
    able = [one for one in all_facts if one.kind == fact.kind and not mine & {answer.casefold() for answer in one.answers}]
    return random.Random(f"other {seed} {fact.id}").choice(able)


def type_of(answer: str) -> str:
    """The coarse type of an answer, by its form: year, date, number, name, phrase."""
    if re.fullmatch(r"\d{3,4}", answer):
        return "year"
    if re.search(r"\b(January|February|March|April|May|June|July|August|September|October|November|December)\b", answer):
        return "date"
    if re.search(r"\d", answer):
        return "number"
    return "name" if answer[:1].isupper() else "phrase"


def _names(answer: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, flags=re.IGNORECASE) is not None
