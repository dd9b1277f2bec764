"""Hidden states of chosen layers, read by forward hooks.

``residual`` is the output of a decoder layer. ``ffn`` is what the feed-forward part adds to the residual stream: the output of
the layer's MLP, or of the norm behind it where the architecture has one (Gemma 2 and 3, OLMo 2, GLM 4), times the factor with
which the layer adds it (Granite); of several modules that it is made of (shared experts) the sum. Where attention and MLP run
in parallel (GPT-NeoX, Falcon) it is the MLP's share alone. ``sites`` checks that it is so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn

from gnothi.errors import InvalidSetting, UsageError
from gnothi.models.engine.sites import Parts, first_tensor, parts_of
from gnothi.types import Site, StateSpec


class StateHook(NamedTuple):
    """A place to read from."""

    layer: int
    site: Site


Captured = dict[StateHook, Tensor]
"""Hidden states by place, rows first."""


class _Enough(Exception):
    """Ends a pass: everything that it was made for is there."""


class StateHooks:
    """Finds a model's decoder layers and reads their outputs while ``reading``."""

    def __init__(self, model: nn.Module, layers: int) -> None:
        self._name = type(model).__name__
        self._layers = _stack(model, layers)
        self._reason = "no decoder layers were found in it"
        self._checked: dict[int, Parts | str] = {}
        self._hooked: set[StateHook] = set()
        self._wanted: frozenset[StateHook] = frozenset()
        self._no_further = False
        self._shape: tuple[int, ...] = ()
        self._parts: dict[StateHook, int] = {}
        self._read: dict[StateHook, Tensor] = {}

    @property
    def available(self) -> bool:
        return self._layers is not None

    @property
    def layers(self) -> Sequence[nn.Module]:
        """The decoder layers, none where none were found."""
        return list(self._layers or ())

    def refuse(self, reason: str) -> None:
        """There are no states to be read."""
        self._layers, self._reason = None, reason

    def check(self, layer: int, parts: Parts | str) -> None:
        """Set the modules of a layer's feed-forward part, or why they cannot be read."""
        self._checked[layer] = parts

    def resolve(self, spec: StateSpec) -> StateHook:
        """The place a spec means. The default layer is the middle one, ``layers // 2 - 1`` (at least 0)."""
        if self._layers is None:
            raise UsageError(
                f"hidden states: {self._name} offers none ({self._reason}); use a signal that needs only text, such as "
                "consistency."
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
        hook = StateHook(layer, spec.site)
        self.parts(hook)
        return hook

    @contextmanager
    def reading(
        self, hooks: frozenset[StateHook], shape: tuple[int, ...] = (), *, no_further: bool = False
    ) -> Iterator[dict[StateHook, Tensor]]:
        """The dictionary receives, per hook, the output of the forward pass inside the block: (rows, tokens, hidden size).

        ``shape`` (rows, tokens) of the pass: some modules see all tokens in one dimension. ``no_further``: the block ends as
        soon as all hooks have been read; layers behind them are not computed."""
        for hook in hooks - self._hooked:
            for module, scale in self.parts(hook):
                module.register_forward_hook(self._hook(hook, scale))
            self._hooked.add(hook)
        self._wanted, self._read, self._no_further, self._shape = hooks, {}, no_further, shape
        self._parts = {hook: len(self.parts(hook)) for hook in hooks}
        try:
            yield self._read
        except _Enough:
            pass
        finally:
            self._wanted = frozenset()

    def _hook(self, hook: StateHook, scale: float) -> Any:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if hook not in self._wanted:
                return
            states = first_tensor(output)
            # A copy: some layers add to what a module gave them in its place.
            states = states.clone() if scale == 1 else states * scale
            if states.dim() == 2 and self._shape:
                states = states.view(*self._shape, -1)
            self._read[hook] = self._read[hook] + states if hook in self._read else states
            self._parts[hook] -= 1
            if self._no_further and not any(self._parts.values()):
                raise _Enough

        return keep

    def parts(self, hook: StateHook) -> Sequence[tuple[nn.Module, float]]:
        """The modules whose outputs, each times a factor, add up to what is wanted. Raises UsageError where there are none."""
        assert self._layers is not None
        layer = self._layers[hook.layer]
        if hook.site == "residual":
            return [(layer, 1.0)]
        parts = self._checked.get(hook.layer) or parts_of(layer)
        if not isinstance(parts, str):
            return [(getattr(layer, name), factor) for name, factor in parts]
        raise UsageError(
            f"hidden states at site 'ffn': {self._name} has no feed-forward module whose output stands before the residual "
            f"({parts}); use the site 'residual'."
        )


def _stack(model: nn.Module, layers: int) -> nn.ModuleList | None:
    """As many layers as the text part has; a part for pictures may have as many."""
    decoder = getattr(model, "get_decoder", lambda: model)()
    for part in (decoder, model) if isinstance(decoder, nn.Module) else (model,):
        for module in part.modules():
            if isinstance(module, nn.ModuleList) and len(module) == layers:
                return module
    return None
