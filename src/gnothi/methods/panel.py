"""Every signal side by side (after the comparisons of SeaKR, section 5.1, and of Moskvoretskii et al. 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, get_args

from gnothi.methods.steps.reader import ReaderSettings
from gnothi.protocols import LanguageModel
from gnothi.signals import registry
from gnothi.signals.base import FollowUp, Measured, Signal
from gnothi.signals.kinds.gram import Gram
from gnothi.signals.kinds.perplexity import Perplexity
from gnothi.signals.panel import Panel
from gnothi.types import Answer, Question, Site


@dataclass(frozen=True, slots=True)
class EverySignal(ReaderSettings):
    """An answer from memory, and every signal's uncertainty of it.

    The answer is that of ``cot``, or of ``direct`` with ``reason=false``: what stands for never retrieving when the recorded
    scores are replayed as gates. Signals that the model, or the settings, cannot give are left out, and those that ask further
    questions (``FollowUp``), but for the one that ``signal`` names. ``gram`` is measured at the
    site that the settings name, and at the other one as ``gram.SITE``.
    """

    model: LanguageModel

    name: ClassVar[str] = "panel"
    every_signal: ClassVar[bool] = True

    async def __call__(self, question: Question) -> Answer:
        prompt = self.reading(question)
        measured = await Panel(self.signals)(self.model, prompt, self.reply_decoding(prompt))
        own = measured.get(self.signal or Perplexity.name)
        # Without log-probabilities, all signals are of other things: any of them has the reply.
        reply = own or Measured(next(iter(measured.values())).greedy, float("inf"))
        return await self.answer_from(self.model, prompt, reply)

    @property
    def signals(self) -> dict[str, Signal]:
        """Those that the model and the settings can give, by the names that scores are recorded under."""
        signals: dict[str, Signal] = {}
        for name in registry.within(self.model.capabilities, self.probe, self.measuring.corpus is not None):
            signal = self.make_signal(name)
            if isinstance(signal, FollowUp) and name != self.signal:
                continue
            signals[name] = signal
            if isinstance(signal, Gram):
                signals |= _elsewhere(signal)
        return signals


def _elsewhere(gram: Gram) -> dict[str, Signal]:
    """The signal at the other site, in the same layer."""
    return {
        f"{gram.name}.{site}": replace(gram, state=replace(gram.state, site=site))
        for site in get_args(Site)
        if site != gram.state.site
    }


def place_of(measured: str) -> tuple[str, Mapping[str, object]]:
    """The signal behind a name of the panel's, and the settings that give another method the same scores: a ``form`` that takes
    a question as it is, where a method has several, and where states are taken, if elsewhere than the panel's settings say."""
    name, *site = measured.split(".")
    return name, {"form": "simple"} | dict(zip(("signal.site",), site, strict=False))
