"""The figures of a training by one of the libraries' trainers, from its newest checkpoint to its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from gnothi.runs.journal import Journal, read_lines
from gnothi.training.finetuning import CHECKPOINTS, METRICS, newest_checkpoint, out_of_patience

Figures = dict[str, Any]


class Curve:
    """``metrics.jsonl`` in ``out``, without what was written after the newest checkpoint: that is done again.

    ``lines`` have a ``step``; those of validations have ``best``, too, the higher the better. ``on_line`` hears of every new
    one. ``patience``: the training is over after so many validations that were no better."""

    def __init__(self, out: Path, best: str, patience: int, on_line: Callable[[Figures], None] | None = None) -> None:
        self.out, self.best, self.patience, self.on_line = out, best, patience, on_line
        self._checkpoint = newest_checkpoint(out / CHECKPOINTS)
        self._reached = int(self._checkpoint.name.rpartition("-")[2]) if self._checkpoint else -1
        self.lines: list[Figures] = [line for _, line in read_lines(out / METRICS) if line["step"] <= self._reached]
        self._journal: Journal | None = None

    def draw(self, trainer: Any, steps: int, writes: bool = True) -> None:
        """Train to the end, unless that is reached. ``writes``: this process keeps the lines."""
        if writes:
            self._journal = Journal(self.out / METRICS)
            self._journal.rewrite(self.lines)
        try:
            if self._reached < 0:
                trainer.evaluate()  # what training starts from, as step 0
            if self._reached < steps and not self.over:
                trainer.train(resume_from_checkpoint=str(self._checkpoint) if self._checkpoint else None)
        finally:
            if self._journal is not None:
                self._journal.close()

    def listener(self, training: Collection[str], validation: Collection[str], draw: Callable[[], None]) -> Any:
        """What the trainer reports, as lines: of its training steps and of its validations these figures. After each validation
        ``draw`` is called, and training ends where it is over."""
        from transformers import TrainerCallback

        def on_log(_: Any, __: Any, state: Any, ___: Any, logs: Figures, **____: Any) -> None:
            told = {name.removeprefix("eval_"): value for name, value in logs.items()}
            kept = {name: value for name, value in told.items() if name in validation or (name in training and name in logs)}
            if kept:
                self.add(state.global_step, kept)

        def on_evaluate(_: Any, __: Any, ___: Any, control: Any, **____: Any) -> None:
            draw()
            if self.over:
                control.should_training_stop = True

        return type("Listener", (TrainerCallback,), {"on_log": on_log, "on_evaluate": on_evaluate})()

    def add(self, step: int, figures: Mapping[str, Any]) -> None:
        line = {"step": step, **figures}
        self.lines.append(line)
        if self._journal is not None:
            self._journal.append(line)
        if self.on_line is not None:
            self.on_line(line)

    @property
    def validated(self) -> list[Figures]:
        return [line for line in self.lines if self.best in line]

    @property
    def over(self) -> bool:
        return out_of_patience([line[self.best] for line in self.validated], self.patience)

    def header(self, keys: Iterable[str]) -> Figures:
        """What every training says of itself: steps, the best of them, and these figures before the first."""
        before = next(({key: line[key] for key in keys} for line in self.lines if line["step"] == 0), None)
        return {"steps": max(line["step"] for line in self.lines), "best_step": self.best_step, "before": before}

    @property
    def best_step(self) -> int:
        """Of equally good validations the first, but for that of the start."""
        later = [line for line in self.validated if line["step"] > 0]
        return int(max(later, key=lambda line: (line[self.best], -line["step"]))["step"])
