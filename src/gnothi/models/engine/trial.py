"""Which decode path is right for a model, found out when it is opened: each is compared with plain passes over whole texts.

The model's first layers, as many as hold every kind that it has, read two prompts of different length side by side, in pieces;
rows go on from them; what was read before is found again as the beginning of another prompt; continuations of several tokens
are looked at; states are read. Windows are made small meanwhile, so that all this goes beyond them. All of it is also what the
library computes of each text alone, without a cache, with its eager attention: a path that says otherwise is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from gnothi.errors import ModelUnavailable
from gnothi.models.engine import forked
from gnothi.models.engine.attention import IMPLEMENTATION, Unsupported
from gnothi.models.engine.compared import Reference, Texts, Wrong, close, compare, texts_for
from gnothi.models.engine.forked import Forked
from gnothi.models.engine.layers import kinds, small_windows
from gnothi.models.engine.packed import Packed
from gnothi.models.engine.passes import Network
from gnothi.models.engine.path import DecodePath
from gnothi.models.engine.plain import Plain
from gnothi.models.engine.repeated import Repeated
from gnothi.models.engine.sites import Parts, checked
from gnothi.models.engine.states import StateHook


@contextmanager
def single_precision(model: nn.Module, without: list[nn.Module]) -> Iterator[bool]:
    """Inside, all weights but those of the layers ``without`` are float32; afterwards they are what they were, to the bit.

    False, and nothing is changed, where some cannot be: they are quantised, elsewhere, or laid out for a
    processor's kernels."""
    left_out = {id(module) for layer in without for module in layer.modules()}
    modules = [module for module in model.modules() if id(module) not in left_out]
    tensors = {id(one): one for module in modules for one in _own(module)}.values()
    fixed = any(not one.is_floating_point() or one.device.type == "meta" for one in _weights_of_single(modules))
    if fixed or any(isinstance(module, Packed) for module in modules):
        yield False
        return
    before = [(one, one.data) for one in tensors if one.is_floating_point() and one.element_size() < 4]
    try:
        with torch.inference_mode(False):  # what is made inside cannot take a weight's place
            for one, data in before:
                one.data = data.float()
        yield True
    finally:
        with torch.inference_mode(False):
            for one, data in before:
                one.data = data


def _weights_of_single(modules: list[nn.Module]) -> Iterator[Tensor]:
    for module in modules:
        yield from module.parameters(recurse=False)


def _own(module: nn.Module) -> Iterator[Tensor]:
    yield from module.parameters(recurse=False)
    yield from module.buffers(recurse=False)


def is_single(model: nn.Module) -> bool:
    """Whether its weights are of single precision or better."""
    return next((one.element_size() for one in model.parameters() if one.is_floating_point()), torch.float32.itemsize) >= 4


# Tokens of a window, and of a piece of two prompts, while texts are tried.
_WINDOW, _PIECE = 6, 18
_PASSED_ON = (ModelUnavailable, torch.OutOfMemoryError, MemoryError)
# Two layers at least, the second of which reads what the first has made; one alone where a layer has many weights.
_LAYERS, _MANY = 2, 2**24


@dataclass(frozen=True, slots=True)
class Verdict:
    """``path`` is ``forked``, ``repeated`` or ``plain``, with the library's attention ``eager`` or as it was loaded;
    ``together`` and ``several`` are those of ``Repeated``. ``reasons`` tell why faster ones were not taken. ``stateless``: why
    states cannot be read. ``added``: of each layer its feed-forward parts, or why there are none. ``windows`` are those that
    the trial went beyond, ``layers`` how many it went through."""

    path: str
    eager: bool = False
    together: bool = True
    several: bool = True
    reasons: tuple[str, ...] = ()
    stateless: str = ""
    added: tuple[Parts | str, ...] = ()
    windows: tuple[int, ...] = ()
    layers: int = 0


