"""From training questions to a utility reference: the training of ``gnothi.training.utility_reference``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gnothi.filtering.encoders import LEXICAL, SentenceEncoder
from gnothi.protocols import Retriever
from gnothi.training.asking import Opening
from gnothi.training.collecting import Finding
from gnothi.training.job import Job, Sources, of_settings
from gnothi.training.run import Trainable, Trained, failures
from gnothi.training.utility_reference.labelling import Labelling, UtilitySettings, label
from gnothi.training.watch import Watch
from gnothi.types import Question


class TrainableReference(Trainable[Labelling]):
    """Label the passages found for each question by whether they help or harm its answer; ``settings`` are those of
    ``UtilitySettings``.

    ``out`` is then a folder that KEQA's ``--set reference=`` takes, searched with ``encoder``; the figures are its header.
    Another encoder keeps the labels."""

    kind = Labelling

    def __init__(self, job: Job, encoder: str = LEXICAL) -> None:
        super().__init__(job)
        self.settings = job.settings_as(UtilitySettings, "utility-reference")
        lacking = "passages are judged, and there is no index to find them: give <--index PATH>."
        self.index = job.or_lab(job.index, lacking)
        self.encoder = encoder
        self._opened: SentenceEncoder | None = None
        self.named, self.recorded = {"index": (Retriever, self.index)}, of_settings("utility", self.settings)

    async def opened(self, questions: Sequence[Question], about: Mapping[str, Any], sources: Sources) -> Labelling:
        # An encoder that cannot be opened is told before there is a folder.
        if self.encoder and self.encoder != LEXICAL:
            with sources.watch.waiting(f"opening encoder {self.encoder} ..."):
                self._opened = SentenceEncoder(self.encoder)
        return await super().opened(questions, about, sources)

    def opening(self, collecting: Labelling) -> Opening:  # noqa: ARG002
        return partial(_judging, index=self.index, settings=self.settings)

    def conclude(self, collecting: Labelling, watch: Watch) -> Trained:
        with watch.waiting(f"encoding ({self.encoder}) ..."):
            origin = {"model": self.job.model, "index": self.index, "dataset": self.label}
            header = collecting.finish(self._opened, origin)
        if lacking := [kind for kind in ("helpful", "harmful") if not header[kind]]:
            watch.warn(
                f"no passage was {' or '.join(lacking)}, so there are no such demonstrations. Give more questions, or ones "
                "that the model does not all know (or all miss)."
            )
        return Trained(self.job.out, header["failures"], header)

    def report(self, trained: Trained) -> list[tuple[str, str]]:
        made = trained.figures
        kinds = f"{made['helpful']:,} helpful, {made['harmful']:,} harmful, the rest no effect"
        return [
            ("questions", f"{made['questions']:,}{failures(trained)}"),
            ("passages", f"{made['passages']:,}: {kinds}"),
            ("cost", f"{made['retrievals']:,} searches, {made['model_calls']:,} model calls"),
            ("", f"{made['prompt_tokens']:,} prompt tokens, {made['generated_tokens']:,} generated tokens"),
            ("encoder", made["encoder"]),
        ]


async def _judging(sources: Sources, index: str, settings: UtilitySettings) -> Finding:
    retriever, model = sources.index(index), sources.model()
    return partial(label, model=model, retriever=retriever, settings=settings)
