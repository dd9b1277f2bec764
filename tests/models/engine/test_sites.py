"""What the site ``ffn`` reads is what the feed-forward part adds, whatever a family makes of it; else it is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gnothi.errors import UsageError
from gnothi.models.engine.passes import Network
from gnothi.models.engine.sites import Parts, checked, parts_of
from gnothi.models.engine.states import StateHook, StateHooks
from gnothi.models.engine.trial import settle
from gnothi.types import StateSpec
from tests.messages import refused

SIZE = 8


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(SIZE, SIZE)

    def forward(self, hidden: Tensor) -> tuple[Tensor, None]:
        return self.inner(hidden).cumsum(dim=1), None


class Layer(nn.Module):
    """A decoder layer; ``how`` is what its family is known for."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.constant = 1.0
        self.attention = Attention()
        if how != "nameless":
            self.mlp = nn.Linear(SIZE, SIZE)
        else:
            self.dense = nn.Linear(SIZE, SIZE)
        if how == "shared":
            self.shared_expert = nn.Linear(SIZE, SIZE)
        if how in ("sandwich", "two norms"):
            self.post_feedforward_layernorm = nn.LayerNorm(SIZE)
        self.norm = nn.LayerNorm(SIZE)

    def forward(self, hidden: Tensor) -> tuple[Tensor]:
        attended = self.attention(self.norm(hidden))[0]
        if self.how == "parallel, in place":
            added = self.mlp(self.norm(hidden))
            added += attended
            return (added + hidden,)
        between = hidden + attended
        normed = self.norm(between)
        if self.how == "nameless":
            return (between + self.dense(normed),)
        if self.how == "flat":
            return (between + self.mlp(normed.flatten(0, 1)).view_as(between),)
        added = self.mlp(normed)
        if self.how == "shared":
            added = added + self.shared_expert(normed)
        if self.how == "sandwich":
            added = self.post_feedforward_layernorm(added)
        if self.how == "scaled":
            added = 0.22 * added
        if self.how == "gated":
            added = added * torch.sigmoid(between)
        if self.how == "after":
            return (self.norm(between + added),)
        if self.how == "more":
            return (between + added + torch.tanh(hidden),)
        return (between + added,)


FOUND: dict[str, Parts] = {
    "usual": (("mlp", 1.0),),
    "parallel, in place": (("mlp", 1.0),),
    "flat": (("mlp", 1.0),),
    "sandwich": (("post_feedforward_layernorm", 1.0),),
    "scaled": (("mlp", 0.22),),
    "shared": (("mlp", 1.0), ("shared_expert", 1.0)),
}
REFUSED = {
    "gated": "adds something else",
    "after": "adds something else",
    "more": "adds more than attention",
    "nameless": "named like one",
}


def made(how: str) -> tuple[Layer, Tensor]:
    torch.manual_seed(1)
    return Layer(how).eval(), torch.randn(2, 5, SIZE)


@pytest.mark.parametrize("how", FOUND)
def test_what_a_layer_adds(how: str) -> None:
    layer, hidden = made(how)
    with torch.inference_mode():
        assert checked(layer, (hidden,), {}) == FOUND[how]
        assert isinstance(checked(layer, (), {"hidden": hidden}), str)  # nobody knows what enters by another name
    model = nn.Module()
    model.layers = nn.ModuleList([layer])
    hooks = StateHooks(model, 1)
    hooks.check(0, FOUND[how])
    with torch.inference_mode(), hooks.reading(frozenset({StateHook(0, "ffn")}), (2, 5)) as read:
        (output,) = layer(hidden)
    attended = layer.attention(layer.norm(hidden))[0]
    torch.testing.assert_close(read[StateHook(0, "ffn")], output - hidden - attended, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("how", [*FOUND, "gated", "after", "nameless"])
def test_in_16_bits_rounding_is_told_from_what_a_layer_adds(how: str) -> None:
    """What is as good as linear near nought, as ``more``, looks like a part of the state itself there."""
    layer, hidden = made(how)
    layer.constant = 0.22  # as families hold their factors
    with torch.inference_mode():
        found = checked(layer.bfloat16(), (40 * hidden.bfloat16(),), {})
    assert found == FOUND[how] if how in FOUND else isinstance(found, str)


@pytest.mark.parametrize("how", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_site_that_works(how: str) -> None:
    layer, hidden = made(how)
    with torch.inference_mode():
        found = checked(layer, (hidden,), {})
    assert isinstance(found, str)
    assert REFUSED[how] in found
    model = nn.Module()
    model.layers = nn.ModuleList([layer])
    hooks = StateHooks(model, 1)
    hooks.check(0, found)
    assert hooks.resolve(StateSpec(0, "residual")) == StateHook(0, "residual")
    with refused(UsageError):
        hooks.resolve(StateSpec(0, "ffn"))


def test_names_alone_are_what_an_unchecked_model_has() -> None:
    assert parts_of(made("sandwich")[0]) == (("post_feedforward_layernorm", 1.0),)
    assert isinstance(parts_of(made("nameless")[0]), str)


class Tower(nn.Module):
    """A part for pictures that has as many layers as the one for text."""

    def __init__(self, text: Any) -> None:
        super().__init__()
        self.vision = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))
        self.language_model = text

    def get_decoder(self) -> Any:
        return self.language_model


def test_layers_are_those_of_the_text(llama: Any) -> None:
    hooks = StateHooks(Tower(llama.model), 2)
    assert list(hooks.layers) == list(llama.model.layers)


def test_layers_that_are_run_twice_have_no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.models.tiny import build_deep

    model = build_deep("llama")
    first = model.model.layers[0]
    original = model.model.layers[1].forward
    monkeypatch.setattr(model.model.layers[1], "forward", lambda hidden, **more: original(first(hidden, **more), **more))
    network = Network(model, 0)
    verdict = settle(network)
    assert "one after another" in verdict.stateless
    with refused(UsageError):
        network.hooks.resolve(StateSpec())
