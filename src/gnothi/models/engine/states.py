"""Hidden states of chosen layers, read by forward hooks.

``residual`` is the output of a decoder layer. ``ffn`` is what the feed-forward block adds to the residual stream: the output of
the layer's MLP, or of the norm behind it where the architecture has one (Gemma 2 and 3, OLMo 2, GLM 4). Where attention and
MLP run in parallel (GPT-NeoX) it is the MLP's output alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn

from gnothi.errors import InvalidSetting, UsageError
from gnothi.types import Site, StateSpec

_AFTER_FFN = ("post_feedforward_layernorm", "post_mlp_layernorm")
_FFN = ("mlp", "feed_forward", "ffn", "block_sparse_moe", "moe", "fc2", "ff")


class Tap(NamedTuple):
    """A place to read from."""

    layer: int
    site: Site


Captured = dict[Tap, Tensor]
"""Hidden states by place, rows first."""


class _Enough(Exception):
    """Ends a pass: everything that it was made for is there."""


class Taps:
    """Finds a model's decoder layers and reads their outputs while ``reading``."""

    def __init__(self, model: nn.Module, layers: int) -> None:
        self._name = type(model).__name__
        stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == layers]
        self._layers = stacks[0] if stacks else None
        self._hooked: set[Tap] = set()
        self._wanted: frozenset[Tap] = frozenset()
        self._no_further = False
        self._read: dict[Tap, Tensor] = {}

    @property
    def available(self) -> bool:
        return self._layers is not None

    @property
    def layers(self) -> Sequence[nn.Module]:
        """The decoder layers, none where none were found."""
        return list(self._layers or ())

    def resolve(self, spec: StateSpec) -> Tap:
        """The place a spec means. The default layer is the middle one, ``layers // 2 - 1`` (at least 0)."""
        if self._layers is None:
            raise UsageError(
                f"hidden states: no decoder layers were found in {self._name}; use a text-only signal with this model."
            )
        count = len(self._layers)
        if spec.layer is None:
            layer = max(count // 2 - 1, 0)
        elif 0 < spec.layer < 1:
            layer = max(round(spec.layer * count) - 1, 0)
        elif (layer := int(spec.layer)) != spec.layer or not 0 <= layer < count:
            raise InvalidSetting(
                f"hidden state layer: got {spec.layer}, expected 0 to {count - 1} for this model, or a share between 0 and 1."
            )
        tap = Tap(layer, spec.site)
        self.module(tap)
        return tap

    @contextmanager
    def reading(self, taps: frozenset[Tap], *, no_further: bool = False) -> Iterator[dict[Tap, Tensor]]:
        """The dictionary receives, per tap, the output of the forward pass inside the block: (rows, tokens, hidden size).

        ``no_further``: the block ends as soon as all taps have been read; layers behind them are not computed."""
        for tap in taps - self._hooked:
            self.module(tap).register_forward_hook(self._hook(tap))
            self._hooked.add(tap)
        self._wanted, self._read, self._no_further = taps, {}, no_further
        try:
            yield self._read
        except _Enough:
            pass
        finally:
            self._wanted = frozenset()

    def _hook(self, tap: Tap) -> Any:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if tap in self._wanted:
                self._read[tap] = output[0] if isinstance(output, tuple) else output
                if self._no_further and len(self._read) == len(self._wanted):
                    raise _Enough

        return keep

    def module(self, tap: Tap) -> nn.Module:
        """The module whose output is wanted. Raises UsageError where the architecture has none."""
        assert self._layers is not None
        layer = self._layers[tap.layer]
        if tap.site == "residual":
            return layer
        for name in (*_AFTER_FFN, *_FFN):
            module = getattr(layer, name, None)
            # Some blocks (BLOOM, MPT) take the residual as an argument and add it themselves: nothing to read before.
            if isinstance(module, nn.Module) and "residual" not in inspect.signature(module.forward).parameters:
                return module
        raise UsageError(
            f"hidden states at site 'ffn': {self._name} has no feed-forward module whose output stands before the residual; "
            "use the site 'residual'."
        )
