"""A tiny model under Gnothi beside plain passes of transformers over whole texts, one text at a time, without a cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks import _models_tiny as tiny
from gnothi.errors import GnothiError
from gnothi.models.batched import Continue, Look, Request, Score
from gnothi.models.settings import ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.signals.kinds.gram import gram_uncertainty
from gnothi.types import ContinuationScore, Decoding, Prompt, PromptStates, Samples, Site, StateSpec, Task

CLOSE = 1e-3
"""How far apart numbers may lie."""
_LENGTHS = (5, 23, 70)
_NEW, _PIECE, _SHARED = 20, 16, 100
_SITES: tuple[Site, ...] = ("residual", "ffn")
_POSITIONS = ("fed_eos", "predicting")
_TASK = Task("answer")


@dataclass
class Outcome:
    """``apart``: by what was compared, how far results lie apart. ``refused``: what Gnothi said instead of a result, by what
    was asked (the whole model: ``opening``). ``failed``: a library's own error. ``not_made``: why there is no such tiny model.
    """

    name: str
    path: str = ""
    together: bool = True
    reason: str = ""
    ffn: str = ""
    apart: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    not_made: str = ""
    opening_seconds: float = 0.0
    times_generate: float | None = None

    @property
    def verdict(self) -> str:
        """``equal``, ``refused``, ``wrong``, ``failed`` or ``not made``; of a model that is right in all it does, the first."""
        if self.not_made:
            return "not made"
        if self.failed:
            return "failed"
        if any(not value <= CLOSE for value in self.apart.values()):
            return "wrong"
        return "refused" if "opening" in self.refused else "equal"


class _Raw:
    name = "raw"
    special_tokens = True

    def render(self, prompt: Prompt) -> str:
        return prompt.question


class Reference:
    """Plain passes, with the library's eager attention where it has one."""

    def __init__(self, name: str) -> None:
        try:
            self.model = tiny.model(name, "eager")
        except ValueError:
            self.model = tiny.model(name)
        self._known: dict[tuple[int, ...], torch.Tensor] = {}

    @torch.no_grad()
    def logits(self, ids: Sequence[int]) -> torch.Tensor:
        key = tuple(ids)
        if key not in self._known:
            self._known[key] = self.model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0].double()
        return self._known[key]

    def logprobs(self, prompt: Sequence[int], said: Sequence[int]) -> NDArray[np.float64]:
        passed = self.logits([*prompt, *said])[len(prompt) - 1 : -1].log_softmax(-1)
        found: NDArray[np.float64] = passed.gather(1, torch.tensor(list(said))[:, None])[:, 0].numpy()
        return found

    def gap(self, prompt: Sequence[int], said: Sequence[int]) -> float:
        """How much less likely than the likeliest token the one that was said is, at most."""
        passed = self.logits([*prompt, *said])[len(prompt) - 1 : -1]
        return float((passed.max(-1).values - passed.gather(1, torch.tensor(list(said))[:, None])[:, 0]).max())

    def state(self, ids: Sequence[int], layer: nn.Module, silent: Sequence[nn.Module]) -> NDArray[np.float64]:
        """What a layer puts out at the last token; with modules that are ``silent``, what they add to it."""
        whole = self._output(ids, layer)
        if not silent:
            return whole
        with _silenced(silent):
            return whole - self._output(ids, layer)

    @torch.no_grad()
    def _output(self, ids: Sequence[int], layer: nn.Module) -> NDArray[np.float64]:
        heard: list[Any] = []
        hook = layer.register_forward_hook(lambda _m, _i, output: heard.append(output))
        try:
            self.model(input_ids=torch.tensor([list(ids)]), use_cache=False)
        finally:
            hook.remove()
        (output,) = heard
        state = output[0] if isinstance(output, tuple | list) else output
        found: NDArray[np.float64] = state.reshape(len(ids), -1)[-1].double().numpy()
        return found


