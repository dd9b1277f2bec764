"""Forward passes of a causal model of ``transformers``, whatever its architecture, or of the laboratory's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from gnothi.errors import UsageError
from gnothi.libraries import cache_argument
from gnothi.models.engine.frequencies import Frequencies
from gnothi.models.engine.path import PrefillSteps
from gnothi.models.engine.states import Captured, StateHook, StateHooks
from gnothi.models.engine.text import Detokenizer
from gnothi.models.sampling import not_finite
from gnothi.types import Attended


class Deserted(Exception):
    """Nobody waits any more for what is being computed."""


class Network:
    """A loaded model. ``wanted`` are the hidden states that every pass returns; ``piece`` is about how many tokens
    of prompts one pass reads at most; ``read_tokens`` counts those that were read. Whenever ``deserted``, a pass
    ends between two layers by raising ``Deserted``. ``of_library``: it is one of ``transformers``. With ``depth``, a pass goes
    no further than so many layers, and what the last of them puts out stands in the place of logits: enough to tell whether two
    ways of computing agree."""

    def __init__(self, model: Any, pad: int) -> None:
        self.model = model
        self.of_library: bool = getattr(model, "of_library", True)
        self.config = model.config.get_text_config()
        self.device = model.device
        self.hooks = StateHooks(model, getattr(self.config, "num_hidden_layers", 0))
        self.frequencies = Frequencies(model)
        self.depth: int | None = None
        self.wanted: frozenset[StateHook] = frozenset()
        self.piece = 8192
        self.read_tokens = 0
        self.deserted: Callable[[], bool] = bool
        for layer in self.hooks.layers:
            layer.register_forward_pre_hook(self._look_up)
        self._pad = pad
        accepted = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_logits_to_keep = "logits_to_keep" in accepted
        self.cache_name = cache_argument(model)
        # Without attention a model keeps nothing of earlier tokens but its state: no positions, no mask of them.
        self._state_only = getattr(model, "_is_stateful", False) and not self._takes_positions

    def _look_up(self, *_: Any) -> None:
        if self.deserted():
            raise Deserted

    def forward(
        self, tokens: Tensor, position: Tensor, cache: Any, mask: Tensor | None, *, last_only: bool = False, **extra: Any
    ) -> tuple[Tensor, Captured]:
        """One pass over ``tokens`` (rows, tokens) at ``position`` (same shape); ``cache``, where there is one, grows by them.

        Logits (rows, tokens or 1, vocabulary) and the wanted states (rows, tokens, hidden size).
        """
        options = self._options(tokens, position, cache, mask)
        if last_only and self._takes_logits_to_keep:
            options["logits_to_keep"] = 1
        return self._run(options | extra, last_only=last_only)

    def plain(self, tokens: Sequence[int]) -> tuple[Tensor, Captured]:
        """One pass over a whole text as the library does it by itself, without a cache: logits (1, tokens, vocabulary) and the
        wanted states."""
        return self._run({"input_ids": torch.tensor([list(tokens)], device=self.device), "use_cache": False})

    def _run(self, options: dict[str, Any], *, last_only: bool = False) -> tuple[Tensor, Captured]:
        shape = tuple(options["input_ids"].shape)
        if self.depth is None:
            with self.hooks.reading(self.wanted, shape) as states:
                logits = self.model(**options).logits
            return logits, dict(states)
        end = StateHook(self.depth - 1, "residual")
        with self.hooks.reading(self.wanted | {end}, shape, no_further=True) as states:
            self.model(**options)
        return states[end][:, -1:] if last_only else states[end], {hook: states[hook] for hook in self.wanted}

    def _options(self, tokens: Tensor, position: Tensor, cache: Any, mask: Tensor | None) -> dict[str, Any]:
        if mask is not None and self._state_only:
            mask = mask[:, -tokens.shape[1] :]
            mask = None if bool(mask.all()) else mask
        options: dict[str, Any] = {"input_ids": tokens, "use_cache": cache is not None, "attention_mask": mask}
        if cache is not None:
            assert self.cache_name is not None
            options[self.cache_name] = cache
        if self._takes_positions:
            options["position_ids"] = position
        return options

    def ahead(self, prompts: Sequence[Sequence[int]], most: int) -> Iterator[tuple[list[int], Tensor]]:
        """Read prompts for what comes next alone, and keep nothing of them: places in ``prompts`` and the logits (places,
        vocabulary) after these. Prompts of like length go together, about ``most`` tokens in one pass."""
        for places in by_length([len(prompt) for prompt in prompts], most):
            tokens, position, mask = self._padded([prompts[place] for place in places])
            self._count(tokens, mask)
            logits, _ = self.forward(tokens, position, None, mask, last_only=True)
            yield places, logits[:, -1]

    def ends(self, prompts: Sequence[Sequence[int]], most: int) -> Iterator[tuple[list[int], Captured]]:
        """Read prompts for the wanted states at their last tokens alone, no deeper into the model than these are: places in
        ``prompts`` and the states (places, hidden size). Passes are as in ``ahead``."""
        for places in by_length([len(prompt) for prompt in prompts], most):
            tokens, position, mask = self._padded([prompts[place] for place in places])
            self._count(tokens, mask)
            options = self._options(tokens, position, None, mask)
            with self.hooks.reading(self.wanted, tuple(tokens.shape), no_further=True) as states:
                self.model(**options)
            yield places, {hook: state[:, -1] for hook, state in states.items()}

    def _count(self, tokens: Tensor, mask: Tensor | None) -> None:
        self.read_tokens += tokens.numel() if mask is None else int(mask.sum())

    def _padded(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Tokens, positions and mask (None when nothing is padded), (prompts, tokens), padded on the left."""
        width = max(len(prompt) for prompt in prompts)
        padded = [[self._pad] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        tokens = torch.tensor(padded, device=self.device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        offset = torch.arange(width, device=self.device) - (width - lengths)[:, None]
        mask = (offset >= 0).long() if min(map(len, prompts)) < width else None
        return tokens, offset.clamp(min=0), mask

    def prefill(
        self, prompts: Sequence[Sequence[int]], *, windows: bool = True, whole: bool = False
    ) -> PrefillSteps[tuple[Any, Tensor | None, Tensor, Captured]]:
        """Read prompts, padded on the left to the longest one, a piece at a time.

        The cache, the mask (prompts, tokens; None when nothing is padded), the logits after each prompt (prompts, vocabulary)
        and the wanted states at each prompt's last token (prompts, hidden size). With ``windows`` the cache forgets what
        sliding windows have left behind, else it keeps every position. ``whole``: in one piece.
        """
        tokens, position, mask = self._padded(prompts)
        cache = self._new_cache(windows)
        width = tokens.shape[1] if whole else max(self.piece // len(prompts), 1)
        starts = range(0, tokens.shape[1], width)
        for start in starts:
            if start:
                yield
            end = min(start + width, tokens.shape[1])
            part, visible = slice(start, end), None if mask is None else mask[:, :end]
            self._count(tokens[:, part], None if mask is None else mask[:, part])
            logits, states = self.forward(tokens[:, part], position[:, part], cache, visible, last_only=True)
        # Clones, so that a batch's full states and logits can be freed.
        return cache, mask, logits[:, -1].clone(), {hook: state[:, -1].clone() for hook, state in states.items()}

    def _new_cache(self, windows: bool) -> Any:
        if not self.of_library:
            return self.model.new_cache()
        from transformers import DynamicCache

        return DynamicCache(config=self.model.config) if windows else DynamicCache()


def by_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Places of like length together, padded to at most ``most`` in all (at least one place), short ones first."""
    places: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if places and lengths[place] * (len(places) + 1) > most:
            yield places
            places = []
        places.append(place)
    if places:
        yield places


def attend(model: Any, detokenizer: Detokenizer, prompt: Sequence[int], continuation: Sequence[int]) -> Attended:
    """Where a model looks: its last layer of attention, heads averaged, over the tokens of a prompt and of what follows it (at
    least one). Raises UsageError where it has no such layer, ModelUnavailable where its probabilities are no numbers.

    A pass with the library's eager attention, whose weights the faster ones never compute."""
    ids = [*prompt, *continuation]
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        read = model(input_ids=torch.tensor([ids], device=model.device), use_cache=False, output_attentions=True)
    finally:
        model.set_attn_implementation(usual)
    # Layers without attention put out nothing, or a state of another shape in its place.
    weights = [one for one in getattr(read, "attentions", None) or () if one is not None and one.shape[2:] == 2 * (len(ids),)]
    if not weights:
        raise UsageError(
            f"attentions: no layer of a {type(model).__name__} says how much a token looks at each token before it; use a "
            "method without attentions, or a model whose layers attend to tokens."
        )
    attention = weights[-1][0].float().mean(dim=0)[len(prompt) :]
    logprobs = read.logits[0, len(prompt) - 1 : -1].float().log_softmax(dim=-1)
    if bool(logprobs.isnan().any()):
        raise not_finite()
    entropies = -(logprobs.exp() * logprobs).nan_to_num().sum(dim=-1)
    text = detokenizer.text([], ids)
    return Attended(tuple(detokenizer.split([], ids, text)), entropies.cpu().numpy(), attention.cpu().numpy())
