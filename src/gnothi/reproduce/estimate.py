"""About how long a recipe takes and what it costs, training and labelling included, before it starts: a guess from sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gnothi import methods
from gnothi.filtering.likeness import Likeness
from gnothi.models import is_remote
from gnothi.reproduce import learning, resources
from gnothi.reproduce.parts import Part
from gnothi.reproduce.recipe import Training
from gnothi.reproduce.variants import PlannedStudy
from gnothi.session.plan import Plan

_LABELLED = 1_000
"""Tokens that the labels of a question's pairs take, where a re-ranker is trained."""
_BESIDE = 0.25
"""What a judge or a proxy beside the model reads, of what the model does."""
_PROMPT, _PAIR, _PASSAGE = 600, 100, 150
"""Tokens of a prompt with what was found for it, of a pair for a re-ranker, of a passage."""
_PAIRS = 4_000
"""Tokens that pairs of answers to a question, and their labels, take."""
_GENERATED_SHARE = 0.1
"""The share of tokens that are written, which APIs charge more for."""
_RATE = 2e13
"""Operations a second that are put to use by one GPU of a data centre, where many questions are under way: assumed, about a
fifteenth of what an A100 can do at most."""
_RENT = (1.5, 4.0)
"""Dollars an hour of such a GPU, on demand: A100 from 1.49, H100 to 3.99 (pricegpu.pages.dev in early 2026; mercatus-ai.com
has the like)."""
_WEIGHT, _ROOM = 2, 1.3
"""Bytes of a weight in half precision; what caches and batches take on top."""
_LEARNING = 3.0
"""What a token that is learnt from takes, times what one that is read does; likewise memory."""
UNSURE = (
    f"GPU hours are a guess from sizes: no GPU was measured. Assumed are {_RATE:.0e} operations a second, and ${_RENT[0]:.2f} "
    f"to ${_RENT[1]:.2f} an hour, as clouds asked for an A100 or H100 in early 2026. Against the seconds that SeaKR's table 8 "
    "prints they are right within a factor of 3 for SeaKR; with one question at a time they are up to ten times too low. The "
    "run says more after its first answers."
)


def rent(hours: float) -> str:
    """What GPUs cost for so long."""
    low, high = (rate * hours for rate in _RENT)
    return f"${low:,.0f} to ${high:,.0f}" if high >= 1 else "less than $1"


@dataclass(frozen=True, slots=True)
class Estimate:
    """``answers``: questions times rows. ``hours`` are of one GPU, ``learning`` of them before the rows, with labelling;
    ``gigabytes`` of its memory; None where a model is not known. ``dollars`` for models behind an API: 0 without one, None
    where a price is not known. ``counted``: from the questions themselves, not from what is known of the data sets."""

    answers: int
    tokens: int
    hours: float | None
    learning: float | None
    gigabytes: float | None
    dollars: float | None
    counted: bool

    @property
    def words(self) -> str:
        text = f"{self.answers:,} answers, about {self.tokens / 1e6:,.0f} million tokens read and written"
        if self.hours:
            text += f"; about {max(self.hours, 0.1):,.1f} hours of one data-centre GPU"
            text += f", {self.learning:,.1f} of them to learn and to label first," if self.learning else ""
        if self.gigabytes:
            text += f" and {self.gigabytes:.0f} GB of its memory"
        if self.dollars != 0:
            text += "; the price of the API is not known" if self.dollars is None else f"; about ${self.dollars:,.0f} of API"
        return f"{text.rstrip(',')}. {UNSURE}"


