"""From pairs to a cross-encoder: split, training, the best checkpoint. It may be killed at any moment; the next call goes on.

The folder, from the first to the last: ``checkpoints/``, ``metrics.jsonl`` and ``curves.png``, the cross-encoder as
sentence-transformers saves it, ``training.json``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.errors import counted
from gnothi.models.engine.loading import no_progress_bars
from gnothi.retrieval.rerank import CrossEncoderReranker
from gnothi.session.watch import SILENT, Watch
from gnothi.training import finetuning, processes
from gnothi.training.curve import BLUE, GREEN, Curve, Panel, TrackedFigures
from gnothi.training.finetuning import split
from gnothi.training.reranker.pairs import Example, TrainingSettings


def pair_loss(model: Any) -> Any:
    """The loss for CrossEncoderTrainer: the library's own, or for a causal model the same with a fraction of the work."""
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
    from torch import nn

    from gnothi.retrieval.rerank import CommonPrefix
    from gnothi.training import processes

    if processes.count() > 1 or not CommonPrefix.serves(model):  # several wrap the model, whose insides are read here
        return BinaryCrossEntropyLoss(model)

    class QueryOnceLoss(nn.Module):
        """Rows whose queries are equal and stand one after the other are read together."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.cross_entropy = nn.BCEWithLogitsLoss()

        def forward(self, inputs: Sequence[Sequence[str]], labels: Any, prompt: Any = None, task: Any = None) -> Any:  # noqa: ARG002
            import torch

            queries, texts = inputs
            groups = [list(rows) for _, rows in groupby(range(len(queries)), key=queries.__getitem__)]
            reading = CommonPrefix(self.model, 0)
            # Groups of one size go together, whatever their place.
            scores: dict[int, Any] = {}
            for size in sorted({len(rows) for rows in groups}):
                alike = [rows for rows in groups if len(rows) == size]
                scored = reading.logits([(queries[rows[0]], [texts[row] for row in rows]) for rows in alike])
                scores.update(zip((row for rows in alike for row in rows), scored, strict=True))
            logits = torch.stack([scores[row] for row in range(len(queries))])
            return self.cross_entropy(logits, labels.to(logits))

    return QueryOnceLoss()


BEST = "average_precision"

Row = tuple[str, str, float]
"""Query, text and label."""
Figures = dict[str, Any]
"""A line of ``metrics.jsonl``: ``step`` with the mean ``loss`` since the last one, or with the figures of ``assess``."""


TRACKED = TrackedFigures(
    BEST,
    ("loss",),
    (BEST, "first"),
    (
        Panel("loss", trained=("loss", "training")),
        Panel(
            "validation questions",
            {BEST: ("average precision", BLUE), "first": ("a positive comes first", GREEN)},
            share=True,
        ),
    ),
    (("loss", "loss"), (BEST, "average precision")),
)


def train(
    out: Path,
    base: Callable[[], Any],
    name: str,
    examples: Sequence[Example],
    settings: TrainingSettings,
    watch: Watch = SILENT,
) -> dict[str, Any]:
    """Train what ``base`` loads (a CrossEncoder, called ``name``) in folder ``out``, which then holds it; returns the header.

    Raises InvalidInput, MissingDependency, and as ``base``.
    """
    if (done := finetuning.read_header(out)) is not None:
        return done
    few = (
        f"got {counted(len(examples), 'question')} with facts that link them to their gold choice and facts that do not, "
        "expected at least 2. Give more questions, or a knowledge graph that knows what they are about."
    )
    training, validation = split(examples, settings, few)
    from transformers import set_seed

    with finetuning.quiet(), no_progress_bars():
        set_seed(settings.seed)
        curve = _curve(out, base(), training, validation, settings, watch)
        if not processes.leads():
            return curve.header((BEST, "first"))
        after = _put(out, curve.best_checkpoint, validation, settings)
    curve.draw()
    header = {
        "base": name,
        "questions": {"training": len(training), "validation": len(validation)},
        "pairs": sum(len(one.positive) + len(one.negative) for one in training),
        **curve.header((BEST, "first")),
        "after": after,
    }
    finetuning.write_header(out, header)
    return header


def ordered(examples: Sequence[Example], settings: TrainingSettings) -> list[Row]:
    """All epochs, one after the other, in the order in which batches are taken: in each, questions shuffled, the pairs of one
    beside each other, so that its query is read once."""
    rng = random.Random(f"{settings.seed}/order")
    return [
        row
        for _ in range(settings.epochs)
        for one in rng.sample(examples, len(examples))
        for row in rng.sample(_rows(one), len(_rows(one)))
    ]


def _rows(example: Example) -> list[Row]:
    labelled = [(text, 1.0) for text in example.positive] + [(text, 0.0) for text in example.negative]
    return [(example.query, text, label) for text, label in labelled]


def in_order(dataset: Any, batch_size: int, drop_last: bool, **_: Any) -> Any:
    """The library's batches, of rows as they stand."""
    from sentence_transformers.base.sampler import DefaultBatchSampler
    from torch.utils.data import SequentialSampler

    sampler: Any = DefaultBatchSampler
    return sampler(SequentialSampler(dataset), batch_size, drop_last)


