"""Training from prompts with gold answers to a model: split, train with early stopping, merge. A killed one goes on.

The folder, from the first to the last: ``checkpoints/``, ``metrics.jsonl`` and ``curves.png``, the model in transformers
format, ``training.json``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from gnothi.concurrency import gather
from gnothi.errors import InvalidInput, counted
from gnothi.fields import check_ranges, setting
from gnothi.methods.steps.multiple_choice import ChoiceScore, scores_of
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.metrics import exact_match
from gnothi.models.batched import Batched
from gnothi.models.encoding import Encoder, end_tokens
from gnothi.models.rendering import Renderer
from gnothi.protocols import LanguageModel
from gnothi.session.watch import SILENT, Watch
from gnothi.stats.intervals import mean_interval
from gnothi.training import finetuning, processes
from gnothi.training.adapter import Kind, Tuning, adapted, merged, restore
from gnothi.training.curve import BLUE, GREEN, Curve, Panel, TrackedFigures
from gnothi.training.finetuning import Origin, split
from gnothi.training.reader.material import Example
from gnothi.types import ContinuationScore, Decoding

CONCURRENCY = 64
"""Questions under way at a time: each is a whole prompt in memory."""


async def assess(
    model: LanguageModel, examples: Sequence[Example], by: ChoiceScore, max_tokens: int
) -> tuple[list[float], list[float]]:
    """For each example, whether the answer is right (1 or 0), and the loss: the mean negative log-probability (nats) of the
    gold answer's tokens. Right is the likeliest choice, or where there are none an exact match of what is generated."""
    pending = iter(enumerate(examples))
    results: dict[int, tuple[float, float]] = {}

    async def work() -> None:
        for place, example in pending:
            results[place] = await _assess(model, example, by, max_tokens)

    await gather(*(work() for _ in range(min(CONCURRENCY, len(examples)))))
    ordered = [results[place] for place in range(len(examples))]
    return [right for right, _ in ordered], [loss for _, loss in ordered]


async def _assess(model: LanguageModel, example: Example, by: ChoiceScore, max_tokens: int) -> tuple[float, float]:
    choices, target = example.prompt.choices, example.target
    if choices:
        scored = await model.score(example.prompt, choices)
        scores = scores_of(choices, scored, by)
        chosen = choices[scores.index(max(scores))]
        return float(chosen == target), _loss(scored[choices.index(target)])
    reply = await model.generate(example.prompt, Decoding(max_tokens, stop=SHORT_STOPS))
    (gold,) = await model.score(example.prompt, (target,))
    return exact_match(read_reply(reply.text).answer, example.question.answers), _loss(gold)


def _loss(score: ContinuationScore) -> float:
    return -score.mean_logprob


