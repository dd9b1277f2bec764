"""Settings of self-knowledge training. The paper prints neither lambda nor learning rates: such defaults are ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gnothi.errors import InvalidSetting, UnknownName
from gnothi.fields import check_ranges, setting
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.metrics import METRICS
from gnothi.training.adapter import Tuning
from gnothi.training.self_knowledge.reward import AdvantageRule, Correctness, EntropyWeighting
from gnothi.types import Decoding

WarmStart = Literal["labels", "format", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """How familiarity is measured: sampled answers per question, and when one is right (SKILL-RAG, section 4.1)."""

    n: int = setting(10, "Answers sampled per question.", at_least=1)
    temperature: float = setting(1.0, "Temperature of the samples.", at_least=0.01)
    top_k: int = setting(0, "Samples draw from this many likeliest tokens (0: all).", at_least=0)
    top_p: float = setting(1.0, "Samples draw from the likeliest tokens of this probability.", at_least=0.01, at_most=1.0)
    max_tokens: int = setting(32, "Tokens an answer may have.", at_least=1)
    sentences: int = setting(
        0,
        "Ask each question also after so many sentences that an index finds, half of them with a gold answer (0: the "
        "paper's training).",
        at_least=0,
    )
    k: int = setting(10, "Passages to take these sentences from.", at_least=1)
    metric: str = setting("accuracy", f"What an answer is judged by: {', '.join(METRICS)}. accuracy: it holds a gold answer.")
    above: float = setting(0.5, "An answer is right above this value of the metric.", at_least=0.0, at_most=1.0)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.metric not in METRICS:
            raise UnknownName("metric", self.metric, METRICS)

    @property
    def correct(self) -> Correctness:
        return Correctness(self.metric, self.above)

    @property
    def decoding(self) -> Decoding:
        return Decoding(self.max_tokens, self.temperature, self.top_k, self.top_p, SHORT_STOPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings(Tuning):
    """How the model is trained (SKILL-RAG, section 4.2)."""

    seed: int = setting(0, "Order of questions, split and sampled replies.", at_least=0)
    warm_start: WarmStart = setting(
        "labels",
        "Supervised stage before: replies right by familiarity, replies at random that teach the format alone, or no stage.",
    )
    warm_start_steps: int = setting(20, "Steps of the supervised stage.", at_least=1)
    warm_start_rate: float = setting(3e-4, "Learning rate of the supervised stage.", at_least=0.0)
    warm_start_batch: int = setting(32, "Questions per step of the supervised stage.", at_least=1)
    steps: int = setting(200, "Steps of reinforcement learning, at most.", at_least=1)
    epochs: float | None = setting(None, "Times that each question is seen, at most, in place of steps (none).", at_least=0.01)
    questions: int = setting(16, "Questions per step.", at_least=1)
    replies: int = setting(8, "G: replies sampled per question.", at_least=2)
    balance: bool = setting(True, "Known and unknown questions are drawn equally often, however many there are of each.")
    updates: int = setting(
        2, "mu: steps taken on the same replies. With 1 no probability has moved yet, and clip does nothing.", at_least=1
    )
    rows: int | None = setting(None, "Replies that one device learns from in one pass (none: all of a step).", at_least=1)
    reply_tokens: int = setting(24, "Tokens a reply may have.", at_least=4)
    temperature: float = setting(1.0, "Temperature of the replies.", at_least=0.01)
    vllm: float | None = setting(
        None, "Share of each GPU's memory for vLLM, which then samples the replies (none: the library does).", at_most=0.9
    )
    learning_rate: float = setting(3e-4, "Learning rate, falling linearly to zero.", at_least=0.0)
    mix: float = setting(0.5, "lambda: share of the normalised advantage; the rest is by rank.", at_least=0.0, at_most=1.0)
    entropy: EntropyWeighting = setting("positive", "Which advantages the entropy of the reply damps.")
    beta: float = setting(1.0, "beta: how much it damps them.", at_least=0.0)
    clip: float = setting(0.2, "epsilon: how far a probability may move while replies are learnt from.", at_least=0.0)
    kl: float = setting(0.0, "Weight of the divergence from the model before (the paper prints none).", at_least=0.0)
    validation: float = setting(0.15, "Share of the questions that is kept for validation.", at_least=0.01, at_most=0.5)
    evaluate_every: int = setting(10, "Steps between two validations, a multiple of updates; each is a checkpoint.", at_least=1)
    patience: int = setting(6, "Validations without a better reward before training ends.", at_least=1)
    collapse_after: int = setting(
        3, "Validations in a row with one and the same reply to everything that count as collapse.", at_least=1
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.evaluate_every % self.updates:  # between two updates, replies are held that no checkpoint has
            raise InvalidSetting(
                f"setting 'evaluate_every': got {self.evaluate_every}, expected a multiple of updates, which is {self.updates}."
            )

    def in_all(self, questions: int) -> int:
        """Steps over so many training questions, at most; ``updates`` steps are taken on the replies to one draw."""
        drawn = None if self.epochs is None else math.ceil(self.epochs * questions / self.questions)
        return self.steps if drawn is None else max(1, drawn) * self.updates

    @property
    def rule(self) -> AdvantageRule:
        return AdvantageRule(self.mix, self.entropy, self.beta)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfKnowledgeSettings(TrainingSettings):
    """Both, as the command line takes them: ``answers.n`` and the like for the first."""

    answers: AnswerSettings = AnswerSettings()
