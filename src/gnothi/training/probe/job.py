"""From training questions to a probe: the training of ``gnothi.training.probe``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from gnothi.models.identity import identify
from gnothi.training.asking import Opening
from gnothi.training.collecting import Finding
from gnothi.training.job import Job, Sources, of_settings
from gnothi.training.probe.findings import AGAIN, Findings, ProbeSettings, examine
from gnothi.training.run import Trainable, Trained, failures, number
from gnothi.training.watch import Watch
from gnothi.types import Question


class TrainableProbe(Trainable[Findings]):
    """Learn to tell from one forward pass whether the model will answer wrongly; ``settings`` are those of ``ProbeSettings``.

    ``out`` is then a folder that ``--set signal.probe=`` takes, and the figures are what its ``probe.json`` says."""

    kind = Findings

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.settings = job.settings_as(ProbeSettings, "probe")
        self.recorded = of_settings("probe", self.settings)

    async def opened(self, questions: Sequence[Question], about: Mapping[str, Any], sources: Sources) -> Findings:
        if _is_new(self.folder):
            # What the model cannot give is said before there is a folder that bears the wrong settings.
            self.settings.check(sources.model())
        return await super().opened(questions, about, sources)

    def opening(self, collecting: Findings) -> Opening:  # noqa: ARG002
        return partial(_examining, settings=self.settings)

    def conclude(self, collecting: Findings, watch: Watch) -> Trained:
        with watch.waiting("fitting ..."):
            data = {"name": self.label, "fingerprint": collecting.config["dataset.fingerprint"]}
            made = collecting.finish(self.settings, {"model": asdict(identify(self.job.model)), "data": data})
        if failed := collecting.why_failed():
            watch.warn(f"{failed} {AGAIN}")
        if "probe" not in made["chosen"]:
            watch.warn("the model shows no hidden states, so there is nothing to probe: only the signal question was learnt.")
        return Trained(self.job.out, made["failures"], made)

    def report(self, trained: Trained) -> list[tuple[str, str]]:
        made = trained.figures
        target, chosen = made["target"], made["chosen"].get("probe")
        told = "wrong answers" if target["name"] == "correctness" else f"{target['signal']} above {target['split']:g}"
        rows = [
            ("questions", f"{made['questions']:,}{failures(trained)}: {made['wrong']:,} answered wrongly from memory"),
            ("learnt", told),
        ]
        if chosen is not None:
            prompt, layer, site = chosen["view"].split()
            rows.append(("reads", f"the last state of the prompt {prompt!r}, layer {layer}, {site}; ridge {chosen['ridge']:g}"))
        about = f"AUROC for wrong answers ({made['folds']} folds), threshold; tokens beyond the answer, read + written:"
        rows.append(("held out", about))
        for name, figures in made["held_out"].items():
            cost = made["cost"][name]
            tokens = f"{cost['prompt_tokens']:.1f} + {cost['generated_tokens']:.1f}"
            rows.append((f"  {name}", f"{_area(figures)}, {figures['threshold']:.3g}; {tokens}"))
        return rows


def _is_new(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and all(item.name.startswith(".") for item in folder.iterdir()))


def _area(figures: Mapping[str, Any]) -> str:
    if figures["interval"] is None:
        return number(figures, "auroc")
    low, high = figures["interval"]
    return f"{figures['auroc']:.3f} [{low:.3f}, {high:.3f}]"


async def _examining(sources: Sources, settings: ProbeSettings) -> Finding:
    model = sources.model()
    settings.check(model)
    return partial(examine, model=model, settings=settings)
