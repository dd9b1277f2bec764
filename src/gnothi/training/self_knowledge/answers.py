"""Self-knowledge data: how often the model is right about each training question (SKILL-RAG, section 4.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from gnothi.concurrency import gather
from gnothi.filtering.leading import includes
from gnothi.filtering.sentences import sentences_of
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.protocols import LanguageModel, Retriever
from gnothi.runs.journal import read_lines
from gnothi.training.collecting import Collecting, Finding, Line
from gnothi.training.self_knowledge.reward import INDIFFERENT
from gnothi.training.self_knowledge.settings import AnswerSettings
from gnothi.types import Passage, Question


# Sentences to be shown before training questions, so that a model learns to say whether it knows, given a sentence.
#
# Not in the paper: it trains without (SKILL-RAG, sections 4.1 and 4.2) and filters with a sentence in front (section 4.3),
# which it takes the model to carry over.
async def find(questions: Sequence[Question], retriever: Retriever, count: int, k: int) -> dict[str, tuple[Passage, ...]]:
    """``count`` sentences for each question, by its id, of the best ``k`` passages, each under its passage's title.

    Up to half of them (rounded up) hold a gold answer, the others none; where one kind is short, the other makes it up.
    The same questions and index give the same sentences.
    """

    async def sentences_about(question: Question) -> tuple[Passage, ...]:
        passages = await retriever.search(question.text, k)
        # One sentence may stand in several passages of a title.
        alone = {
            (sentence.source.title, sentence.text): sentence.passage
            for sentence in sentences_of(scored.passage for scored in passages)
        }
        return choose(question, list(alone.values()), count)

    return dict(zip((one.id for one in questions), await gather(*map(sentences_about, questions)), strict=True))


def choose(question: Question, sentences: Sequence[Passage], count: int) -> tuple[Passage, ...]:
    """``count`` of the sentences at random (all, where there are no more), as ``find`` says."""
    shuffled = random.Random(question.id).sample(sentences, len(sentences))
    holding = [one for one in shuffled if includes(one.text, question.answers)]
    others = [one for one in shuffled if not includes(one.text, question.answers)]
    first = holding[: max(-(-count // 2), count - len(others))]
    return (*first, *others[: count - len(first)])


ANSWERS = "answers.jsonl"
"""Lines of ``question_id``, ``question``, ``choices``, ``gold``, ``answers`` (the n sampled ones), ``correct`` (one truth value
each), ``acc_rate`` (their mean), ``usage``; or ``question_id`` and ``error``. Where the question is shown a sentence, it stands
under ``sentence`` (``id``, ``title``, ``text``), and ``question_id`` names it, too."""


class TrainingQuestion(NamedTuple):
    """A training question, and the sentence it is shown, None where it is asked from memory."""

    question: Question
    sentence: Passage | None = None

    @property
    def passages(self) -> tuple[Passage, ...]:
        return () if self.sentence is None else (self.sentence,)

    @property
    def name(self) -> str:
        """The question's id, with that of the sentence."""
        return f"{self.question.id}{_after(self.sentence)}"


@dataclass(frozen=True, slots=True)
class Familiar:
    """A training question with the answers that were sampled, and whether each was right. ``sentence`` is what was shown."""

    question: Question
    answers: tuple[str, ...]
    correct: tuple[bool, ...]
    sentence: Passage | None = None

    @property
    def training_question(self) -> TrainingQuestion:
        return TrainingQuestion(self.question, self.sentence)

    @property
    def acc_rate(self) -> float:
        return sum(self.correct) / len(self.correct)

    @property
    def known(self) -> bool:
        """Whether Yes is worth more than No."""
        return self.acc_rate > INDIFFERENT


async def sample(item: TrainingQuestion, model: LanguageModel, settings: AnswerSettings) -> Line:
    """What is found out about one question, which is put as every method puts it when it wants a short answer."""
    question = item.question
    samples = await model.sample(ask(ANSWER, question, item.passages), settings.n, settings.decoding)
    answers = [read_reply(generation.text).answer for generation in samples.generations]
    correct = [settings.correct(answer, question.answers, question.choices) for answer in answers]
    return {
        **_sentence_record(item.sentence),
        "question": question.text,
        "choices": list(question.choices),
        "gold": list(question.answers),
        "answers": answers,
        "correct": correct,
        "acc_rate": sum(correct) / len(correct),
    }


def sampling(items: Mapping[str, TrainingQuestion], model: LanguageModel, settings: AnswerSettings) -> Finding:
    """What samples the answers to a question of ``Answers``, which are ``items`` by their ids there."""

    async def sample_one(question: Question) -> Line:
        return await sample(items[question.id], model, settings)

    return sample_one


class Answers(Collecting):
    """The sampling for a list of questions, in a folder of its own that survives any interruption."""

    file, what = ANSWERS, "folder of sampled answers"
    why = "it shows whether the model knows the answer"

    def __init__(
        self,
        out: Path,
        questions: Sequence[Question],
        config: Mapping[str, Any] | None,
        sentences: Mapping[str, Sequence[Passage]] | None = None,
    ) -> None:
        """``sentences`` by question id: the question is asked after each of them, too. Raises as ``Collecting``."""
        self.require_usable(questions)
        by_question = sentences or {}
        self.training_questions = [
            TrainingQuestion(question, one) for question in questions for one in (None, *by_question.get(question.id, ()))
        ]
        self.by_name = {item.name: item for item in self.training_questions}
        super().__init__(out, [replace(item.question, id=item.name) for item in self.training_questions], config)

    @classmethod
    def finished(cls, out: Path, questions: Sequence[Question]) -> Answers:
        """Those of a finished sampling, only to be read."""
        sentences: dict[str, list[Passage]] = {}
        for _, line in read_lines(out / ANSWERS):
            if sentence := _sentence(line):
                sentences.setdefault(line["question_id"].removesuffix(_after(sentence)), []).append(sentence)
        return cls(out, questions, None, sentences)

    @property
    def failed(self) -> int:
        """Questions of which a sampling is missing, after a sentence or without."""
        return len({self.by_name[question.id].question.id for question in self.missing})

    def finish(self) -> list[Familiar]:
        """Put the lines in the order of the questions, and give those that did not fail."""
        return [
            Familiar(item.question, tuple(line["answers"]), tuple(line["correct"]), item.sentence)
            for item, line in zip(self.training_questions, self.in_order(), strict=True)
            if "acc_rate" in line
        ]


def _after(sentence: Passage | None) -> str:
    return "" if sentence is None else f" after {sentence.id}"


def _sentence_record(sentence: Passage | None) -> Line:
    return {} if sentence is None else {"sentence": {"id": sentence.id, "title": sentence.title, "text": sentence.text}}


def _sentence(line: Line) -> Passage | None:
    one = line.get("sentence")
    return Passage(one["id"], one["text"], one["title"]) if one else None
