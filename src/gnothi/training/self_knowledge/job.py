"""From training questions to a model that says whether it knows: the training of ``gnothi.training.self_knowledge``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gnothi.errors import InvalidSetting
from gnothi.methods.steps.prompts import ask
from gnothi.models.identity import declaration_of
from gnothi.models.rendering import Plain
from gnothi.models.wrappers import demonstrated
from gnothi.protocols import Retriever
from gnothi.session.watch import Watch
from gnothi.signals.kinds.self_report import KNOW
from gnothi.training import processes
from gnothi.training.adapter import check
from gnothi.training.collecting import Finding
from gnothi.training.finetuning import require_libraries
from gnothi.training.job import Job, Opening, Sources, of_settings
from gnothi.training.memory import Memory, Passes, of_model
from gnothi.training.run import Staged, Trained, changes, failures
from gnothi.training.self_knowledge import stages
from gnothi.training.self_knowledge.answers import Answers, Familiar, TrainingQuestion, find, sampling
from gnothi.training.self_knowledge.settings import AnswerSettings, SelfKnowledgeSettings
from gnothi.training.self_knowledge.stages import BEST, draw_familiarity
from gnothi.types import Question


class TrainableKnower(Staged[Answers, Familiar]):
    """Train the model to say whether it knows the answer; ``settings`` are those of ``SelfKnowledgeSettings``.

    ``out`` is then a model folder; under ``training`` of the figures stands its header."""

    kind, stage = Answers, "answers"

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.settings = job.settings_as(SelfKnowledgeSettings, "self-knowledge")
        if self.settings.vllm is not None:
            require_libraries("setting 'vllm'", {"vllm": "vllm"})
        self.origin = job.origin(self.plan)
        check(self.settings, self.origin)
        self.index = _index(job, self.settings.answers.sentences)
        self.named, self.recorded = {"index": (Retriever, self.index)}, of_settings("answers", self.settings.answers)
        self.training = of_settings("training", self.settings, "answers")

    def memory(self) -> Memory | None:
        know_task = demonstrated(self.origin.demonstrations(declaration_of(self.origin.name))).get(KNOW, KNOW)
        # A token has three letters at least, in languages that tokenizers were made for.
        longest = max(len(Plain().render(ask(know_task, question))) for question in self.question_set.questions) // 3
        rows = self.settings.questions * self.settings.replies // processes.count()
        passes = Passes(min(self.settings.rows or rows, rows), longest + self.settings.reply_tokens, self.settings.reply_tokens)
        return of_model(self.origin, self.settings, passes)

    async def opened(self, questions: Sequence[Question], about: Mapping[str, Any], sources: Sources) -> Answers:
        if processes.count() > 1:
            return await super().opened(questions, about, sources)
        sentences = None
        if self.index is not None:
            answers = self.settings.answers
            sentences = await find(questions, sources.index(self.index), answers.sentences, answers.k)
        return Answers(self.folder, questions, about, sentences)

    def read(self, questions: Sequence[Question]) -> Answers:
        return Answers.finished(self.folder, questions)

    def opening(self, collecting: Answers) -> Opening:
        return partial(_sampling, items=collecting.by_name, settings=self.settings.answers)

    def gather(self, collecting: Answers) -> tuple[Sequence[Familiar], dict[str, Any]]:
        examples = collecting.finish()
        rates = Counter(example.acc_rate for example in examples)
        if collecting.writes:
            draw_familiarity(self.folder, [example.acc_rate for example in examples], self.settings.answers.n)
        return examples, {
            "questions": len(examples),
            "known": sum(example.known for example in examples),
            "always_right": rates[1.0],
            "never_right": rates[0.0],
        }

    def train(self, examples: Sequence[Familiar], watch: Watch) -> dict[str, Any]:
        return stages.train(self.job.out, self.origin, examples, self.settings, self.settings.answers.correct, watch)

    def report(self, trained: Trained) -> list[tuple[str, str]]:
        figures = trained.figures
        rows = [
            ("questions", f"{figures['questions']:,}{failures(trained)}"),
            (
                "known",
                f"{figures['known']:,}: {figures['always_right']:,} always right, {figures['never_right']:,} never right",
            ),
            ("answers", str(self.folder)),
        ]
        if done := figures.get("training"):
            named = {"reward": BEST, "AUROC": "auroc", "P(Yes) known": "yes_known", "P(Yes) unknown": "yes_unknown"}
            rows += changes(done, {**named, "refusal": "refusal", "hallucination": "hallucination"})
        return rows


def _index(job: Job, sentences: int) -> str | None:
    """Where sentences are found; None where none are shown."""
    if sentences:
        lacking = f"setting 'answers.sentences': got {sentences}, but there is no index to find them: give "
        return job.or_lab(job.index, f"{lacking}<--index PATH>.")
    if job.index is not None:
        raise InvalidSetting("<--index>: got one, but no sentences are shown. Say how many with <--set answers.sentences=4>.")
    return None


async def _sampling(sources: Sources, items: Mapping[str, TrainingQuestion], settings: AnswerSettings) -> Finding:
    return sampling(items, sources.model(), settings)
