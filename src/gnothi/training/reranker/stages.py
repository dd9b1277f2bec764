"""From pairs to a cross-encoder: split, training, the best checkpoint. It may be killed at any moment; the next call goes on.

The folder, from the first to the last: ``checkpoints/``, ``metrics.jsonl`` and ``curves.png``, the cross-encoder as
sentence-transformers saves it, ``training.json``.
"""

from __future__ import annotations

import math
import random
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.errors import InvalidInput, MissingDependency
from gnothi.models.engine.loading import no_progress_bars
from gnothi.retrieval.rerank import CrossEncoderReranker
from gnothi.training.curve import Curve
from gnothi.training.finetuning import (
    CHECKPOINTS,
    read_header,
    write_header,
)
from gnothi.training.reranker.figures import draw_curves
from gnothi.training.reranker.loss import pair_loss
from gnothi.training.reranker.pairs import Example
from gnothi.training.reranker.settings import TrainingSettings

BEST = "average_precision"

Row = tuple[str, str, float]
"""Query, text and label."""
Figures = dict[str, Any]
"""A line of ``metrics.jsonl``: ``step`` with the mean ``loss`` since the last one, or with the figures of ``assess``."""


def split(examples: Sequence[Example], settings: TrainingSettings) -> tuple[list[Example], list[Example]]:
    """Training and validation questions. Raises InvalidInput without two questions."""
    if len(examples) < 2:
        raise InvalidInput(
            f"got {len(examples)} questions with facts that link them to their gold choice and facts that do not, expected at "
            "least 2. Give more questions, or a knowledge graph that knows what they are about."
        )
    count = max(1, round(len(examples) * settings.validation))
    held = set(random.Random(f"{settings.seed}/split").sample(range(len(examples)), count))
    return [one for n, one in enumerate(examples) if n not in held], [one for n, one in enumerate(examples) if n in held]


def steps(examples: Sequence[Example], settings: TrainingSettings) -> int:
    """How many steps the training takes, if nothing ends it before. Raises as ``split``."""
    training, _ = split(examples, settings)
    return math.ceil(sum(len(one.positive) + len(one.negative) for one in training) * settings.epochs / settings.batch)


def train(
    out: Path,
    base: Callable[[], Any],
    name: str,
    examples: Sequence[Example],
    settings: TrainingSettings,
    on_line: Callable[[Figures], None] | None = None,
) -> dict[str, Any]:
    """Train what ``base`` loads (a CrossEncoder, called ``name``) in folder ``out``, which then holds it; returns the header.

    ``on_line`` hears of every line of the metrics. Raises InvalidInput, MissingDependency, and as ``base``.
    """
    if (done := read_header(out)) is not None:
        return done
    training, validation = split(examples, settings)
    try:
        import accelerate  # noqa: F401
        import sentence_transformers  # noqa: F401
        from transformers import set_seed

        import datasets  # noqa: F401
    except ImportError as error:
        extra = "dense" if error.name == "sentence_transformers" else "training"
        raise MissingDependency(error.name or "sentence-transformers", extra, "training a re-ranker") from error
    with warnings.catch_warnings(), no_progress_bars():
        warnings.simplefilter("ignore", FutureWarning)  # of the libraries to each other
        set_seed(settings.seed)
        run = _Training(out, base(), training, validation, settings, on_line)
        best, history = run()
        return _finish(out, run, name, best, history)


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


def _rows(one: Example) -> list[Row]:
    labelled = [(text, 1.0) for text in one.positive] + [(text, 0.0) for text in one.negative]
    return [(one.query, text, label) for text, label in labelled]


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
    for one in examples:
        texts = [*one.positive, *one.negative]
        scores = np.asarray(score(one.query, texts))
        positives = len(one.positive)
        right = [text < positives for text in sorted(range(len(texts)), key=lambda n: (-scores[n], n < positives))]
        found = [place for place, hit in enumerate(right, 1) if hit]
        precisions.append(sum(number / place for number, place in enumerate(found, 1)) / positives)
        firsts.append(right[0])
    return {BEST: round(float(np.mean(precisions)), 6), "first": round(float(np.mean(firsts)), 6)}