class _Sum:
    """Tokens of each model, and operations."""

    def __init__(self) -> None:
        self.tokens, self.operations, self.dollars, self.memory = 0.0, 0.0, 0.0, 0.0
        self.known = self.priced = True

    def add(self, spec: str, read: float, learnt: float = 0.0) -> None:
        model = resources.model(spec)
        self.tokens += read + learnt
        if is_remote(spec):
            self.priced &= bool(model and model.price)
            price_in, price_out = (model.price if model else ()) or (0.0, 0.0)
            self.dollars += read * ((1 - _GENERATED_SHARE) * price_in + _GENERATED_SHARE * price_out) / 1e6
            return
        self.known &= bool(model and model.billions)
        billions = model.billions if model else 0.0
        self.operations += 2e9 * billions * (read + _LEARNING * learnt)
        self.memory = max(self.memory, billions * _WEIGHT * _ROOM * (_LEARNING if learnt else 1))

    @property
    def hours(self) -> float:
        return self.operations / _RATE / 3600


def estimate(parts: list[Part], planned: Mapping[str, PlannedStudy], questions_of: Mapping[str, int] | None) -> Estimate:
    """``questions_of``: how many of each part; None: as many as are known of its data set."""
    rows, before = _Sum(), _Sum()
    answers = 0
    done: set[str] = set()
    for part in parts:
        number = questions_of[part.name] if questions_of else min(part.source.count, part.sample or part.source.count)
        calibrated = learning.to_calibrate(part, planned[part.name])
        for label, plan in planned[part.name].plans.items():
            answers += number
            for total, count in ((rows, number), (before, part.job.recipe.calibrate_on * (label in calibrated))):
                for spec, tokens in _read(part, plan):
                    total.add(spec, count * tokens)
        if part.job.recipe.pairs is not None:
            before.add(part.model, number * _PAIRS)
        for training in part.trainings:
            if (folder := str(part.learnt(training))) not in done:
                done.add(folder)
                for spec, read, learnt in _learnt(part, training):
                    before.add(spec, read, learnt)
        for source in part.built.values():
            if source.encoder and source.index not in done:
                done.add(source.index)
                before.add(source.encoder, source.count * _PASSAGE)
    known, priced = rows.known and before.known, rows.priced and before.priced
    return Estimate(
        answers,
        int(rows.tokens + before.tokens),
        rows.hours + before.hours if known else None,
        before.hours if known else None,
        max(rows.memory, before.memory) if known else None,
        rows.dollars + before.dollars if priced else None,
        questions_of is not None,
    )


def _read(part: Part, plan: Plan) -> Iterator[tuple[str, float]]:
    """The tokens that each model of a row reads and writes for a question; what is learnt is as large as what it was."""
    (method,) = plan.methods
    if any(protocol is Likeness for protocol, _ in method.named.values()):
        return
    tokens = method.spec.usual_tokens
    learnt = {str(part.learnt(one)) for one in part.trainings}
    for spec in plan.models:
        yield part.model if spec in learnt else spec, tokens if spec == plan.sources.model else _BESIDE * tokens


def _learnt(part: Part, training: Training) -> Iterator[tuple[str, float, float]]:
    """The tokens that a training makes each model read and write, and those that it learns from."""
    number = sum(training.limit or of.count_training or of.count for of in part.teaching(training))
    if training.kind in learning.FROM_RUN:
        yield part.model, number * sum(methods.spec(name).usual_tokens for name in learning.answering_methods(training)), 0
        return
    trained = learning.trainable(part, training, (), collect_only=True)
    settings: Any = getattr(trained, "settings", None)
    if training.kind == "utility-reference":
        yield part.model, number * (settings.k + 1) * _PROMPT, 0
    elif training.kind == "reranker":
        yield part.model, number * _LABELLED, 0
        yield training.given["base"], 0, number * 48 * _PAIR * settings.epochs
    elif training.kind == "reader":
        (method,) = trained.plan.methods
        steps = settings.in_all(number)
        checks = steps / settings.evaluate_every
        read = number * method.spec.usual_tokens + checks * settings.validation * number * _PROMPT
        yield part.model, read, steps * settings.batch * _PROMPT
    else:
        replies = settings.in_all(number) * settings.questions * settings.replies * _PROMPT / 2
        yield part.model, number * settings.answers.n * _PROMPT / 2 + replies, replies
