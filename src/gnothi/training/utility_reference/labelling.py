"""The utility reference (KEQA, section 3.4): does a passage raise or lower the quality of the answer to a training question?

From top to bottom: what to judge, how one question is judged, all of them with an interruption at any moment.
``gnothi.filtering.reference`` reads the folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from gnothi.concurrency import gather
from gnothi.events import Usage
from gnothi.filtering.encoders import LEXICAL, SentenceEncoder
from gnothi.filtering.reference import FORMAT, HEADER, LABELS, VECTORS, labelled_in
from gnothi.methods.steps.chain import conclude
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import ANSWER, REASON, ask
from gnothi.methods.steps.settings import CHAIN_STOPS, SHORT_STOPS, GenerationSettings, setting
from gnothi.metrics import f1
from gnothi.protocols import LanguageModel, Retriever
from gnothi.runs.journal import replace_file
from gnothi.training.collecting import Collecting, Line
from gnothi.types import Passage, Question

# --- what to judge -------------------------------------------------------------------------------------------------

MULTI_HOP = frozenset(
    "two_hop multi_hop multihop bridge comparison bridge_comparison compositional inference yes_no strategy".split()
)
"""Kinds of questions, as data sets name them, that take several facts."""


@dataclass(frozen=True, slots=True)
class UtilitySettings(GenerationSettings):
    """How passages are judged (KEQA, section 3.4)."""

    k: int = setting(5, "Passages judged per question.", at_least=1)
    form: Literal["auto", "alone", "accumulate"] = setting(
        "auto",
        "Judge each passage alone, or accumulate: with the helpful ones before it. auto: by the question's kind "
        f"(accumulate for {', '.join(sorted(MULTI_HOP))}).",
    )
    reason: bool | None = setting(None, "Answer step by step, or at once; none: step by step where passages accumulate.")

    def accumulates(self, question: Question) -> bool:
        return question.kind in MULTI_HOP if self.form == "auto" else self.form == "accumulate"

    def reasons(self, question: Question) -> bool:
        return self.accumulates(question) if self.reason is None else self.reason


# --- one question --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """F1 of the answer without and with the passage; the label is the sign of the difference."""

    passage: Passage
    before: float
    after: float

    @property
    def label(self) -> int:
        return (self.after > self.before) - (self.after < self.before)


async def label(question: Question, model: LanguageModel, retriever: Retriever, settings: UtilitySettings) -> Line:
    """The line of one question."""
    judged = await judge(question, model, retriever, settings)
    return {
        "question": question.text,
        "form": "accumulate" if settings.accumulates(question) else "alone",
        "judged": [{**asdict(one.passage), "before": one.before, "after": one.after, "label": one.label} for one in judged],
    }


async def judge(question: Question, model: LanguageModel, retriever: Retriever, settings: UtilitySettings) -> list[Judged]:
    """The passages found for the question, best first, each with what it does to the answer.

    Alone: with the passage against without any. Accumulating: with it added to the helpful ones before it, against these.
    """
    found = [scored.passage for scored in await retriever.search(question.text, settings.k)]

    async def correctness(*passages: Passage) -> float:
        return f1(await _answer(question, passages, model, settings), question.answers)

    if not settings.accumulates(question):
        before, *after = await gather(correctness(), *(correctness(passage) for passage in found))
        return [Judged(passage, before, value) for passage, value in zip(found, after, strict=True)]
    judged: list[Judged] = []
    kept: tuple[Passage, ...] = ()
    before = await correctness()
    for passage in found:
        judged.append(Judged(passage, before, await correctness(*kept, passage)))
        if judged[-1].label > 0:
            kept, before = (*kept, passage), judged[-1].after
    return judged


async def _answer(question: Question, passages: Sequence[Passage], model: LanguageModel, settings: UtilitySettings) -> str:
    short = settings.decoding(SHORT_STOPS)
    if settings.reasons(question):
        prompt = ask(REASON, question, passages)
        reply = await model.generate(prompt, settings.decoding(CHAIN_STOPS))
        answer = (await conclude(model, prompt, reply, short, settings.extraction)).answer
    else:
        answer = settings.extraction.short((await model.generate(ask(ANSWER, question, passages), short)).text, "")
    return as_choice(answer, question.choices)


# --- all of them ---------------------------------------------------------------------------------------------------


class Labelling(Collecting):
    """The judging of a list of questions, in a folder of its own that survives any interruption.

    A line of ``labels.jsonl``: ``question_id``, ``question``, ``form``, ``judged`` (a list of id, title, text, before, after,
    label), ``usage``; or ``question_id`` and ``error``.
    """

    file, what = LABELS, "utility reference"
    why = "a passage is judged by what it does to the answer"

    def finish(self, encoder: SentenceEncoder | None, origin: Mapping[str, Any]) -> dict[str, Any]:
        """Put the lines in the order of the questions, encode the labelled pairs, and write the header, which makes a reference
        of the folder; returns the header.

        ``encoder`` None compares words; ``origin`` says what the labels came from. Another encoder than the last time replaces
        the vectors and nothing else.
        """
        (self.out / HEADER).unlink(missing_ok=True)  # until the end there is no telling what the vectors are of
        lines = self.in_order()
        labelled = [item for line in lines for item in labelled_in(line)]
        if encoder is None:
            (self.out / VECTORS).unlink(missing_ok=True)
        else:
            temporary = self.out / f".{VECTORS}.new"
            with temporary.open("wb") as file:
                np.save(file, encoder.encode([item.pair for item in labelled]))
            temporary.replace(self.out / VECTORS)
        judged = [one for line in lines for one in line.get("judged", ())]
        header = {
            "format": FORMAT,
            "encoder": encoder.name if encoder else LEXICAL,
            **origin,
            "questions": len(lines),
            "failures": sum("error" in line for line in lines),
            "passages": len(judged),
            "helpful": sum(item.helpful for item in labelled),
            "harmful": sum(not item.helpful for item in labelled),
            "without_effect": len(judged) - len(labelled),
            **{key: self.spent[key] for key in asdict(Usage())},
        }
        replace_file(self.out / HEADER, json.dumps(header, ensure_ascii=False, indent=2) + "\n")
        return header
