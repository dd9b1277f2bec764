"""Thresholds for a lab model, one per signal, chosen on questions of their own and written into its folder.

Thresholds do not carry over from one model to another, so every trained lab model gets its own.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from gnothi.concurrency import gather
from gnothi.lab.questions import TRAINING_SEED, training_questions
from gnothi.lab.world import World
from gnothi.methods.prompts import REASON, ask
from gnothi.methods.settings import SENTENCE_STOPS, SignalSettings
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.signals import registry
from gnothi.signals.calibration import balanced_threshold
from gnothi.signals.probe import Probe
from gnothi.types import Question

DIGITS = 3


async def thresholds(model: LanguageModel, world: World, n: int = 300, probe: Probe | None = None) -> dict[str, float]:
    """Signal name → threshold that best tells right from wrong first sentences about single facts, from memory; for signals
    that were learnt, with a ``probe`` of the model.

    No default test question needs one of these facts. Empty for a model that gets all of them wrong (or right): there is
    nothing to tell apart."""
    asked = training_questions(world, "one_hop", n)
    chosen: dict[str, float] = {}
    names = registry.within(model.capabilities)
    learnt = [name for name in registry.names() if registry.reads_probe(name)] if probe is not None else []
    for name in (*names, *learnt):
        measured = await gather(*(_measure(model, name, question, probe) for question in asked))
        wrong = [missed for _, missed in measured]
        if any(wrong) and not all(wrong):
            chosen[name] = round(balanced_threshold([score for score, _ in measured], wrong), DIGITS)
    return chosen


async def _measure(model: LanguageModel, signal: str, question: Question, probe: Probe | None) -> tuple[float, bool]:
    """Uncertainty of the first sentence of the reasoning, and whether it fails to name the answer."""
    settings = SignalSettings(probe=probe)
    with question_scope(TRAINING_SEED, question.id):
        measured = await settings.make_signal(signal).measure(model, ask(REASON, question), settings.decoding(SENTENCE_STOPS))
    return measured.uncertainty, question.answers[0] not in measured.greedy.text


def _probe_of(folder: Path) -> Probe | None:
    """The probe that comes with the package, where it is of this model."""
    from gnothi.models.identity import Identity, identify
    from gnothi.signals.probe_folder import LAB, open_probe

    probe = open_probe(LAB)
    return probe if Identity(**probe.about["model"]).same(identify(str(folder))) else None


def calibrate(folder: Path, world: World, n: int = 300) -> dict[str, float]:
    """Choose thresholds for the model in ``folder`` and note them in its ``gnothi.json``."""
    from gnothi.models import load_model

    async def run() -> dict[str, float]:
        model = load_model(str(folder))
        try:
            return await thresholds(model, world, n, _probe_of(folder))
        finally:
            await model.aclose()

    chosen = asyncio.run(run())
    path = folder / "gnothi.json"
    declaration = json.loads(path.read_text("utf-8")) | {"thresholds": chosen}
    path.write_text(json.dumps(declaration, indent=2) + "\n", "utf-8")
    return chosen