Criterion = Literal["accuracy", "loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTraining(Tuning):
    """How a reader is trained (IEKR, section 4.3). The paper: LoRA of unnamed rank, AdamW at 3e-5, batches of 2."""

    seed: int = setting(0, "Order of questions and split.", at_least=0)
    steps: int = setting(300, "Steps, at most.", at_least=1)
    epochs: float | None = setting(None, "Times that each question is seen, at most, in place of steps (none).", at_least=0.01)
    batch: int = setting(16, "Questions per step.", at_least=1)
    rows: int | None = setting(
        None, "Questions in one pass of the model, where memory is short (none: all of a step).", at_least=1
    )
    learning_rate: float = setting(3e-4, "Learning rate, falling linearly to zero.", at_least=0.0)
    warmup: float = setting(0.05, "Share of the steps over which it rises first.", at_least=0.0, at_most=1.0)
    validation: float = setting(0.15, "Share of the questions that is kept for validation.", at_least=0.01, at_most=0.5)
    evaluate_every: int = setting(25, "Steps between two validations; each is a checkpoint.", at_least=1)
    patience: int = setting(4, "Validations without a better one before training ends.", at_least=1)
    criterion: Criterion = setting("accuracy", "What makes a validation better: more right answers, or a likelier gold answer.")
    answer_tokens: int = setting(32, "Tokens of an answer in validation, where there are no choices.", at_least=1)

    def in_all(self, questions: int) -> int:
        """Steps over so many training questions, at most."""
        return self.steps if self.epochs is None else max(1, math.ceil(self.epochs * questions / self.batch))

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.rows is not None and self.batch % self.rows:
            raise ValueError(f"setting 'rows': got {self.rows}, expected a divisor of batch, which is {self.batch}.")


Figures = dict[str, Any]
"""A line of ``metrics.jsonl``: ``step`` with ``loss``, ``grad_norm`` and ``learning_rate`` of a training step, or with
``validation_accuracy``, ``validation_loss`` and ``score``, the one of them that the best checkpoint is chosen by."""
TRACKED = TrackedFigures(
    "score",
    ("loss", "grad_norm", "learning_rate"),
    ("validation_accuracy", "validation_loss", "score"),
    (
        Panel("loss (nats a token)", {"validation_loss": ("validation", BLUE)}, trained=("loss", "training")),
        Panel("right answers", {"validation_accuracy": ("validation", GREEN)}, share=True),
    ),
    (("loss", "loss"), ("validation_loss", "validation"), ("validation_accuracy", "right")),
)


def train(
    out: Path,
    origin: Origin,
    examples: Sequence[Example],
    settings: ReaderTraining,
    by: ChoiceScore = "tokens",
    watch: Watch = SILENT,
) -> dict[str, Any]:
    """Train in folder ``out``, which then holds the model; the result is its header.

    ``by`` is how choices are compared in validation. Raises MissingDependency, ModelUnavailable, InvalidInput.
    """
    if (done := finetuning.read_header(out)) is not None:
        return done
    few = f"got {counted(len(examples), 'training question')} that can be used, expected at least 2: give more."
    training, validation = split(examples, settings, few)
    base, tokenizer, declared = finetuning.load_to_train(origin)
    format = Format(base, tokenizer, finetuning.renderer_of(origin, tokenizer, declared), origin.settings.context)
    rows = format.rows(training)
    validation = [example for example in validation if format.fits(example)]
    if not rows or not validation:
        raise InvalidInput(
            f"hardly any of the {len(examples)} prompts fits the {format.context} tokens that {origin.name} can read. Put less "
            "before a question (a smaller k, say), or use another model."
        )
    with finetuning.quiet():
        model = adapted(base, settings, settings.seed, format.kind)
        curve = _curve(out, model, format, rows, validation, settings, by, watch)
        restore(model, curve.best_checkpoint, settings.adapter)
        final = merged(model, origin, curve.best_checkpoint) if settings.adapter == "lora" else model
    rights, losses = asyncio.run(_ask(final, format, validation, by, settings.answer_tokens))
    interval = mean_interval(rights)
    header = {
        "model": origin.name,
        "questions": {
            "training": len(rows),
            "validation": len(validation),
            "too_long": len(examples) - len(rows) - len(validation),
        },
        **curve.header(("validation_accuracy", "validation_loss")),
        "after": {"validation_accuracy": fmean(rights), "validation_loss": fmean(losses)},
        "interval": None if interval is None else list(interval),
    }
    if not processes.leads():
        return header
    # What was calibrated on the model before says nothing of this one's answers.
    finetuning.write_model(out, final, tokenizer, "reader", origin, declared, thresholds={})
    curve.draw()
    finetuning.write_header(out, header)
    return header


def _curve(
    out: Path,
    model: Any,
    format: Format,
    rows: list[tuple[list[int], list[int]]],
    validation: Sequence[Example],
    settings: ReaderTraining,
    by: ChoiceScore,
    watch: Watch,
) -> Curve:
    """The training in ``out``, from the newest checkpoint or the start to the end."""
    from gnothi.training.reader.trainers import make_trainer

    def validate(trained: Any) -> Figures:
        plain = trained.get_base_model() if settings.adapter == "lora" else trained
        rights, losses = asyncio.run(_ask(plain, format, validation, by, settings.answer_tokens))
        accuracy, loss = fmean(rights), fmean(losses)
        score = accuracy if settings.criterion == "accuracy" else -loss
        return {"validation_accuracy": accuracy, "validation_loss": loss, "score": score}

    curve = Curve(out, TRACKED, settings.patience, watch)
    trainer = make_trainer(model, format.tokenizer, rows, settings, out, validate, [curve.listener()])
    curve.run(trainer, settings.in_all(len(rows)), processes.leads())
    return curve


@dataclass(slots=True)
class Format:
    """Prompts and answers as this model's tokens. ``context`` is what it can read at most, None where there is no limit;
    ``limit`` one that was given (0: none)."""

    model: Any
    tokenizer: Any
    renderer: Renderer
    limit: int = 0
    encoder: Encoder = field(init=False)
    context: int | None = field(init=False)
    apart: bool = field(init=False)

    def __post_init__(self) -> None:
        from gnothi.models.transformers import context_length, is_encoder_decoder

        eos = end_tokens(self.tokenizer, getattr(self.model, "generation_config", None), self.model.config.get_text_config())
        self.apart = is_encoder_decoder(self.model)
        self.encoder = Encoder(self.tokenizer, self.renderer, eos, self.apart)
        self.context = context_length(self.model, self.tokenizer, self.limit)

    @property
    def kind(self) -> Kind:
        return "SEQ_2_SEQ_LM" if self.apart else "CAUSAL_LM"

    def rows(self, examples: Sequence[Example]) -> list[tuple[list[int], list[int]]]:
        """Token ids of prompt and answer, and labels that are -100 over the prompt; the answer is closed. Where another part of
        the model replies: the prompt's ids, and the answer's. What does not fit is left out."""
        return [self._row(example) for example in examples if self.fits(example)]

    def fits(self, example: Example) -> bool:
        return self.context is None or len(self._row(example)[0]) <= self.context

    def _row(self, example: Example) -> tuple[list[int], list[int]]:
        text = self.renderer.render(example.prompt)
        (prompt,) = self.encoder.encode([text])
        (target,) = self.encoder.continuations(text, prompt, [example.target])
        target = [*target, self.tokenizer.eos_token_id]
        if self.apart:
            from gnothi.models.engine.encoder_decoder import closing_tokens, starting_tokens

            return [*prompt, *closing_tokens(self.tokenizer)], [*starting_tokens(self.model)[1:], *target]
        return [*prompt, *target], [-100] * len(prompt) + target


async def _ask(
    model: Any, format: Format, examples: Sequence[Example], by: ChoiceScore, max_tokens: int
) -> tuple[list[float], list[float]]:
    """``assess`` of a ``transformers`` model as it stands."""
    from gnothi.models.transformers import TransformersBackend

    attention = model.config._attn_implementation
    opened = Batched(TransformersBackend(model, format.tokenizer, format.renderer, name="the reader in training"))
    try:
        return await assess(opened, examples, by, max_tokens)
    finally:
        await opened.aclose()
        model.set_attn_implementation(attention)  # so that training goes on as if nobody had asked
