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
from gnothi.methods.steps.prompts import REASON, ask
from gnothi.methods.steps.settings import SENTENCE_STOPS, SignalSettings
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.signals import registry
from gnothi.stats.probabilities import balanced_threshold
from gnothi.types import Question

DIGITS = 3


async def thresholds(model: LanguageModel, world: World, n: int = 300) -> dict[str, float]:
    """Signal name → threshold that best tells right from wrong first sentences about single facts, from memory. (What was
    learnt by a probe comes with a threshold of its own.)

    No default test question needs one of these facts. Empty for a model that gets all of them wrong (or right): there is
    nothing to tell apart."""
    asked = training_questions(world, "one_hop", n)
    chosen: dict[str, float] = {}
    for name in registry.within(model.capabilities):
        measured = await gather(*(_measure(model, name, question) for question in asked))
        wrong = [missed for _, missed in measured]
        if any(wrong) and not all(wrong):
            chosen[name] = round(balanced_threshold([score for score, _ in measured], wrong), DIGITS)
    return chosen


async def _measure(model: LanguageModel, signal: str, question: Question) -> tuple[float, bool]:
    """Uncertainty of the first sentence of the reasoning, and whether it fails to name the answer."""
    settings = SignalSettings()
    with question_scope(TRAINING_SEED, question.id):
        measured = await settings.make_signal(signal).measure(model, ask(REASON, question), settings.decoding(SENTENCE_STOPS))
    return measured.uncertainty, question.answers[0] not in measured.greedy.text


def calibrate(folder: Path, world: World, n: int = 300) -> dict[str, float]:
    """Choose thresholds for the model in ``folder`` and note them in its ``gnothi.json``."""
    from gnothi.models import load_model

    async def run() -> dict[str, float]:
        model = load_model(str(folder))
        try:
            return await thresholds(model, world, n)
        finally:
            await model.aclose()

    chosen = asyncio.run(run())
    path = folder / "gnothi.json"
    declaration = json.loads(path.read_text("utf-8")) | {"thresholds": chosen}
    path.write_text(json.dumps(declaration, indent=2) + "\n", "utf-8")
    return chosen
