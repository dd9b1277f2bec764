"""Settings that methods share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

from gnothi.errors import InvalidSetting
from gnothi.fields import check_ranges, resource, setting
from gnothi.methods.steps.chain import reread
from gnothi.methods.steps.extraction import EXTRACTIONS, Extraction, ExtractionName
from gnothi.methods.steps.gating import GateSpec
from gnothi.protocols import LanguageModel, Retriever
from gnothi.retrieval.results import counter
from gnothi.signals import registry as signals
from gnothi.signals.base import Sampling, Signal
from gnothi.signals.entailment import Entailment
from gnothi.signals.kinds.perplexity import Perplexity
from gnothi.signals.probe import Probe
from gnothi.signals.registry import PROBE, SECTION
from gnothi.signals.stopping import KEY as STOPPING
from gnothi.signals.stopping import parsed
from gnothi.types import Answer, Capabilities, Decoding, Question, Site, StateSpec

T = TypeVar("T")

# Where a drafted sentence, a chain of thought and a short answer end (SeaKR, appendix D). A chain may break its lines.
SENTENCE_STOPS = (". ", "\n", "Question:", "Context [")
CHAIN_STOPS = ("\n\n", "Question:", "Context [")
SHORT_STOPS = ("\n", "Question:", "Context [")
# A list has lines and may have blank ones; "Question:" within a line may be part of it.
LIST_STOPS = ("\nQuestion:", "\nContext [")


def chain_stops(extraction: Extraction) -> tuple[str, ...]:
    """Where a chain of thought ends that an answer is cut out of."""
    return LIST_STOPS if extraction.to_the_end else CHAIN_STOPS


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """How a reply is generated: greedily, up to a length (SeaKR, section 4.1.3)."""

    max_tokens: int = setting(100, "Tokens a continuation may have.", at_least=1)
    extract: ExtractionName = setting(
        "gnothi", "How an answer is cut out of a reply: our way, as the code of that paper does, or not at all (whole)."
    )

    group: ClassVar[str] = "replies"
    """What the settings are listed under that methods share by this base."""

    def __post_init__(self) -> None:
        check_ranges(self)
        self.check_settings()

    def check_settings(self) -> None:
        """Raise InvalidSetting or MissingCapability for settings that do not fit together, or the models given."""

    @property
    def needs(self) -> Capabilities:
        """What the model must offer. Nothing but text, unless a method says more."""
        return Capabilities()

    def decoding(self, stop: tuple[str, ...]) -> Decoding:
        """Greedy, up to ``stop``; a chain to its end where answers are cut out of all of it."""
        return Decoding(max_tokens=self.max_tokens, stop=chain_stops(self.extraction) if stop == CHAIN_STOPS else stop)

    @property
    def extraction(self) -> Extraction:
        return EXTRACTIONS[self.extract]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings(GenerationSettings):
    """What a method of ours does beyond its paper."""

    extra_calls: bool = setting(
        True,
        "Ask again, for a short answer, where an answer only repeats the question or a worked example; false: no call that the "
        "paper does not make, and no answer tidied.",
    )

    group: ClassVar[str] = "calls"

    async def reread(self, model: LanguageModel, question: Question, answer: Answer) -> Answer:
        """The answer, or one asked for in its place (``chain.reread``)."""
        return await reread(model, question, answer, self.decoding(SHORT_STOPS)) if self.extra_calls else answer


_USUAL = Sampling()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """The settings of signals: how continuations are sampled, where hidden states are taken, what was learnt (SeaKR, sections
    3.1 and 4.1.3). Each signal has those that it takes (``signals.registry.settings_of``)."""

    samples: int = setting(_USUAL.samples, "k: sampled continuations per measurement.", at_least=1)
    temperature: float = setting(_USUAL.temperature, "Temperature of the samples.", at_least=0.01)
    top_k: int = setting(_USUAL.top_k, "Samples draw from this many likeliest tokens (0: all).", at_least=0)
    top_p: float = setting(
        _USUAL.top_p,
        "Samples draw from the likeliest tokens that make up this probability (1: all).",
        at_least=0.0,
        at_most=1.0,
    )
    layer: int | float | None = setting(
        None,
        "l: decoder layer of the hidden states, counted from 0 (none: the middle one; between 0 and 1: a share of the depth).",
        at_least=0,
    )
    site: Site = setting("ffn", "Hidden states: feed-forward output before the residual is added, or the layer's output.")
    alpha: float = setting(1e-3, "Regularisation of the Gram determinant.", at_least=1e-12)
    stopping: str | None = field(default=None, metadata={"typed": False})
    """The rule by which gates and comparisons stop drawing samples once they are decided. A calibration brings it."""
    probe: Probe | None = resource("What the signals probe and question have learnt.")
    entailment: Entailment | None = resource("Groups the samples of semantic_entropy, in place of the model.")
    corpus: Retriever | None = resource("Where entity_frequency and cooccurrence count names.")

    def __post_init__(self) -> None:
        check_ranges(self, f"{SECTION}.")
        parsed(self.stopping)

    def make(self, name: str | None, retriever: Retriever | None = None) -> Signal:
        """The named signal; for None perplexity, which is free (and None where log-probabilities are). One that counts does so
        in the ``corpus``, or else in what the ``retriever`` searches. Raises InvalidSetting where there is none, or one that
        cannot count."""
        if name is None:
            return Perplexity()
        sampling = Sampling(self.samples, self.temperature, self.top_k, self.top_p, parsed(self.stopping))
        state, corpus = StateSpec(self.layer, self.site), self.corpus or retriever
        count = counter(corpus) if corpus is not None and signals.counts(name) else None
        return signals.create(name, sampling, state, self.alpha, self.probe, self.entailment, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSettings(MethodSettings):
    """How the uncertainty of a reply is measured."""

    measuring: Measuring = field(default=Measuring(), metadata={"section": SECTION})

    group: ClassVar[str] = "signal"
    every_signal: ClassVar[bool] = False
    """Whether the method measures all signals that there are, and not those alone that its settings name."""
    measures: ClassVar[tuple[str, ...]] = ()
    """Signals that it measures whatever its settings say."""
    gating: ClassVar[GateSpec | None] = None
    """What makes up the method's gate; None for a method whose decisions are no signal's."""

    def make_signal(self, name: str | None) -> Signal:
        """The named signal, or perplexity, with the method's settings."""
        return self.measuring.make(name, getattr(self, "retriever", None))

    @property
    def probe(self) -> Probe | None:
        """What learnt signals read."""
        return self.measuring.probe