class _Training:
    """The training in ``out``, from the newest checkpoint or the start to the end. Calling it gives the step of the best
    checkpoint and all lines of the metrics."""

    def __init__(
        self,
        out: Path,
        model: Any,
        training: Sequence[Example],
        validation: Sequence[Example],
        settings: TrainingSettings,
        on_line: Callable[[Figures], None] | None,
    ) -> None:
        self.out, self.model, self.training, self.validation = out, model, training, validation
        self.settings = settings
        self.reranker = CrossEncoderReranker(model, "in training", settings.limit)
        self.curve = Curve(out, BEST, settings.patience, on_line)

    def __call__(self) -> tuple[int, list[Figures]]:
        trainer = self._trainer(self.out / CHECKPOINTS)
        self.curve.draw(trainer, trainer.args.max_steps)
        return self.curve.best_step, self.curve.lines

    def validate(self, model: Any = None) -> Figures:
        """``assess`` on the validation questions."""
        chosen = self.reranker if model is None else CrossEncoderReranker(model, "trained", self.settings.limit)
        self.model.eval()
        return assess(chosen.score_blocking, self.validation)

    def _trainer(self, folder: Path) -> Any:
        from sentence_transformers.base.evaluation import BaseEvaluator
        from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
        from transformers import PrinterCallback, ProgressCallback

        from datasets import Dataset

        settings, cpu = self.settings, self.model.device.type == "cpu"
        rows = ordered(
            [Example(one.question_id, self.reranker.fitted(one.query), one.positive, one.negative) for one in self.training],
            settings,
        )
        total = math.ceil(len(rows) / settings.batch)
        every = min(settings.evaluate_every, total)
        arguments: Any = CrossEncoderTrainingArguments
        args = arguments(
            output_dir=str(folder),
            max_steps=total,
            per_device_train_batch_size=settings.batch,
            learning_rate=settings.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=round(settings.warmup * total),
            weight_decay=settings.weight_decay,
            batch_sampler=in_order,
            seed=settings.seed,
            use_cpu=cpu,
            bf16=not cpu,
            eval_strategy="steps",
            eval_steps=every,
            save_steps=every,
            save_total_limit=2,  # the newest and the one before, beside the best
            metric_for_best_model=f"eval_{BEST}",
            greater_is_better=True,
            logging_steps=min(10, every),
            report_to="none",
            disable_tqdm=True,
        )
        validation = type("Validation", (BaseEvaluator,), {"__call__": lambda *_, **__: self.validate()})

        listener = self.curve.listener(("loss",), (BEST, "first"), lambda: draw_curves(self.out, self.curve.lines))
        columns = list(zip(*rows, strict=True))
        trainer: Any = CrossEncoderTrainer(
            model=self.model,
            args=args,
            train_dataset=Dataset.from_dict(dict(zip(("query", "text", "label"), map(list, columns), strict=True))),
            loss=pair_loss(self.model),
            evaluator=validation(),
            callbacks=[listener],
        )
        for callback in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(callback)
        return trainer


def _finish(out: Path, run: _Training, name: str, best: int, history: Sequence[Figures]) -> dict[str, Any]:
    """Put the best checkpoint into the folder, file by file, ``modules.json`` last; then the header."""
    from sentence_transformers import CrossEncoder

    final: Any = CrossEncoder(str(out / CHECKPOINTS / f"checkpoint-{best}"))
    temporary = out / ".model"
    shutil.rmtree(temporary, ignore_errors=True)
    final.save_pretrained(str(temporary), create_model_card=False)
    after = run.validate(final)
    for path in sorted(temporary.iterdir(), key=lambda path: path.name == "modules.json"):
        if path.is_dir():
            shutil.rmtree(out / path.name, ignore_errors=True)
        path.replace(out / path.name)
    temporary.rmdir()
    draw_curves(out, history)
    header = {
        "base": name,
        "questions": {"training": len(run.training), "validation": len(run.validation)},
        "pairs": sum(len(one.positive) + len(one.negative) for one in run.training),
        "steps": max(line["step"] for line in history),
        "best_step": best,
        "before": next(({key: line[key] for key in (BEST, "first")} for line in history if line["step"] == 0), None),
        "after": after,
    }
    write_header(out, header)
    return header