def settle(network: Network, wanted: str = "auto") -> Verdict:
    """Find the path for a model; ``wanted`` other than ``auto`` leaves out what is faster.

    Raises ModelUnavailable where not even a plain pass gives what a causal language model gives."""
    piece = network.piece
    network.piece = _PIECE
    try:
        # One kind of frequencies for all texts of the trial, whatever their lengths.
        with network.frequencies.turned(network.frequencies.limit is not None):
            try:
                with small_windows(network.model, _WINDOW) as windows:
                    return _tried(network, wanted, tuple(windows))
            except _NoReference:
                if not windows:
                    raise
                return _tried(network, wanted, ())  # it may not run with windows that small
    except _NoReference as error:
        raise ModelUnavailable(
            f"the {type(network.model).__name__} cannot be run: a plain pass over a few tokens fails with {error}. "
            "Expected a causal language model that reads token ids alone."
        ) from error.__cause__
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise ModelUnavailable(
            f"out of memory: the {type(network.model).__name__} was loaded, and leaves no room for a pass over a few tokens. "
            "Use a smaller model or <--set model.dtype=bfloat16>."
        ) from error
    finally:
        network.depth, network.wanted, network.piece = None, frozenset(), piece


def _tried(network: Network, wanted: str, windows: tuple[int, ...]) -> Verdict:
    trial = _Trial(network, wanted, windows)
    with single_precision(network.model, trial.beyond), torch.inference_mode():
        return trial.verdict()


def prepare(network: Network, verdict: Verdict, budget: int) -> DecodePath:
    """The path of a verdict, and the model and its hooks as it asks for them."""
    if verdict.stateless:
        network.hooks.refuse(verdict.stateless)
    for layer, parts in enumerate(verdict.added):
        network.hooks.check(layer, parts)
    if verdict.path == "forked":
        forked.switch(network.model, IMPLEMENTATION)
        return Forked(network, budget)
    forked.switch(network.model, "eager" if verdict.eager else _loaded(network.model))
    if verdict.path == "plain":
        return Plain(network)
    return Repeated(network, together=verdict.together, several=verdict.several)


class _NoReference(Exception):
    """Plain passes fail."""