class SelfKnowledge(NamedTuple):
    """The value of a setting with which a method asks a model whether it knows, which takes training, and what does not."""

    key: str
    value: str
    instead: str


class ModelDefaults(NamedTuple):
    """The ``values`` that settings have with one ``model``, unless one of them, or of ``others``, was given."""

    model: str
    values: Mapping[str, Any]
    others: tuple[str, ...] = ()


def needs_of(signal: str | None) -> Capabilities:
    """What a model must offer for the named signal; nothing for None."""
    return Capabilities() if signal is None else signals.find(signal).needs


def signals_of(method: Any) -> dict[str, Any]:
    """What the method's settings for signals say, by key: the gate's, and that of answers."""
    gate: GateSpec | None = getattr(method, "gating", None)
    return {
        key: getattr(method, key)
        for key in dict.fromkeys((SECTION, gate.signal_key if gate else None))
        if key and hasattr(method, key)
    }


def measured_by(method: Any, values: Mapping[str, Any]) -> list[str]:
    """The signals that a method, or its class, measures with these ``values`` of its settings: those that they name, or all."""
    if not hasattr(method, "every_signal"):
        return []
    if method.every_signal:
        return [*signals.names()]
    gate: GateSpec | None = method.gating
    named = [values.get(key) for key in (SECTION, gate.signal_key if gate else None) if key]
    return [*dict.fromkeys(name for name in (*method.measures, *named) if name in signals.SIGNALS)]


def measured_settings(method: Any, values: Mapping[str, Any]) -> set[str]:
    """The keys of the settings of all signals that the method measures with these values, and of a rule for drawing samples."""
    measured = measured_by(method, values)
    drawing = {STOPPING for signal in measured if "sampling" in signals.takes(signal)}
    return {key for signal in measured for key in signals.settings_of(signal)} | drawing


def check_signals(method: Any) -> None:
    """Raise InvalidSetting where a signal of the method lacks its probe or an index that counts, or a probe a signal that reads
    it."""
    probe = getattr(method, "probe", None)
    named = signals_of(method)
    for name in named.values():
        if name in signals.SIGNALS and signals.counts(name):
            method.make_signal(name)
    reading = {key: name for key, name in named.items() if name in signals.SIGNALS and signals.reads_probe(name)}
    if probe is None and reading:
        raise InvalidSetting(signals.lacks_probe(*next((name, key) for key, name in reading.items())))
    if probe is not None and not reading and not method.every_signal:
        keys = " or ".join(f"{key}=probe" for key in named)
        raise InvalidSetting(
            f"setting {PROBE!r}: got one, but method {method.name!r} uses no signal that reads it, expected {keys} (or "
            f"question). Beside other methods, give it to one alone with --set NAME.{PROBE}=FOLDER."
        )
    if isinstance(probe, Probe) and not probe.states and "probe" in reading.values():
        raise InvalidSetting(
            f"setting {PROBE!r}: {probe.name} was trained on a model without hidden states and reads only the words of "
            "questions, so it cannot measure the signal probe. Use the signal question, or train a probe on a model that runs "
            "in this process."
        )
