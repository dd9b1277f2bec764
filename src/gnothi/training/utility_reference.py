"""From training questions to a utility reference: the training of ``gnothi.training.utility_reference``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from gnothi.concurrency import gather
from gnothi.events import Usage
from gnothi.fields import setting
from gnothi.filtering.encoders import LEXICAL, SentenceEncoder
from gnothi.filtering.reference import FORMAT, HEADER, LABELS, VECTORS, labelled_in
from gnothi.methods.steps.chain import conclude
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import ANSWER, ask, reasoning
from gnothi.methods.steps.settings import CHAIN_STOPS, SHORT_STOPS, GenerationSettings
from gnothi.metrics import f1
from gnothi.protocols import LanguageModel, Retriever
from gnothi.runs.journal import replace_file
from gnothi.session.watch import Watch
from gnothi.training.collecting import Collecting, Finding, Line
from gnothi.training.job import Job, Opening, Sources, of_settings
from gnothi.training.run import Trainable, Trained, failures
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
    demonstrations: bool = setting(True, "Show worked examples; false: instructions alone (the authors' code).")

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
    candidates = [scored.passage for scored in await retriever.search(question.text, settings.k)]

    async def correctness(*passages: Passage) -> float:
        return f1(await _answer(question, passages, model, settings), question.answers)

    if not settings.accumulates(question):
        before, *after = await gather(correctness(), *(correctness(passage) for passage in candidates))
        return [Judged(passage, before, value) for passage, value in zip(candidates, after, strict=True)]
    judged: list[Judged] = []
    helpful: tuple[Passage, ...] = ()
    before = await correctness()
    for passage in candidates:
        judged.append(Judged(passage, before, await correctness(*helpful, passage)))
        if judged[-1].label > 0:
            helpful, before = (*helpful, passage), judged[-1].after
    return judged


async def _answer(question: Question, passages: Sequence[Passage], model: LanguageModel, settings: UtilitySettings) -> str:
    short = settings.decoding(SHORT_STOPS)
    if settings.reasons(question):
        prompt = ask(reasoning(settings.demonstrations), question, passages)
        reply = await model.generate(prompt, settings.decoding(CHAIN_STOPS))
        answer = (await conclude(model, prompt, reply, short, settings.extraction)).answer
    else:
        task = ANSWER if settings.demonstrations else replace(ANSWER, demonstrations=())
        answer = settings.extraction.short((await model.generate(ask(task, question, passages), short)).text, "")
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


class TrainableReference(Trainable[Labelling]):
    """Label the passages found for each question by whether they help or harm its answer; ``settings`` are those of
    ``UtilitySettings``.

    ``out`` is then a folder that KEQA's ``--set reference=`` takes, searched with ``encoder``; the figures are its header.
    Another encoder keeps the labels."""

    kind = Labelling
    encoder: str

    def __init__(self, job: Job, encoder: str = LEXICAL) -> None:
        super().__init__(job)
        self.settings = job.settings_as(UtilitySettings, "utility-reference")
        lacking = "passages are judged, and there is no index to find them: give <--index PATH>."
        self.index = job.or_lab(job.index, lacking)
        self.encoder = encoder
        self._opened: SentenceEncoder | None = None
        self.named, self.recorded = {"index": (Retriever, self.index)}, of_settings("utility", self.settings)

    async def opened(self, questions: Sequence[Question], about: Mapping[str, Any], sources: Sources) -> Labelling:
        # An encoder that cannot be opened is told before there is a folder.
        if self.encoder and self.encoder != LEXICAL:
            with sources.watch.waiting(f"opening encoder {self.encoder} ..."):
                self._opened = SentenceEncoder(self.encoder)
        return await super().opened(questions, about, sources)

    def opening(self, collecting: Labelling) -> Opening:  # noqa: ARG002
        return partial(_judging, index=self.index, settings=self.settings)

    def conclude(self, collecting: Labelling, watch: Watch) -> Trained:
        with watch.waiting(f"encoding ({self.encoder}) ..."):
            origin = {"model": self.job.model, "index": self.index, "dataset": self.label}
            header = collecting.finish(self._opened, origin)
        if lacking := [kind for kind in ("helpful", "harmful") if not header[kind]]:
            watch.warn(
                f"no passage was {' or '.join(lacking)}, so there are no such demonstrations. Give more questions, or ones "
                "that the model does not all know (or all miss)."
            )
        return Trained(self.job.out, header["failures"], header)

    def report(self, trained: Trained) -> list[tuple[str, str]]:
        figures = trained.figures
        kinds = f"{figures['helpful']:,} helpful, {figures['harmful']:,} harmful, the rest no effect"
        return [
            ("questions", f"{figures['questions']:,}{failures(trained)}"),
            ("passages", f"{figures['passages']:,}: {kinds}"),
            ("cost", f"{figures['retrievals']:,} searches, {figures['model_calls']:,} model calls"),
            ("", f"{figures['prompt_tokens']:,} prompt tokens, {figures['generated_tokens']:,} generated tokens"),
            ("encoder", figures["encoder"]),
        ]


async def _judging(sources: Sources, index: str, settings: UtilitySettings) -> Finding:
    retriever, model = sources.index(index), sources.model()
    return partial(label, model=model, retriever=retriever, settings=settings)


train = TrainableReference.train_from
