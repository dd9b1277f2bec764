"""What the training of a re-ranker can be told. The paper says that 500 questions are used (section 5.2), the rest is ours."""

from __future__ import annotations

from dataclasses import dataclass

from gnothi.methods.steps.settings import check_ranges, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSettings:
    """Which pairs of [question : internal knowledge : fact] are made of a training question."""

    internal: bool = setting(True, "The model's own knowledge stands in the query, as where the method ranks.")
    max_tokens: int = setting(100, "Tokens of what the model says about one entity.", at_least=1)
    hops: int = setting(2, "Candidate facts are this many steps from what question and choices name.", at_least=1)
    cap: int = setting(100, "Candidate facts of one node, at most.", at_least=1)
    positives: int = setting(8, "Facts of a question that link to its gold choice, at most.", at_least=1)
    linked: int = setting(8, "Negatives that link to a wrong choice, at most.", at_least=0)
    alike: int = setting(16, "Negatives that say of others what a positive says, at most.", at_least=0)
    near: int = setting(12, "Negatives that say other things of what is named or known, at most.", at_least=0)
    random: int = setting(12, "Negatives drawn from the other candidates, at most.", at_least=0)

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """How the cross-encoder is trained."""

    seed: int = setting(0, "Split, order and new weights.", at_least=0)
    epochs: int = setting(4, "Times that each pair is seen, at most.", at_least=1)
    batch: int = setting(64, "Pairs per step; those of one question stand together.", at_least=1)
    rows: int | None = setting(None, "Pairs in one pass of the model, where memory is short (none: all of a step).", at_least=1)
    gradient_checkpointing: bool = setting(
        False, "Compute activations again instead of keeping them: less memory, a third more time."
    )
    learning_rate: float = setting(2e-5, "Learning rate, falling linearly to zero.", at_least=0.0)
    warmup: float = setting(0.1, "Share of the steps in which it rises.", at_least=0.0, at_most=1.0)
    weight_decay: float = setting(0.01, "Weight decay.", at_least=0.0)
    limit: int = setting(512, "Tokens of a pair; a longer query loses its end.", at_least=16)
    validation: float = setting(0.1, "Share of the questions that is kept for validation.", at_least=0.01, at_most=0.5)
    evaluate_every: int = setting(100, "Steps between two validations; each is a checkpoint.", at_least=1)
    patience: int = setting(5, "Validations without a better one before training ends.", at_least=1)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.rows is not None and self.batch % self.rows:
            raise ValueError(f"setting 'rows': got {self.rows}, expected a divisor of batch, which is {self.batch}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSettings(TrainingSettings):
    """Both, as the command line takes them: ``pairs.cap`` and the like for the first."""

    pairs: PairSettings = PairSettings()