@contextmanager
def _silenced(modules: Sequence[nn.Module]) -> Iterator[None]:
    def hush(_m: nn.Module, _i: Any, output: Any) -> Any:
        return (torch.zeros_like(output[0]), *output[1:]) if isinstance(output, tuple | list) else torch.zeros_like(output)

    hooks = [module.register_forward_hook(hush) for module in modules]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def compare(name: str, *, timed: bool = True) -> Outcome:
    """Everything that a method can ask of a model."""
    outcome = Outcome(name)
    try:
        reference, network = Reference(name), tiny.model(name)
        reference.logits([tiny.BEGIN, 7, 8, 9])
    except Exception as error:  # noqa: BLE001 - the library refuses in many ways
        outcome.not_made = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]:.100}"
        return outcome
    begun = time.perf_counter()
    try:
        backend = _opened(network)
    except Exception as error:  # noqa: BLE001 - what is no sentence of ours is what this looks for
        (outcome.refused if isinstance(error, GnothiError) else outcome.failed)["opening"] = _said(error)
        return outcome
    outcome.opening_seconds = time.perf_counter() - begun
    outcome.path, outcome.reason = backend.metadata["attention"], backend.metadata.get("attention_reason", "")
    outcome.together = "prompts_together" not in backend.metadata
    outcome.ffn = backend.metadata.get("ffn", "")
    compared = _Compared(reference, backend, outcome)
    works: dict[str, Callable[[], float]] = {
        "greedy": compared.greedy,
        **{site: lambda site=site: compared.sampled(site) for site in _SITES},  # type: ignore[misc]
        "scores": compared.scored,
        "one token": compared.scored_next,
        "prompt": compared.looked,
        "shared": compared.shared,
        "pieces": compared.pieces,
    }
    for what, work in works.items():
        try:
            outcome.apart[what] = work()
        except Exception as error:  # noqa: BLE001 - as above
            (outcome.refused if isinstance(error, GnothiError) else outcome.failed)[what] = _said(error)
    if timed:
        outcome.times_generate = compared.speed()
    backend.close()
    return outcome


def _opened(network: Any, **settings: Any) -> TransformersBackend:
    return TransformersBackend(network, tiny.tokenizer(), _Raw(), name="tiny", settings=ModelSettings(**settings))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class _Compared:
    def __init__(self, reference: Reference, backend: TransformersBackend, outcome: Outcome) -> None:
        self._reference, self._backend, self._outcome = reference, backend, outcome
        self._texts = [_drawn(length, length) for length in _LENGTHS]

    def greedy(self) -> float:
        return self._greedy(self._backend, self._texts)

    def _greedy(self, backend: TransformersBackend, texts: Sequence[list[int]]) -> float:
        worst = 0.0
        results = _run(backend, [Continue(_prompt(text), 1, Decoding(max_tokens=_NEW)) for text in texts])
        for text, samples in zip(texts, results, strict=True):
            assert isinstance(samples, Samples)
            said, logprobs = _tokens(samples, 0)
            worst = max(
                worst,
                self._reference.gap(_ids(text), said),
                _apart(self._reference.logprobs(_ids(text), said)[: len(logprobs)], logprobs),
            )
        return worst

    def sampled(self, site: Site) -> float:
        """Samples alone and in company are the same; the states of each are those of a plain pass over it, and so is U."""
        states = tuple(StateSpec(site=site, position=position) for position in _POSITIONS)  # type: ignore[arg-type]
        decoding, text = Decoding(max_tokens=12, temperature=1.0, seed=123), self._texts[1]
        asked = Continue(_prompt(text), 5, decoding, states)
        short = Continue(_prompt(self._texts[0]), 2, Decoding(max_tokens=17, temperature=0.7, top_k=10, seed=9), states)
        (alone,) = _run(self._backend, [asked])
        _, beside, _ = _run(
            self._backend, [Continue(_prompt(self._texts[2]), 3, Decoding(9, temperature=1.0, seed=5)), asked, short]
        )
        assert isinstance(alone, Samples)
        assert isinstance(beside, Samples)
        if [_tokens(alone, n)[0] for n in range(5)] != [_tokens(beside, n)[0] for n in range(5)]:
            return float("inf")
        layer, silent = self._places(states[0])
        worst, expected = 0.0, []
        for number in range(5):
            said, logprobs = _tokens(beside, number)
            worst = max(worst, _apart(self._reference.logprobs(_ids(text), said)[: len(logprobs)], logprobs))
            ends = ([*_ids(text), *said[:-1], tiny.END], [*_ids(text), *said[:-1]])
            wanted = [self._reference.state(one, layer, silent) for one in ends]
            worst = max(worst, *(_states_apart(one, state[number]) for one, state in zip(wanted, beside.states, strict=True)))
            expected.append(wanted[0])
        return max(worst, abs(_uncertainty(np.array(expected)) - gram_uncertainty(beside.states[0])))

    def _places(self, spec: StateSpec) -> tuple[nn.Module, list[nn.Module]]:
        """A layer of the reference, and of it the modules whose work is wanted."""
        hooks = self._backend._network.hooks
        hook = hooks.resolve(spec)
        ours = {id(module): name for name, module in self._backend._model.named_modules()}
        theirs = dict(self._reference.model.named_modules())
        layer = theirs[ours[id(hooks.layers[hook.layer])]]
        return layer, [theirs[ours[id(part)]] for part, _ in hooks.parts(hook)] if hook.site == "ffn" else []

    def scored(self) -> float:
        said = [_drawn(90 + length, length) for length in (1, 4, 11)]
        results = _run(self._backend, [Score(_prompt(text), tuple(map(_words, said))) for text in self._texts])
        return self._scores(results, said)

    def scored_next(self) -> float:
        results = _run(self._backend, [Score(_prompt(text), (_words([7]), _words([9]))) for text in self._texts])
        return self._scores(results, [[7], [9]])

    def _scores(self, results: Sequence[Any], said: Sequence[list[int]]) -> float:
        worst = 0.0
        for text, scores in zip(self._texts, results, strict=True):
            for tokens, score in zip(said, scores, strict=True):
                assert isinstance(score, ContinuationScore)
                worst = max(worst, _apart(self._reference.logprobs(_ids(text), tokens), np.array(score.logprobs)))
        return worst

    def looked(self) -> float:
        spec = StateSpec(site="residual", position="predicting")
        layer, _ = self._places(spec)
        worst = 0.0
        for text, found in zip(
            self._texts, _run(self._backend, [Look(_prompt(text), (spec,)) for text in self._texts]), strict=True
        ):
            assert isinstance(found, PromptStates)
            worst = max(worst, _states_apart(self._reference.state(_ids(text), layer, []), found.states[0]))
        return worst

    def shared(self) -> float:
        """Prompts that begin alike, one after another."""
        head = _drawn(1000, _SHARED)
        return max(self._greedy(self._backend, [[*head, *_drawn(2000 + end, 5 + 7 * end)]]) for end in range(3))

    def pieces(self) -> float:
        """Prompts that are read in pieces, by a backend of its own; with windows shorter than they are."""
        backend = _opened(self._backend._model, prefill_tokens=_PIECE)
        return self._greedy(backend, self._texts)

    def speed(self) -> float | None:
        """The processor time that eight samples of 24 tokens take, by that of the library's ``generate``."""
        text = _drawn(77, 100)
        model = tiny.model(self._outcome.name)
        ids = torch.tensor([_ids(text)])

        def theirs() -> None:
            with torch.no_grad():
                model.generate(
                    ids, attention_mask=torch.ones_like(ids), do_sample=True, num_return_sequences=8, max_new_tokens=24,
                    min_new_tokens=24, pad_token_id=0,
                )  # fmt: skip

        try:
            return round(_best(lambda: _run(self._backend, [self._eight(text)])) / _best(theirs), 2)
        except Exception:  # noqa: BLE001 - some cannot generate; their numbers were compared all the same
            return None

    def _eight(self, text: list[int]) -> Continue:
        return Continue(_prompt(text), 8, Decoding(max_tokens=24, temperature=1.0, seed=3))