def assess(score: Callable[[str, Sequence[str]], Sequence[float]], examples: Sequence[Example]) -> Figures:
    """Means over the questions: ``average_precision`` of the positives among all its texts, and ``first``, whether one of them
    comes first; ties count against them."""
    precisions, firsts = [], []
    for example in examples:
        texts = [*example.positive, *example.negative]
        scores = np.asarray(score(example.query, texts))
        positives = len(example.positive)
        right = [text < positives for text in sorted(range(len(texts)), key=lambda n: (-scores[n], n < positives))]
        ranks = [place for place, hit in enumerate(right, 1) if hit]
        precisions.append(sum(number / place for number, place in enumerate(ranks, 1)) / positives)
        firsts.append(right[0])
    return {BEST: round(float(np.mean(precisions)), 6), "first": round(float(np.mean(firsts)), 6)}


def _curve(
    out: Path,
    model: Any,
    training: Sequence[Example],
    validation: Sequence[Example],
    settings: TrainingSettings,
    watch: Watch,
) -> Curve:
    """The training in ``out``, from the newest checkpoint or the start to the end."""
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments

    from datasets import Dataset

    reranker = CrossEncoderReranker(model, "in training", settings.limit)
    fitted = [Example(one.question_id, reranker.fitted(one.query), one.positive, one.negative) for one in training]
    rows = ordered(fitted, settings)
    total = math.ceil(len(rows) / settings.batch)
    own = processes.share(settings.batch, "setting 'batch'")
    together = min(settings.rows or own, own)
    options = finetuning.arguments(out, model, settings, total, f"eval_{BEST}")
    untyped: Any = CrossEncoderTrainingArguments
    args = untyped(
        **options
        | {
            "per_device_train_batch_size": together,
            "gradient_accumulation_steps": own // together,
            "gradient_checkpointing": settings.gradient_checkpointing,
            "ddp_find_unused_parameters": False,  # it does not see through the library's outputs, and all are used
            "warmup_steps": round(settings.warmup * total),
            "weight_decay": settings.weight_decay,
            "batch_sampler": in_order,
            "logging_steps": min(10, options["eval_steps"]),
        }
    )

    def validate(_: Any) -> Figures:
        model.eval()
        return assess(reranker.score_blocking, validation)

    curve = Curve(out, TRACKED, settings.patience, watch)
    columns = list(zip(*rows, strict=True))
    data = Dataset.from_dict(dict(zip(("query", "text", "label"), map(list, columns), strict=True)))
    trainer: Any = type("Trainer", (finetuning.Validating, CrossEncoderTrainer), {"validate": staticmethod(validate)})(
        model=model,
        args=args,
        train_dataset=data,
        loss=pair_loss(model),
        eval_dataset=data.select(range(1)),  # the library asks for one; ``validate`` has its own
        callbacks=[curve.listener()],
    )
    curve.run(finetuning.silent(trainer), total, processes.leads())
    return curve


def _put(out: Path, best: Path, validation: Sequence[Example], settings: TrainingSettings) -> Figures:
    """Move the best checkpoint into the folder, ``modules.json`` last; the figures of the validation questions."""
    from sentence_transformers import CrossEncoder

    final: Any = CrossEncoder(str(best))
    temporary = finetuning.scratch(out)
    final.save_pretrained(str(temporary), create_model_card=False)
    after = assess(CrossEncoderReranker(final, "trained", settings.limit).score_blocking, validation)
    finetuning.move_into(out, temporary, last="modules.json")
    return after