class _Trial:
    def __init__(self, network: Network, wanted: str, windows: tuple[int, ...]) -> None:
        self._network, self._wanted, self._windows = network, wanted, windows
        self._reasons: list[str] = []
        self._states, self._stateless = network.hooks.available, ""
        self._added: tuple[Parts | str, ...] = ()
        self._texts: Texts = texts_for(network.model.config, int(network.model.get_input_embeddings().weight.shape[0]))
        self._kinds = kinds(network.hooks.layers, network.config)
        self._depth = _depth(network.hooks.layers, self._kinds) if self._states else 0

    @property
    def beyond(self) -> list[nn.Module]:
        """What the trial does not go through."""
        layers, head = self._network.hooks.layers[self._depth :], self._network.model.get_output_embeddings()
        return [] if not (self._states and layers) else [*layers, *([] if head is None else [head])]

    def verdict(self) -> Verdict:
        reference, eager = self._reference()
        for what, make, attention, verdict in self._candidates(reference, eager):
            if self._agrees(lambda make=make: compare(self._network, make(), self._texts, reference), what, attention):  # type: ignore[misc]
                return self._finished(verdict)
        return self._finished(Verdict("plain", eager=eager))

    def _finished(self, verdict: Verdict) -> Verdict:
        return Verdict(
            verdict.path,
            verdict.eager,
            verdict.together,
            verdict.several,
            tuple(dict.fromkeys(self._reasons)),
            self._stateless,
            self._added,
            self._windows,
            len(self._network.hooks.layers) if self._network.depth is None else self._network.depth,
        )

    def _candidates(self, reference: Reference, eager: bool) -> Iterator[tuple[str, Callable[[], DecodePath], str, Verdict]]:
        """What a path is called, how it is made, over which attention, and the verdict if it is right; the fastest first."""
        network, loaded = self._network, _loaded(self._network.model)
        if self._wanted in ("auto", "forked"):
            yield "forked attention", self._forked, IMPLEMENTATION, Verdict("forked")
        if self._wanted not in ("auto", "repeated"):
            return
        if network.cache_name is None:
            self._reasons.append("what it keeps of a text is in none of the library's caches")
            return
        # What the library's fused attention says without a cache is the best that a cache over it can say.
        fast = not eager or self._agrees(lambda: self._read_plainly(reference), "fused attention", loaded)
        for together, several in ((True, True), (True, False), (False, True), (False, False)):
            make = partial(Repeated, network, together=together, several=several)
            what = "a repeated cache" + ("" if together else " of one prompt") + ("" if several else " after whole prompts")
            for slow in (False, True) if fast and eager else (not fast,):
                verdict = Verdict("repeated", slow, together, several)
                yield what + (" with eager attention" if slow else ""), make, "eager" if slow else loaded, verdict

    def _forked(self) -> DecodePath:
        forked.check(self._network)
        return Forked(self._network, 1 << 30, shortest=self._texts.shortest, trunk=self._texts.trunk)

    def _agrees(self, work: Callable[[], None], what: str, attention: str) -> bool:
        """Whether work with a model under that attention comes to what it should; else the reason is noted."""
        try:
            with _attention(self._network.model, attention):
                work()
        except Wrong as error:
            self._reasons.append(f"{what} differs from plain passes by {error}")
        except Unsupported as error:
            self._reasons.append(f"{what} does not cover {error}")
        except (torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - architectures fail in many ways; then another path is taken
            self._reasons.append(f"{what} fails with {_error_text(error)}")
        else:
            return True
        return False

    # --- what plain passes come to ------------------------------------------------------------------------------------

    def _reference(self) -> tuple[Reference, bool]:
        """With eager attention where the model can be switched to it; whether it can."""
        model = self._network.model
        if _loaded(model) != "eager":
            try:
                with _attention(model, "eager"):
                    return self._measured(), True
            except _PASSED_ON:
                raise
            except Exception:  # noqa: BLE001 - some have no eager attention
                self._reasons.clear()
        try:
            with _attention(model, _loaded(model)):
                return self._measured(), False
        except _PASSED_ON:
            raise
        except Exception as error:
            raise _NoReference(_error_text(error)) from error

    def _measured(self) -> Reference:
        network, texts = self._network, self._texts
        network.wanted, network.depth = frozenset(), None
        if self._states:
            self._look_at_layers()
        if self._states and self._depth < len(network.hooks.layers):
            network.depth = self._depth
        last = self._depth - 1
        hooks = [StateHook(last, "residual")] if self._states else []
        hooks += [
            StateHook(number, "ffn") for number, parts in enumerate(self._added[: self._depth]) if not isinstance(parts, str)
        ][-1:]
        network.wanted = frozenset(hooks)
        passes = [network.plain(text) for text in (texts.long, texts.short)]
        self._check_finite(passes[0][0])
        self._check_causal(passes[0][0])
        single = is_single(network.model)
        return Reference(
            passes[0][0][0], passes[1][0][0], {hook: (passes[0][1][hook][0], passes[1][1][hook][0]) for hook in hooks}, single
        )

    def _check_finite(self, whole: Tensor) -> None:
        """NaN equals nothing, not even itself, so later comparisons would blame something else."""
        bad = int((~whole[0].isfinite()).any(dim=-1).sum())
        if bad:
            raise ModelUnavailable(
                f"the {type(self._network.model).__name__} returns NaN or infinite numbers at {bad} of {len(whole[0])} "
                "tokens, expected finite ones. Its weights are damaged, or overflow in 16 bits: load another copy, or use "
                "<--set model.dtype=float32>."
            )

    def _check_causal(self, whole: Tensor) -> None:
        """What stands at a token must not change with the tokens behind it."""
        network, beginning = self._network, self._texts.long[: self._texts.shortest]
        part = network.plain(beginning)[0]
        if not close(part[0], whole[0, : len(beginning)], is_single(network.model)):
            raise ModelUnavailable(
                f"the {type(network.model).__name__} is not a causal language model: its output at a token changes with the "
                "tokens after it. Expected a decoder, which continues a text."
            )

    def _look_at_layers(self) -> None:
        """Whether a pass goes through what was taken for its layers, one after another; what their feed-forward parts add."""
        network, seen = self._network, []
        layers = network.hooks.layers[: self._depth]
        calls: dict[int, tuple[Any, Any]] = {}

        def see(number: int) -> Callable[..., None]:
            def keep(_: nn.Module, arguments: Any, keywords: Any) -> None:
                seen.append(number)
                calls[number] = (arguments, keywords)

            return keep

        hooks = [layer.register_forward_pre_hook(see(number), with_kwargs=True) for number, layer in enumerate(layers)]
        try:
            network.depth = self._depth if self._depth < len(network.hooks.layers) else None
            last = StateHook(self._depth - 1, "residual")
            network.wanted = frozenset({last})
            state = network.plain(self._texts.short)[1].get(last)
        finally:
            network.depth, network.wanted = None, frozenset()
            for hook in hooks:
                hook.remove()
        if seen != list(range(len(layers))):
            self._without_states("a pass does not go through its layers once, one after another")
        elif state is None or state.dim() != 3 or state.shape[:2] != (1, len(self._texts.short)):
            self._without_states("what its layers hand on is not one state for each token")
        else:
            self._added = self._feed_forward_parts(calls)
            for number, parts in enumerate(self._added):
                network.hooks.check(number, parts)

    def _feed_forward_parts(self, calls: dict[int, tuple[Any, Any]]) -> tuple[Parts | str, ...]:
        """By layer: one of each kind is run by itself. A factor may change with the depth, so there the last one of the kind is
        run, too, and all of them where the two differ."""
        layers, kinds_ = self._network.hooks.layers, self._kinds
        found: dict[int, Parts | str] = {}
        for kind in sorted(set(kinds_)):
            alike = [number for number, one in enumerate(kinds_) if one == kind]
            first = checked(layers[kind], *calls[kind])
            found |= dict.fromkeys(alike, first)
            scaled = not isinstance(first, str) and any(factor != 1 for _, factor in first)
            if scaled and self._again(alike[-1], calls[kind]) != first:
                found |= {number: self._again(number, calls[kind]) for number in alike}
        return tuple(found[number] for number in range(len(layers)))

    def _again(self, number: int, call: tuple[Any, Any]) -> Parts | str:
        """Another layer of a kind, run with what the first one was given."""
        layer = self._network.hooks.layers[number]
        with single_precision(layer, []) if is_single(self._network.model) else nullcontext():
            return checked(layer, *call)

    def _without_states(self, why: str) -> None:
        self._states, self._stateless = False, why
        self._network.hooks.refuse(why)

    def _read_plainly(self, reference: Reference) -> None:
        for text, expected in ((self._texts.long, reference.long), (self._texts.short, reference.short)):
            reference.same(self._network.plain(text)[0][0], expected)


def _depth(layers: Sequence[nn.Module], kinds_: Sequence[int]) -> int:
    """How many of the first layers hold every kind."""
    least = 1 if sum(weights.numel() for weights in _weights(layers[0])) > _MANY else min(_LAYERS, len(layers))
    return max(least, *(kind + 1 for kind in kinds_))


def _weights(layer: nn.Module) -> Iterator[Tensor]:
    """Those that lie as the processor's kernels read them included."""
    for module in layer.modules():
        yield from module.parameters(recurse=False)
        if isinstance(module, Packed):
            yield torch.empty(module.out_features, module.in_features, device="meta")


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]:.120}"


def _loaded(model: Any) -> str:
    """The attention implementation that a model came with."""
    now = model.config._attn_implementation
    return "sdpa" if now == IMPLEMENTATION else str(now)


@contextmanager
def _attention(model: Any, implementation: str) -> Iterator[None]:
    """Inside, the model's attention is of this implementation, where it can be switched."""
    before = str(model.config._attn_implementation)
    forked.switch(model, implementation)
    try:
        yield
    finally:
        forked.switch(model, before)