def _best(work: Callable[[], object]) -> float:
    """Processor time, which other work on the machine hardly touches."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def _run(backend: TransformersBackend, requests: Sequence[Request]) -> list[Any]:
    results = backend.run(requests)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return list(results)


def _uncertainty(states: NDArray[np.float64]) -> float:
    """U as its paper defines it, in double precision."""
    centred = states - states.mean(axis=1, keepdims=True)
    return float(np.linalg.slogdet(centred @ centred.T + 1e-3 * np.eye(len(states)))[1] / len(states))


def _apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    if one.shape != other.shape:
        return float("inf")
    return float(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)).max(initial=0))


def _states_apart(expected: NDArray[np.float64], got: NDArray[np.float32]) -> float:
    """States may have large numbers: then of the largest."""
    return _apart(expected, got) / max(1.0, float(np.abs(expected).max()))


def _tokens(samples: Samples, number: int) -> tuple[list[int], NDArray[np.float64]]:
    """What a sample said, its end included, and the log-probabilities that are told of all but that."""
    generation = samples.generations[number]
    ids = [token.id for token in generation.tokens if token.id is not None]
    said = [*ids, tiny.END] if generation.finish == "eos" else ids
    logprobs = np.array([token.logprob for token in generation.tokens])
    return said, logprobs


def _drawn(seed: int, length: int) -> list[int]:
    return [int(one) for one in np.random.default_rng(seed).integers(4, len(tiny.VOCABULARY), length)]


def _ids(text: Sequence[int]) -> list[int]:
    return [tiny.BEGIN, *text]


def _words(text: Sequence[int]) -> str:
    return " ".join(tiny.VOCABULARY[token] for token in text)


def _prompt(text: Sequence[int]) -> Prompt:
    return Prompt(_TASK, _words(text))
