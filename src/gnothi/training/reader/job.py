"""From training questions to a reader: the training of ``gnothi.training.reader``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from gnothi import config, methods
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION, check_keys, check_sections
from gnothi.protocols import KnowledgeGraph, Retriever
from gnothi.roles import ALWAYS
from gnothi.session.watch import Watch
from gnothi.training import processes
from gnothi.training.adapter import check
from gnothi.training.collecting import Finding
from gnothi.training.job import Job, Opening, Sources, of_settings
from gnothi.training.memory import Memory, Passes, of_model
from gnothi.training.reader import stages
from gnothi.training.reader.material import Example, Material, prompt_of, require_prompts
from gnothi.training.reader.stages import ReaderTraining
from gnothi.training.run import Staged, Trained, changes, failures

PROMPT = 1024
"""Tokens of a prompt, as long as none is made."""


class TrainableReader(Staged[Material, Example]):
    """Train the model to answer from what the method puts before it; ``settings`` are those of ``ReaderTraining`` and of the
    method.

    ``out`` is then a model folder; under ``training`` of the figures stands its header."""

    kind, stage = Material, "prompts"

    def __init__(self, job: Job, method: str = ALWAYS) -> None:
        method = methods.spec(method).name
        self.settings, asking = _settings(job.typed_settings, method)
        super().__init__(job)
        self.origin = job.origin(self.plan)
        check(self.settings, self.origin)
        self.plan = job.plan(method, asking)
        (self.method,) = self.plan.methods
        self.by: Any = self.method.values.get("choice_score", "tokens")
        if self.method.values.get("reason") in (True, "auto"):
            raise InvalidSetting(
                "setting 'reason': got true, expected false: gold answers teach to answer at once, there are no chains of "
                "thought to learn from."
            )
        if self.by == "label":
            raise InvalidSetting(
                "setting 'choice_score': got label, expected sum, tokens or characters: a reader learns to say the choice "
                "itself."
            )
        sources = self.plan.sources
        self.named = {"index": (Retriever, sources.index), "graph": (KnowledgeGraph, sources.graph)}
        self.training = of_settings("training", self.settings)

    def memory(self) -> Memory | None:
        own = max(1, self.settings.batch // processes.count())
        return of_model(self.origin, self.settings, Passes(min(self.settings.rows or own, own), PROMPT, PROMPT))

    def opening(self, collecting: Material) -> Opening:  # noqa: ARG002
        return _prompting

    def gather(self, collecting: Material) -> tuple[Sequence[Example], dict[str, Any]]:
        examples = collecting.finish()
        passages = sum(len(example.prompt.passages) for example in examples)
        return examples, {"questions": len(examples), "passages": passages / len(examples)}

    def train(self, examples: Sequence[Example], watch: Watch) -> dict[str, Any]:
        return stages.train(self.job.out, self.origin, examples, self.settings, self.by, watch)

    def report(self, trained: Trained) -> list[tuple[str, str]]:
        figures = trained.figures
        rows = [
            ("questions", f"{figures['questions']:,}{failures(trained)}"),
            ("prompts", f"{self.folder}: {figures['passages']:.1f} passages each, by {self.method.name}"),
        ]
        if done := figures.get("training"):
            too_long = done["questions"]["too_long"]
            left_out = f", {too_long} left out, longer than the model can read" if too_long else ""
            rows += changes(done, {"right answers": "validation_accuracy", "loss": "validation_loss"}, left_out)
        return rows


def _settings(settings: Settings, method: str) -> tuple[ReaderTraining, Settings]:
    """The training's settings, and the others. A method that can reason does not, unless told to: there are no chains of
    thought to learn from. Raises UnknownName or InvalidSetting."""
    require_prompts(method)
    check_sections(settings, [method])
    known, of_method = config.settings_of(ReaderTraining), methods.spec(method).settings
    plain = settings.plain({MODEL_SECTION, INDEX_SECTION, *methods.names()})
    check_keys(plain, [method], known)
    own = {key: value for key, value in plain.items() if key in known}
    others = {key: value for key, value in settings.given.items() if key not in own}
    if "reason" in of_method and not {"reason", f"{method}.reason"} & others.keys():
        others["reason"] = Given(False, "gnothi train reader")
    return config.build(ReaderTraining, own, "train reader"), Settings(others)


async def _prompting(sources: Sources) -> Finding:
    return partial(prompt_of, method=await sources.method())
