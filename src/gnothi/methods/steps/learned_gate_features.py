"""What a learnt gate may look at before it decides, at a price: a probe, samples, each passage alone, samples with each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.filtering.learned import GateSource
from gnothi.filtering.traits import PROBE, SAMPLES, traits_of_weighing
from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.methods.steps.settings import SHORT_STOPS, needs_of
from gnothi.protocols import LanguageModel
from gnothi.signals import registry
from gnothi.signals.base import Signal
from gnothi.signals.kinds.consistency import Consistency
from gnothi.signals.kinds.gram import Gram
from gnothi.signals.panel import Panel
from gnothi.signals.probe import Probe
from gnothi.types import Capabilities, Decoding, Generation, Passage, Prompt, Question


def needs_of_looks(gate: GateSource | None) -> Capabilities:
    """What a model must offer for the signals that the gate may look at. Raises UnknownName for one that is none."""
    return reduce(or_, map(needs_of, _signals_of(gate)), Capabilities())


def require_probe(gate: GateSource | None, probe: Probe | None) -> None:
    """Raise InvalidSetting where the gate looks at what a probe has learnt, and there is none."""
    for name in _signals_of(gate):
        if registry.reads_probe(name) and probe is None:
            raise InvalidSetting(registry.lacks_probe(name, "learned"))


def _signals_of(gate: GateSource | None) -> tuple[str, ...]:
    return () if gate is None else (*gate.features(PROBE), *gate.features(SAMPLES))


def signals_at(stage: str, reader: AnsweringSettings, model: LanguageModel) -> tuple[str, ...]:
    """Those that the model and the settings can give: learnt ones of the probe, and all others, which draw samples or ask."""
    within = registry.within(model.capabilities, reader.probe)
    return tuple(name for name in within if registry.reads_probe(name) == (stage == PROBE))


async def measured(
    names: Sequence[str],
    reader: AnsweringSettings,
    model: LanguageModel,
    prompt: Prompt,
    decoding: Decoding,
    greedy: Generation,
) -> Mapping[str, float | None]:
    """These signals of the ``greedy`` continuation, spread over magnitudes; None where nothing could be measured."""
    signals: dict[str, Signal] = {name: reader.make_signal(name) for name in names}
    found = await Panel(signals).of(model, prompt, decoding, greedy)
    return {name: _spread(one.uncertainty) for name, one in found.items()}


async def weighed(
    reader: AnsweringSettings, model: LanguageModel, question: Question, passages: Sequence[Passage]
) -> Mapping[str, float | None]:
    """How uncertain the model is of a short answer without passages, with all and with each: by U (``gram``) or, where it shows
    no states, by the consistency of its samples."""
    signal = reader.make_signal(Gram.name if model.capabilities.hidden_states else Consistency.name)
    shown = [(), tuple(passages), *((one,) for one in passages)]
    found = await gather(*(signal.measure(model, ask(ANSWER, question, some), reader.decoding(SHORT_STOPS)) for some in shown))
    without, with_all, *each = (one.uncertainty for one in found)
    return traits_of_weighing(without, with_all, each)


def _spread(value: float) -> float | None:
    return math.copysign(math.log1p(abs(value)), value) if math.isfinite(value) else None
