"""The figures of a training by one of the libraries' trainers, from its newest checkpoint to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gnothi.errors import MissingDependency
from gnothi.report.figures.drawing import new_figure, save_figure
from gnothi.runs.journal import Journal, read_lines
from gnothi.session.watch import SILENT, Progress, Watch
from gnothi.training.finetuning import CHECKPOINTS, METRICS, newest_checkpoint, out_of_patience

CURVES = "curves.png"
DRAWN_EVERY = 10.0
"""Seconds from a picture to the next, which takes nearly one."""
BLUE, GREEN, RED, YELLOW, GREY = "#4477aa", "#228833", "#bb5566", "#ccaa33", "#bbbbbb"


class Panel(NamedTuple):
    """One pair of axes over the steps. ``trained`` is a figure of the training steps and its label; ``validated`` are figures
    of validations, by key, each with its label and colour. ``share``: values are between 0 and 1."""

    title: str
    validated: Mapping[str, tuple[str, str]] = {}
    trained: tuple[str, str] | None = None
    share: bool = False


def draw_curves(out: Path, metrics: Sequence[Mapping[str, Any]], panels: Sequence[Panel]) -> None:
    """``curves.png``, from the lines of ``metrics.jsonl``. Raises MissingDependency without matplotlib."""
    drawn = figure(2.4 + 2.4 * len(panels), 3.0)
    for axes, panel in zip(drawn.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw(axes, metrics, panel)
    save_figure(drawn, out / CURVES)


def _draw(axes: Any, metrics: Sequence[Mapping[str, Any]], panel: Panel) -> None:
    def plot(key: str, *style: str, **look: Any) -> None:
        points = [(line["step"], line[key]) for line in metrics if line.get(key) is not None]
        axes.plot([step for step, _ in points], [value for _, value in points], *style, **look)

    if panel.trained:
        plot(panel.trained[0], color=GREY, linewidth=1, label=panel.trained[1])
    for key, (label, colour) in panel.validated.items():
        plot(key, ".-", color=colour, linewidth=1.4, label=label)
    axes.set(title=panel.title, xlabel="step", xlim=(0, max([1, *(line["step"] for line in metrics)])))
    if panel.share:
        axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)


def figure(width: float, height: float) -> Any:
    """An empty figure, in inches. Raises MissingDependency without matplotlib."""
    try:
        return new_figure(width, height)
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", "the pictures of a training") from error


Figures = dict[str, Any]


class TrackedFigures(NamedTuple):
    """Figures of a trainer that are kept: those of training steps, and those of validations, of which ``best`` (the higher the
    better) decides which checkpoint is best. ``panels`` are drawn; ``progress``: figures beside the progress, with names."""

    best: str
    training: Sequence[str]
    validation: Sequence[str]
    panels: Sequence[Panel] = ()
    progress: Sequence[tuple[str, str]] = ()


class Curve:
    """``metrics.jsonl`` in ``out``, without what was written after the newest checkpoint: that is done again.

    ``lines`` have a ``step`` and figures. ``patience``: the training is over after so many validations that were no better."""

    def __init__(self, out: Path, tracked: TrackedFigures, patience: int, watch: Watch = SILENT) -> None:
        self.out, self.tracked, self.patience, self.watch = out, tracked, patience, watch
        self._checkpoint = newest_checkpoint(out / CHECKPOINTS)
        self._reached = int(self._checkpoint.name.rpartition("-")[2]) if self._checkpoint else -1
        self.lines: list[Figures] = [line for _, line in read_lines(out / METRICS) if line["step"] <= self._reached]
        self._journal: Journal | None = None
        self._drawn = float("-inf")
        self._progress, self._latest = Progress(), Figures()

    def run(self, trainer: Any, steps: int, writes: bool = True) -> None:
        """Train to the end, unless that is reached. ``writes``: this process keeps the lines."""
        watch = self.watch if writes else SILENT
        with watch.counting(steps, max(self._reached, 0), f"{self.out.name}: training") as self._progress:
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

    def listener(self, validated: Callable[[], None] = lambda: None) -> Any:
        """What the trainer reports, as lines. After a validation the curves are drawn, where they were not just before;
        ``validated`` is called, and training ends where it is over."""
        from transformers import TrainerCallback

        tracked = self.tracked

        def on_log(_: Any, __: Any, state: Any, ___: Any, logs: Figures, **____: Any) -> None:
            figures = {name.removeprefix("eval_"): value for name, value in logs.items()}
            line = {
                name: value
                for name, value in figures.items()
                if name in tracked.validation or (name in tracked.training and name in logs)
            }
            if line:
                self.add(state.global_step, line)

        def on_evaluate(_: Any, __: Any, ___: Any, control: Any, **____: Any) -> None:
            if self._journal is not None and time.monotonic() - self._drawn >= DRAWN_EVERY:
                self.draw()
                self._drawn = time.monotonic()
            validated()
            if self.over:
                control.should_training_stop = True

        return type("Listener", (TrainerCallback,), {"on_log": on_log, "on_evaluate": on_evaluate})()

    def add(self, step: int, figures: Mapping[str, Any]) -> None:
        line = {"step": step, **figures}
        self.lines.append(line)
        if self._journal is not None:
            self._journal.append(line)
        self.watch.line(line)
        self._latest |= line
        latest = [(name, self._latest[key]) for key, name in self.tracked.progress if self._latest.get(key) is not None]
        if step:
            self._progress.reach(step, ", ".join(f"{name} {value:.3f}" for name, value in latest))

    def draw(self) -> None:
        """Raises MissingDependency without matplotlib."""
        draw_curves(self.out, self.lines, self.tracked.panels)

    @property
    def validated(self) -> list[Figures]:
        return [line for line in self.lines if self.tracked.best in line]

    @property
    def over(self) -> bool:
        return out_of_patience([line[self.tracked.best] for line in self.validated], self.patience)

    @property
    def best_step(self) -> int:
        """Of equally good validations the first, but for that of the start."""
        later = [line for line in self.validated if line["step"] > 0]
        return int(max(later, key=lambda line: (line[self.tracked.best], -line["step"]))["step"])

    @property
    def best_checkpoint(self) -> Path:
        return self.out / CHECKPOINTS / f"checkpoint-{self.best_step}"

    def header(self, keys: Sequence[str]) -> Figures:
        """Figures of every training: steps, the best of them, and these figures before the first."""
        before = next(({key: line[key] for key in keys} for line in self.lines if line["step"] == 0), None)
        return {"steps": max(line["step"] for line in self.lines), "best_step": self.best_step, "before": before}
