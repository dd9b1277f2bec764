"""What the training of a reader can be told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gnothi.methods.steps.settings import check_ranges, setting
from gnothi.training.tuning import Tuning

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
