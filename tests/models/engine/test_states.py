from __future__ import annotations

import pytest
import torch
from torch import nn

from gnothi.errors import InvalidSetting, UsageError
from gnothi.models.engine.states import StateHook, StateHooks
from gnothi.types import StateSpec
from tests.messages import refused
from tests.models.tiny import ARCHITECTURES, build_deep


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_read_is_what_the_residual_stream_gains(architecture: str) -> None:
    """Switching the feed-forward block's contribution off changes the layer's output by exactly what 'ffn' reads."""
    model = build_deep(architecture)
    hooks = StateHooks(model, 4)
    wanted = frozenset({StateHook(1, "ffn"), StateHook(1, "residual")})
    ids = torch.arange(4, 20)[None]
    with torch.inference_mode(), hooks.reading(wanted) as read:
        model(ids)
    contribution, output = read[StateHook(1, "ffn")], read[StateHook(1, "residual")]
    silence = hooks.parts(StateHook(1, "ffn"))[0][0].register_forward_hook(lambda _m, _i, out: torch.zeros_like(out))
    with torch.inference_mode(), hooks.reading(frozenset({StateHook(1, "residual")})) as without:
        model(ids)
    silence.remove()
    torch.testing.assert_close(output - without[StateHook(1, "residual")], contribution, atol=1e-5, rtol=1e-4)


def test_nothing_is_read_outside_the_block() -> None:
    model = build_deep("llama")
    hooks = StateHooks(model, 4)
    with hooks.reading(frozenset({StateHook(0, "ffn")})) as read:
        model(torch.arange(5)[None])
    before = dict(read)
    model(torch.arange(9)[None])
    assert read.keys() == before.keys()
    assert read[StateHook(0, "ffn")].shape == (1, 5, 32)


def test_a_pass_goes_no_further_than_what_is_read() -> None:
    model = build_deep("llama")
    hooks = StateHooks(model, 4)
    wanted = frozenset({StateHook(0, "residual"), StateHook(1, "ffn")})
    ids = torch.arange(9)[None]
    computed: list[int] = []
    for number in range(4):
        hooks.parts(StateHook(number, "residual"))[0][0].register_forward_hook(
            lambda *_, number=number: computed.append(number)
        )
    with torch.inference_mode(), hooks.reading(wanted) as whole:
        model(ids)
    assert computed == [0, 1, 2, 3]
    with torch.inference_mode(), hooks.reading(wanted, no_further=True) as read:
        model(ids)
        pytest.fail("the pass went on")
    assert computed == [0, 1, 2, 3, 0]
    assert {hook: state.tolist() for hook, state in read.items()} == {hook: state.tolist() for hook, state in whole.items()}
    with torch.inference_mode():
        assert torch.isfinite(model(ids).logits).all()  # and the next pass is a whole one
    assert computed[5:] == [0, 1, 2, 3]


def test_an_error_inside_the_block_stays_one() -> None:
    hooks = StateHooks(build_deep("llama"), 4)
    with refused(ValueError), hooks.reading(frozenset({StateHook(0, "ffn")}), no_further=True):
        raise ValueError("other")


@pytest.mark.parametrize(("layers", "middle"), [(1, 0), (2, 0), (4, 1), (32, 15), (33, 15)])
def test_the_default_layer_is_the_middle_one(layers: int, middle: int) -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mlp = nn.Linear(2, 2)

    stack = nn.Module()
    stack.layers = nn.ModuleList(Layer() for _ in range(layers))
    assert StateHooks(stack, layers).resolve(StateSpec()) == StateHook(middle, "ffn")
    if layers % 2 == 0:
        assert StateHooks(stack, layers).resolve(StateSpec(0.5)) == StateHook(middle, "ffn")


def test_layers_beyond_the_model_are_refused() -> None:
    hooks = StateHooks(build_deep("llama"), 4)
    assert [hooks.resolve(StateSpec(share)).layer for share in (0.1, 0.25, 0.75, 0.99)] == [0, 0, 2, 3]
    for layer in (-1, 4, 1.5):
        with refused(InvalidSetting):
            hooks.resolve(StateSpec(layer))


def test_a_network_without_layers_says_so() -> None:
    hooks = StateHooks(nn.Linear(2, 2), 2)
    assert not hooks.available
    with refused(UsageError):
        hooks.resolve(StateSpec())
