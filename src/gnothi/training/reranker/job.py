"""From training questions to a re-ranker: the training of ``gnothi.training.reranker``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from gnothi.models import LAB_FOLDER
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker
from gnothi.session.fingerprints import Named
from gnothi.session.watch import Watch
from gnothi.training import processes
from gnothi.training.adapter import Tuning
from gnothi.training.collecting import Finding
from gnothi.training.job import Job, Opening, Sources, of_named, of_settings
from gnothi.training.memory import Memory, Passes, estimate, sizes_of
from gnothi.training.reranker import stages
from gnothi.training.reranker.pairs import CollectingPairs, Example, PairSettings, RerankerSettings, pairs
from gnothi.training.run import Staged, Trained, changes, failures

LAB = "lab"
QUESTIONS = 500
"""N, on how many the paper trains its cross-encoder: what is taken where no limit is given."""


class TrainableReranker(Staged[CollectingPairs, Example]):
    """Train the cross-encoder ``base`` to find the facts that a multiple-choice question needs; ``settings`` are those of
    ``RerankerSettings``.

    ``out`` is then a cross-encoder that ``--set reranker=`` takes; under ``training`` of the figures stands its header."""

    kind, stage = CollectingPairs, "pairs"
    libraries: ClassVar[Mapping[str, str]] = {
        "accelerate": "training", "datasets": "training", "sentence_transformers": "dense", "matplotlib": "report",
    }  # fmt: skip

    def __init__(self, job: Job, base: str = LAB) -> None:
        super().__init__(replace(job, limit=job.limit or QUESTIONS))
        self.base = base
        self.settings = job.settings_as(RerankerSettings, "reranker")
        lacking = "facts come from a knowledge graph, and there is none: give <--graph PATH>."
        self.graph = job.or_lab(job.graph, lacking)
        self.named, self.recorded = {"graph": (KnowledgeGraph, self.graph)}, of_settings("pairs", self.settings.pairs)
        self.training = of_named(base=(Reranker, base)) | of_settings("training", self.settings, "pairs")

    @property
    def opens(self) -> Iterator[Named]:
        """Only pairs with facts out of the model need the model."""
        yield from (one for one in super().opens if self.settings.pairs.internal or one[0] is not LanguageModel)
        yield Reranker, self.base

    def memory(self) -> Memory | None:
        full = Tuning(adapter="full")
        sizes = sizes_of(str(LAB_FOLDER) if self.base == LAB else self.base, full)
        own = max(1, self.settings.batch // processes.count())
        passes = Passes(min(self.settings.rows or own, own), self.settings.limit, 1)
        return estimate(sizes, full, passes, 4, False, self.settings.gradient_checkpointing) if sizes else None

    def opening(self, collecting: CollectingPairs) -> Opening:  # noqa: ARG002
        return partial(_pairing, graph=self.graph, settings=self.settings.pairs)

    def gather(self, collecting: CollectingPairs) -> tuple[Sequence[Example], dict[str, Any]]:
        examples = collecting.finish()
        candidates = sorted(line["candidates"] for line in collecting.in_order() if "candidates" in line)
        return examples, {
            "questions": len(collecting.questions),
            "usable": len(examples),
            "candidates": candidates[len(candidates) // 2],
            "positives": sum(len(one.positive) for one in examples),
            "negatives": sum(len(one.negative) for one in examples),
        }

    def train(self, examples: Sequence[Example], watch: Watch) -> dict[str, Any]:
        return stages.train(self.job.out, lambda: _loaded(self.base), self.base, examples, self.settings, watch)

    def report(self, trained: Trained) -> list[tuple[str, str]]:
        figures = trained.figures
        usable = f"{figures['usable']:,} with facts that lead to the gold choice"
        rows = [
            ("questions", f"{figures['questions']:,}{failures(trained)}; {usable}"),
            ("candidates", f"{figures['candidates']:,} facts a question (median)"),
            ("pairs", f"{figures['positives']:,} positives, {figures['negatives']:,} negatives in {self.folder}"),
        ]
        if done := figures.get("training"):
            rows += changes(done, {"average precision": "average_precision", "a positive first": "first"})
        return rows


def _loaded(spec: str) -> Any:
    from gnothi.retrieval.rerank import load_cross_encoder

    if spec == LAB:
        from gnothi.lab.judge import judge

        return judge()
    return load_cross_encoder(spec, spec, untrained=True)


async def _pairing(sources: Sources, graph: str, settings: PairSettings) -> Finding:
    opened = sources.graph(graph)
    return partial(pairs, model=sources.model() if settings.internal else None, graph=opened, settings=settings)
